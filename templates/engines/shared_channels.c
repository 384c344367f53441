/*
 * Short messages between ranks of a host, through memory that they share (a window of
 * MPI_Win_allocate_shared). The window ends when all ranks are in MPI_Comm_free: to free it is
 * collective.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#endif

#include "shared_channels.h"

/*
 * A rank that waits for a flag looks at it again and again, if the ranks of its host have a
 * processor each: after LOOKS looks, MPI gets its turn, as what this rank has sent may need that to
 * move. After TURNS turns, or at once if ranks share processors, it sleeps until it is woken. It
 * wakes by itself after NAP_NS, so that MPI gets its turn now and then, and says whether the
 * communicator is revoked.
 */
enum { LOOKS = 64, TURNS = 64, NAP_NS = 2000000 };

/* Of 1,024 processors each. */
enum { SETS = 8 };

static int host_ranks(const struct coll_comm *cc) {
    return cc->first_place[cc->host + 1] - cc->first_place[cc->host];
}

/* The ranks of this host, in their order, if they can share memory; else some of them. */
static int comm_of_host(const struct coll_comm *cc, MPI_Comm *host) {
    MPI_Comm near;
    COLL_TRY(PMPI_Comm_split_type(cc->comm, MPI_COMM_TYPE_SHARED, cc->rank, MPI_INFO_NULL, &near));
    const int error = PMPI_Comm_split(near, cc->host, cc->rank, host);
    COLL_TRY(PMPI_Comm_free(&near));
    COLL_TRY(error);
    return PMPI_Comm_set_errhandler(*host, MPI_ERRORS_RETURN);
}

/* All ranks of the window are in MPI_Comm_free. */
static int free_window(void *kept) {
    MPI_Win *window = kept;
    return *window == MPI_WIN_NULL ? MPI_SUCCESS : PMPI_Win_free(window);
}

static int all_of(MPI_Comm host, int mine, int *all) {
    return PMPI_Allreduce(&mine, all, 1, MPI_INT, MPI_MIN, host);
}

/*
 * How many processors the ranks of a host may use. The system, or what starts the job, may let a
 * rank use only some of them, and each rank others.
 */
static int count_processors(MPI_Comm host, long *count) {
    *count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t own[SETS], together[SETS];
    int told;
    memset(own, 0, sizeof own);
    COLL_TRY(all_of(host, sched_getaffinity(0, sizeof own, own) == 0, &told));
    COLL_TRY(PMPI_Allreduce(own, together, sizeof own, MPI_BYTE, MPI_BOR, host));
    if (told)
        *count = CPU_COUNT_S(sizeof together, together);
#else
    (void)host;
#endif
    return MPI_SUCCESS;
}

/* Find where everyone's channels are. */
static int find_channels(const struct coll_comm *cc, MPI_Win window, struct shared_channel **of) {
    for (int k = 0; k < host_ranks(cc); ++k) {
        MPI_Aint bytes;
        int unit;
        COLL_TRY(PMPI_Win_shared_query(window, k, &bytes, &unit, &of[k]));
    }
    return MPI_SUCCESS;
}

/*
 * A window of so many channels, and where everyone's part of it is. Where one rank has none, or
 * cannot find the parts, *all is 0. A window that some ranks could not make, none can free.
 */
static int make_window(const struct coll_comm *cc, MPI_Comm host, int count, MPI_Win *window,
                       struct shared_channel **of, int *all) {
    const MPI_Aint bytes = (MPI_Aint)count * (MPI_Aint)sizeof **of;
    struct shared_channel *own;
    long processors;
    COLL_TRY(count_processors(host, &processors));
    int made = PMPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, host, &own, window);
    COLL_TRY(all_of(host, made == MPI_SUCCESS, all));
    if (!*all)
        return MPI_SUCCESS;
    memset(own, 0, (size_t)bytes);
    for (int i = 0; i < count; ++i)
        own[i].taken.crowded = own[i].written.crowded = processors < host_ranks(cc);
    made = find_channels(cc, *window, of);
    COLL_TRY(all_of(host, made == MPI_SUCCESS, all)); /* and all flags are set after it */
    return *all ? MPI_SUCCESS : PMPI_Win_free(window);
}

/* Allocate on a host whose ranks may share memory. Where one rank cannot, none does. */
static int allocate(const struct coll_comm *cc, MPI_Comm host, int count,
                    struct shared_channel ***of) {
    struct shared_channel **found = malloc((size_t)host_ranks(cc) * sizeof *found);
    MPI_Win made, *kept = coll_comm_at_end(cc, sizeof *kept, free_window);
    if (kept != NULL)
        *kept = MPI_WIN_NULL;
    int all = 0;
    int error = all_of(host, found != NULL && kept != NULL, &all);
    if (error == MPI_SUCCESS && all)
        error = make_window(cc, host, count, &made, found, &all);
    if (error == MPI_SUCCESS && all) {
        *kept = made;
        *of = found;
        return MPI_SUCCESS;
    }
    free(found);
    return error;
}

int coll_shared_channels(const struct coll_comm *cc, int count, struct shared_channel ***of) {
    MPI_Comm host;
    int size, error;
    *of = NULL;
    COLL_TRY(comm_of_host(cc, &host));
    error = PMPI_Comm_size(host, &size);
    if (error == MPI_SUCCESS && size == host_ranks(cc) && size > 1)
        error = allocate(cc, host, count, of);
    COLL_TRY(PMPI_Comm_free(&host));
    return error;
}

static int has(struct shared_flag *flag, unsigned number) {
    return atomic_load_explicit(&flag->number, memory_order_acquire) == number;
}

/* Sleep until the flag changes or a while has passed; *woken is 0 in the latter case. */
static void nap(struct shared_flag *flag, unsigned number, int *woken) {
#ifdef __linux__
    const struct timespec most = {.tv_nsec = NAP_NS};
    atomic_store(&flag->sleeps, 1); /* before the look: a rank that sets it later wakes this one */
    const unsigned seen = atomic_load(&flag->number);
    *woken = seen == number ||
             syscall(SYS_futex, (unsigned *)&flag->number, FUTEX_WAIT, seen, &most, NULL, 0) == 0;
    atomic_store_explicit(&flag->sleeps, 0, memory_order_relaxed);
#else
    (void)flag;
    (void)number;
    *woken = 0;
    sched_yield();
#endif
}

static int wait_for(const struct coll_comm *cc, struct shared_flag *flag, unsigned number) {
    const unsigned turns = flag->crowded ? 0 : TURNS;
    for (unsigned looks = 1; !has(flag, number); ++looks) {
        int come, woken = 0;
        if (looks % LOOKS != 0 && turns > 0)
            continue;
        if (looks / LOOKS >= turns)
            nap(flag, number, &woken);
        if (!woken)
            COLL_TRY(PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, cc->comm, &come, MPI_STATUS_IGNORE));
        if (looks / LOOKS < turns)
            sched_yield();
    }
    return MPI_SUCCESS;
}

static void set(struct shared_flag *flag, unsigned number) {
    atomic_store(&flag->number, number); /* before the look at the sleeper */
#ifdef __linux__
    if (atomic_load(&flag->sleeps))
        syscall(SYS_futex, (unsigned *)&flag->number, FUTEX_WAKE, 1, NULL, NULL, 0);
#endif
}

int coll_shared_begin(const struct coll_comm *cc, struct shared_channel *channel, unsigned number) {
    return wait_for(cc, &channel->taken, number - 1);
}

void coll_shared_wrote(struct shared_channel *channel, unsigned number) {
    coll_event_time(&channel->written_at);
    set(&channel->written, number);
}

int coll_shared_await(const struct coll_comm *cc, struct shared_channel *channel, unsigned number) {
    return wait_for(cc, &channel->written, number);
}

void coll_shared_took(struct shared_channel *channel, unsigned number) {
    set(&channel->taken, number);
}
