/* Which host of the cluster this process is on. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll.h"

/* Names of hosts have no case (RFC 4343), in ASCII: the program's locale may say otherwise. */
static char folded(char letter) {
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static int same_name(const char *a, const char *b) {
    while (*a != '\0' && folded(*a) == folded(*b)) {
        ++a;
        ++b;
    }
    return *a == *b;
}

/* Whether a short name is the first label of the other. Two whole names are not compared by it. */
static int same_label(const char *a, const char *b) {
    const size_t length = strcspn(a, ".");
    const int one_is_short = strchr(a, '.') == NULL || strchr(b, '.') == NULL;
    size_t same = 0;
    while (same < length && folded(a[same]) == folded(b[same]))
        ++same;
    return one_is_short && length == strcspn(b, ".") && same == length;
}

/* The host of that name: its whole name or address, else its first label if that is unique. */
static int find_host(const char *name) {
    int found = -1;
    for (int i = 0; i < coll_cluster_hosts; ++i)
        if (same_name(name, coll_cluster_name_of(i)) || same_name(name, coll_cluster_address_of(i)))
            return i;
    for (int i = 0; i < coll_cluster_hosts; ++i) {
        if (!same_label(name, coll_cluster_name_of(i)))
            continue;
        if (found != -1)
            return -1;
        found = i;
    }
    return found;
}

/* FNV-1a (Fowler, Noll and Vo 1991). */
unsigned coll_hash(const char *text) {
    uint32_t hash = UINT32_C(2166136261);
    for (; *text != '\0'; ++text)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
    return hash;
}

/* A negative number for a host that is not of the cluster, the same for all its processes. */
static int number_of_stranger(char *name) {
    for (char *letter = name; *letter != '\0'; ++letter)
        *letter = folded(*letter);
    return -1 - (int)(coll_hash(name) >> 1);
}

/* LIBCOLL_PLACEMENT=rank: take it that rank r of MPI_COMM_WORLD is the topology's rank r. */
static int host_of_world_rank(char *name) {
    int rank;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
        return -1;
    snprintf(name, COLL_NAME, "rank %d", rank);
    return rank < coll_cluster_group_size(0) ? coll_cluster_host_of(0, rank) : -1;
}

/* LIBCOLL_HOST, or NULL; an empty one is none. */
static const char *told_name(void) {
    const char *told = getenv("LIBCOLL_HOST");
    return told != NULL && told[0] != '\0' ? told : NULL;
}

/* LIBCOLL_HOST where the machine's own name is another (containers, say); else gethostname(). */
static void own_name(char *name, size_t room) {
    const char *override = told_name();
    if (override != NULL)
        snprintf(name, room, "%s", override);
    else if (gethostname(name, room) != 0)
        name[0] = '\0';
    name[room - 1] = '\0';
}

/* The host of this process by its names; Slurm may know it by another one than itself. */
static int host_by_name(char *name, size_t room) {
    own_name(name, room);
    const int found = find_host(name);
    const char *slurm = getenv("SLURMD_NODENAME");
    if (found >= 0 || slurm == NULL || told_name() != NULL)
        return found;
    return find_host(slurm);
}

int coll_cluster_self(char *name) {
    char whole[256] = "";
    const char *placement = getenv("LIBCOLL_PLACEMENT");
    const int by_rank = placement != NULL && strcmp(placement, "rank") == 0;
    const int host = by_rank ? host_of_world_rank(whole) : host_by_name(whole, sizeof whole);
    memcpy(name, whole, COLL_NAME - 1);
    name[COLL_NAME - 1] = '\0';
    return host >= 0 ? host : number_of_stranger(whole);
}

int coll_cluster_host(void) {
    char name[COLL_NAME];
    const int host = coll_cluster_self(name);
    return host >= 0 ? host : -1;
}
