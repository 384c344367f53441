/* Call sites: the module that a call is in, and where in it; found once for each address. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "recorder.h"

enum { PLACES = 1 << 14, TRIES = 64 };

static struct recorder_place places[PLACES]; /* open addressing */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static size_t hash_of(const void *address) {
    return (size_t)((uint64_t)(uintptr_t)address * 0x9E3779B97F4A7C15u >> 50) % PLACES;
}

static int find(const char *at, Dl_info *info, uintptr_t *shift) {
#ifdef __GLIBC__
    struct link_map *map = NULL;
    const int found = dladdr1(at, info, (void **)&map, RTLD_DL_LINKMAP);
    *shift = found == 0 || map == NULL ? 0 : (uintptr_t)map->l_addr;
#else
    const int found = dladdr(at, info);
    *shift = found == 0 ? 0 : (uintptr_t)info->dli_fbase;
#endif
    return found;
}

/* An address is the one after the call; the byte before it belongs to the line of the call. */
static void describe(struct recorder_site *site, const void *address) {
    Dl_info info;
    const char *at = (const char *)address - 1;
    const char *name = "unknown";
    uintptr_t shift; /* from addresses in the file to those in memory; 0 if the file's are fixed */
    if (find(at, &info, &shift) != 0 && info.dli_fname != NULL) {
        const char *slash = strrchr(info.dli_fname, '/');
        name = slash == NULL ? info.dli_fname : slash + 1;
        site->offset = (uint64_t)((uintptr_t)at - shift);
    }
    strncpy(site->module, name, RECORDER_MODULE - 1);
}

/* Site 0 stands for all for which there is no room. */
static uint32_t add(const void *address) {
    uint64_t index;
    struct recorder_site *site = recorder_take(RECORDER_SITES, 1, &index);
    if (index == 0 && site != NULL) {
        strncpy(site->module, "unknown", RECORDER_MODULE - 1);
        site = recorder_take(RECORDER_SITES, 1, &index);
    }
    if (site == NULL)
        return 0;
    describe(site, address);
    return (uint32_t)index;
}

static struct recorder_place *insert(size_t first, const void *address) {
    struct recorder_place *found = &places[first];
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < TRIES; ++i) {
        struct recorder_place *place = &places[(first + i) % PLACES];
        const void *there = atomic_load(&place->address);
        if (there == NULL) {
            atomic_store(&place->site, add(address));
            atomic_store_explicit(&place->address, address, memory_order_release);
        }
        if (there == NULL || there == address) {
            found = place;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

struct recorder_place *recorder_place_of(const void *address) {
    const size_t first = hash_of(address);
    for (size_t i = 0; i < TRIES; ++i) {
        struct recorder_place *place = &places[(first + i) % PLACES];
        const void *there = atomic_load_explicit(&place->address, memory_order_acquire);
        if (there == address)
            return place;
        if (there == NULL)
            break;
    }
    return insert(first, address);
}
