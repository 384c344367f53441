/* lab_idle.c - lets waiting MPI ranks sleep if there are more ranks than CPUs.
 *
 * Preloaded into every rank of the lab and of the local launcher. MPICH over UCX, and Open MPI
 * over TCP, wait for messages by calling epoll_wait() with a time limit of zero, over and over.
 * With sixteen ranks on two CPUs a waiting rank then keeps a CPU for a whole tick of the scheduler
 * while the rank that it waits for wants to run, and a message takes tens of milliseconds.
 *
 * Here, a rank that has polled SPINS times in a row in vain sleeps in its next calls until
 * something arrives. Arriving data wakes it at once. The time limit, FIRST_NS doubled call by
 * call up to LAST_NS, only bounds how long a rank can miss events outside of epoll, such as
 * messages in memory shared with another rank on its host. If there are such ranks,
 * LAB_IDLE_LONGEST_US sets a smaller limit than LAST_NS.
 * A program that polls between pieces of work (MPI_Test) pays little, since every event that it
 * finds starts the count anew.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 2 };
static const long FIRST_NS = 50000;
static const long LAST_NS = 2000000;

static __thread unsigned in_vain; /* empty polls of this thread since the last event */
static long longest_ns;           /* set once; threads that race set the same */

static long longest_pause(void) {
    const char *microseconds = getenv("LAB_IDLE_LONGEST_US");
    long wanted = microseconds ? strtol(microseconds, NULL, 10) * 1000 : LAST_NS;
    return wanted > 0 && wanted < LAST_NS ? wanted : LAST_NS;
}

/* The kernel's epoll_pwait2, which only recent C libraries have (glibc 2.35). */
static int sleep_in_epoll(int epoll, struct epoll_event *events, int most, long nanoseconds,
                          const sigset_t *mask) {
    struct timespec limit = {.tv_sec = 0, .tv_nsec = nanoseconds};
    int found = -1;
#ifdef SYS_epoll_pwait2
    found = (int)syscall(SYS_epoll_pwait2, epoll, events, most, &limit, mask, _NSIG / 8);
    if (found >= 0 || errno != ENOSYS)
        return found;
#endif
    (void)limit;
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, 1, mask, _NSIG / 8);
}

/* Contract of epoll_pwait(2), except that a limit of 0 may take up to LAST_NS. */
int epoll_pwait(int epoll, struct epoll_event *events, int most, int limit, const sigset_t *mask) {
    int found = (int)syscall(SYS_epoll_pwait, epoll, events, most, limit, mask, _NSIG / 8);
    if (found != 0 || limit != 0) {
        in_vain = 0;
        return found;
    }
    if (in_vain++ < SPINS)
        return 0;
    unsigned doublings = in_vain - SPINS - 1;
    long pause = doublings < 6 ? FIRST_NS << doublings : LAST_NS;
    if (longest_ns == 0)
        longest_ns = longest_pause();
    found = sleep_in_epoll(epoll, events, most, pause < longest_ns ? pause : longest_ns, mask);
    if (found > 0)
        in_vain = 0;
    return found < 0 && errno == EINTR ? 0 : found;
}

/* Contract of epoll_wait(2), with the same exception. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int limit) {
    return epoll_pwait(epoll, events, most, limit, NULL);
}
