/*
 * Preloaded, a network that treats datagrams badly. LOSSY has words for what it does:
 *
 *   lose    some of them never come
 *   lost    none comes after the first one of each socket, on ranks with an odd number
 *   none    none comes at all, on rank 1
 *   again   each comes twice, and an old one in between
 *   foreign before each come damaged ones of another job and of another communicator
 *   damage  the last byte is another one if there is any data: what is told by them is wrong
 *   tell    at its end, a process says how many came
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DATAGRAM_MOST = 2048, JOB = 0, COMMUNICATOR = 8, HEAD = 24, SOCKETS_MOST = 1024 };

/* The last datagram, the first one of all, and how often they are still to come. */
static char last[DATAGRAM_MOST], oldest[DATAGRAM_MOST];
static ssize_t last_bytes, oldest_bytes;
static int repeats, foreign;
static unsigned came;

static int does(const char *what) {
    const char *lossy = getenv("LOSSY");
    return lossy != NULL && strstr(lossy, what) != NULL;
}

static int is_datagram(int socket) {
    int type;
    socklen_t length = sizeof type;
    return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM;
}

static int is_lost(int socket) {
    static char has_heard[SOCKETS_MOST];
    static unsigned number = 1;
    const char *name = getenv("PMI_RANK");
    const int rank = name == NULL ? 0 : atoi(name), first = !has_heard[socket % SOCKETS_MOST];
    has_heard[socket % SOCKETS_MOST] = 1;
    number = number * 1103515245U + 12345U;
    return (does("none") && rank == 1) || (does("lost") && rank % 2 == 1 && !first) ||
           (does("lose") && (number >> 16 & 1));
}

static ssize_t once_more(void *buffer, const char *datagram, ssize_t bytes) {
    --repeats;
    memcpy(buffer, datagram, (size_t)bytes);
    return bytes;
}

/* The last datagram as that of somebody else, with other data. */
static ssize_t of_others(char *buffer, int field) {
    memcpy(buffer, last, (size_t)last_bytes);
    buffer[field] ^= 1;
    if (last_bytes > HEAD)
        buffer[last_bytes - 1] ^= 1;
    return last_bytes;
}

ssize_t recv(int socket, void *buffer, size_t room, int flags) {
    ssize_t (*next)(int, void *, size_t, int) =
        (ssize_t(*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");
    if (!is_datagram(socket))
        return next(socket, buffer, room, flags);
    if (repeats == 2)
        return once_more(buffer, oldest, oldest_bytes);
    if (repeats == 1)
        return once_more(buffer, last, last_bytes);
    if (foreign > 0)
        return --foreign == 1 ? of_others(buffer, COMMUNICATOR)
                              : (memcpy(buffer, last, (size_t)last_bytes), last_bytes);
    const ssize_t bytes = next(socket, buffer, room, flags);
    if (bytes <= 0 || bytes > DATAGRAM_MOST)
        return bytes;
    if (is_lost(socket)) {
        errno = EAGAIN;
        return -1;
    }
    ++came;
    if (does("damage") && bytes > HEAD)
        ((char *)buffer)[bytes - 1] ^= 1;
    if (oldest_bytes == 0)
        memcpy(oldest, buffer, (size_t)(oldest_bytes = bytes));
    memcpy(last, buffer, (size_t)(last_bytes = bytes));
    repeats = does("again") ? 2 : 0;
    if (!does("foreign"))
        return bytes;
    foreign = 2;
    return of_others(buffer, JOB);
}

__attribute__((destructor)) static void say(void) {
    if (does("tell") && came > 0)
        fprintf(stderr, "%u datagrams came\n", came);
}
