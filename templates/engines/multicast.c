/*
 * IP multicast beside messages. Each communicator has a UDP port of its own, which its rank 0 finds
 * free. All ranks join the group there, those of one host, too. A datagram counts only if it has
 * the number of the job and of the communicator, and of the release that this rank waits for:
 * datagrams of other jobs and communicators, old ones and repeated ones do not.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "multicast.h"

static const char VARIABLE[] = "LIBCOLL_MULTICAST";

/* The most communicators of a process that have a socket and a second communicator for it. */
enum { SOCKETS_MOST = 32 };

/* The most datagrams that are read at once, so that a flood of others keeps nobody here. */
enum { READ_MOST = 64 };

/* How long ranks wait for the first datagram of a communicator, and how often rank 0 sends it. */
static const double TEST_SECONDS = 1, AGAIN_SECONDS = 0.01;

/* After so many first datagrams that did not come, a process waits for no more. */
enum { FAILURES_MOST = 3 };

/* What the system keeps for a socket that nobody reads, in bytes: a few datagrams. */
enum { SOCKET_BUFFER = 1 << 14 };

/* What the first datagram says. */
enum { TEST = 0 };

/* What marks the datagrams of a communicator: rank 0 draws it, and sends it by messages. */
struct address {
    uint64_t job;
    uint32_t communicator;
    uint32_t port; /* 0: rank 0 has no socket */
};

struct datagram {
    uint64_t job;
    uint32_t communicator;
    uint32_t sequence;
    int32_t number;
    uint32_t bytes;
    char data[MULTICAST_MOST];
};

static const size_t HEAD = offsetof(struct datagram, data);

struct multicast {
    struct coll_states *states; /* of the communicator */
    MPI_Comm comm;              /* for the messages; or none if there is no multicast */
    int socket;
    struct sockaddr_in group;
    struct address address;
    uint32_t sequence;
    struct datagram heard;

    /* The message that is still to come, if `owed` is no null request. */
    MPI_Request owed;
    char *memory;
    int from, low, high;
};

/* The group and the interface; 0 leaves the interface to the route. */
struct setting {
    int is_set, is_right;
    struct in_addr group;
    int interface;
};

static struct setting setting;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_int sockets, failures;
static atomic_uint communicators;

/* Releases of a traced library are messages, which are events on both sides. */
#ifdef COLL_TRACED
static const int IS_TRACED = 1;
#else
static const int IS_TRACED = 0;
#endif

/* GROUP or GROUP%INTERFACE. */
static void read_setting(void) {
    const char *value = IS_TRACED ? NULL : getenv(VARIABLE);
    char text[INET_ADDRSTRLEN + 1 + IF_NAMESIZE];
    setting.is_set = value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
    if (!setting.is_set || strlen(value) >= sizeof text)
        return;
    strcpy(text, value);
    char *interface = strchr(text, '%');
    if (interface != NULL) {
        *interface++ = '\0';
        setting.interface = (int)if_nametoindex(interface);
    }
    setting.is_right = inet_pton(AF_INET, text, &setting.group) == 1 &&
                       IN_MULTICAST(ntohl(setting.group.s_addr)) &&
                       (interface == NULL || setting.interface > 0);
}

static uint64_t draw_job(void) {
    uint64_t job;
    struct timespec now;
    if (getrandom(&job, sizeof job, GRND_NONBLOCK) == sizeof job)
        return job;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec << 16 ^ (uint64_t)getpid();
}

static int join(int socket, struct sockaddr_in *group) {
    const int yes = 1, no = 0, room = SOCKET_BUFFER;
    const struct ip_mreqn member = {.imr_multiaddr = setting.group,
                                    .imr_ifindex = setting.interface};
    socklen_t length = sizeof *group;
    return setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
           setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0 &&
           setsockopt(socket, IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof no) == 0 &&
           setsockopt(socket, IPPROTO_IP, IP_MULTICAST_LOOP, &yes, sizeof yes) == 0 &&
           (setting.interface == 0 ||
            setsockopt(socket, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof member) == 0) &&
           setsockopt(socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member) == 0 &&
           bind(socket, (const struct sockaddr *)group, sizeof *group) == 0 &&
           getsockname(socket, (struct sockaddr *)group, &length) == 0;
}

static void close_socket(struct multicast *multicast) {
    if (multicast->socket < 0)
        return;
    close(multicast->socket);
    multicast->socket = -1;
    atomic_fetch_sub(&sockets, 1);
}

/* A socket at a port of the group, or at a free one if the port is 0. */
static int open_socket(struct multicast *multicast, uint32_t port) {
    multicast->socket = -1;
    if (!setting.is_right || atomic_load(&failures) >= FAILURES_MOST)
        return 0;
    if (atomic_fetch_add(&sockets, 1) >= SOCKETS_MOST) {
        atomic_fetch_sub(&sockets, 1);
        return 0;
    }
    multicast->socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    multicast->group = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = setting.group, .sin_port = htons((uint16_t)port)};
    if (multicast->socket < 0)
        atomic_fetch_sub(&sockets, 1);
    else if (!join(multicast->socket, &multicast->group))
        close_socket(multicast);
    return multicast->socket >= 0;
}

static void send_datagram(struct multicast *multicast, struct datagram *datagram) {
    datagram->job = multicast->address.job;
    datagram->communicator = multicast->address.communicator;
    datagram->sequence = multicast->sequence;
    (void)!sendto(multicast->socket, datagram, HEAD + datagram->bytes, MSG_DONTWAIT,
                  (const struct sockaddr *)&multicast->group, sizeof multicast->group);
}

static int is_ours(const struct multicast *multicast, ssize_t bytes) {
    const struct datagram *heard = &multicast->heard;
    return bytes >= (ssize_t)HEAD && heard->bytes == (size_t)bytes - HEAD &&
           heard->job == multicast->address.job &&
           heard->communicator == multicast->address.communicator &&
           heard->sequence == multicast->sequence;
}

int coll_multicast_heard(struct multicast *multicast, int *number) {
    for (int i = 0; i < READ_MOST; ++i) {
        const ssize_t bytes = recv(multicast->socket, &multicast->heard, sizeof multicast->heard,
                                   MSG_DONTWAIT | MSG_TRUNC);
        if (bytes < 0)
            return 0;
        if (is_ours(multicast, bytes)) {
            *number = multicast->heard.number;
            return 1;
        }
    }
    return 0;
}

int coll_multicast_take(struct multicast *multicast, void *data, int count, MPI_Datatype type) {
    int at = 0;
    return count == 0 ? MPI_SUCCESS
                      : PMPI_Unpack(multicast->heard.data, (int)multicast->heard.bytes, &at, data,
                                    count, type, multicast->comm);
}

void coll_multicast_tell(struct multicast *multicast, int number, const void *data, int count,
                         MPI_Datatype type) {
    struct datagram datagram = {.number = number};
    int bytes = 0;
    if (count > 0 && PMPI_Pack(data, count, type, datagram.data, sizeof datagram.data, &bytes,
                               multicast->comm) != MPI_SUCCESS)
        return;
    datagram.bytes = (uint32_t)bytes;
    send_datagram(multicast, &datagram);
}

/* Receive what is still to come. Its sender sent it before it left the release itself. */
static int settle(struct multicast *multicast) {
    if (multicast->owed == MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    MPI_Status status;
    int error = PMPI_Wait(&multicast->owed, &status);
    while (error == MPI_SUCCESS &&
           (status.MPI_TAG < multicast->low || status.MPI_TAG >= multicast->high))
        error = PMPI_Recv(multicast->heard.data, MULTICAST_MOST, MPI_PACKED, multicast->from,
                          MPI_ANY_TAG, multicast->comm, &status);
    free(multicast->memory);
    multicast->memory = NULL;
    return error;
}

int coll_multicast_begin(struct multicast *multicast, MPI_Comm *comm) {
    *comm = multicast->comm;
    ++multicast->sequence;
    return settle(multicast);
}

void coll_multicast_leave(struct multicast *multicast, MPI_Request *request, char **memory,
                          int from, int low, int high) {
    multicast->owed = *request;
    multicast->memory = *memory;
    multicast->from = from;
    multicast->low = low;
    multicast->high = high;
    *request = MPI_REQUEST_NULL;
    *memory = NULL;
}

/* The communicator ends, on all ranks. */
static int end(void *data) {
    struct multicast *multicast = data;
    int error = MPI_SUCCESS;
    close_socket(multicast);
    if (multicast->comm != MPI_COMM_NULL) {
        multicast->states->has_multicast = 0;
        error = settle(multicast);
        const int freed = PMPI_Comm_free(&multicast->comm);
        error = error == MPI_SUCCESS ? freed : error;
    }
    return error;
}

static int all_can(MPI_Comm comm, int own, int *all) {
    return PMPI_Allreduce(&own, all, 1, MPI_INT, MPI_MIN, comm);
}

/* Rank 0 sends until all ranks have answered; the others wait, but not for ever. */
static int test(struct multicast *multicast, const struct coll_comm *cc, int *all) {
    int can = cc->rank == 0, answered = 0, number;
    MPI_Request answer;
    for (const double end = PMPI_Wtime() + TEST_SECONDS; !can && PMPI_Wtime() < end; sched_yield())
        can = coll_multicast_heard(multicast, &number);
    COLL_TRY(PMPI_Iallreduce(&can, all, 1, MPI_INT, MPI_MIN, cc->comm, &answer));
    for (double next = 0; cc->rank == 0 && !answered; sched_yield()) {
        if (PMPI_Wtime() >= next) {
            struct datagram datagram = {.number = TEST};
            send_datagram(multicast, &datagram);
            next = PMPI_Wtime() + AGAIN_SECONDS;
        }
        COLL_TRY(PMPI_Test(&answer, &answered, MPI_STATUS_IGNORE));
    }
    return PMPI_Wait(&answer, MPI_STATUS_IGNORE);
}

/* Said by one process, and once, however many communicators there are. */
static void complain(const struct coll_comm *cc) {
    static atomic_int said;
    int initialized, rank = 0;
    if (PMPI_Initialized(&initialized) == MPI_SUCCESS && initialized)
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (cc->rank != 0 || rank != 0 || atomic_exchange(&said, 1))
        return;
    fprintf(stderr,
            "libcoll: %s: '%s' is no multicast group, or does not reach all ranks of a "
            "communicator, or over %d communicators need it: releases go along the tree alone\n",
            VARIABLE, getenv(VARIABLE), SOCKETS_MOST);
}

/* *all: whether all ranks have a socket, and hear rank 0. */
static int connect_all(struct multicast *multicast, const struct coll_comm *cc, int *all) {
    struct address *address = &multicast->address;
    if (cc->rank == 0 && open_socket(multicast, 0))
        *address = (struct address){draw_job(), atomic_fetch_add(&communicators, 1),
                                    ntohs(multicast->group.sin_port)};
    COLL_TRY(PMPI_Bcast(address, sizeof *address, MPI_BYTE, 0, cc->comm));
    if (cc->rank != 0 && address->port != 0)
        open_socket(multicast, address->port);
    COLL_TRY(all_can(cc->comm, multicast->socket >= 0, all));
    if (!*all)
        return MPI_SUCCESS;
    COLL_TRY(test(multicast, cc, all));
    if (!*all)
        atomic_fetch_add(&failures, 1);
    return MPI_SUCCESS;
}

/*
 * *all: whether all ranks could have one more communicator: the MPI library may have no more. A
 * rank that has one cannot free it without the others, and leaves it.
 */
static int make_comm(struct multicast *multicast, const struct coll_comm *cc, int *all) {
    const int can = PMPI_Comm_dup(cc->comm, &multicast->comm) == MPI_SUCCESS;
    COLL_TRY(all_can(cc->comm, can, all));
    if (*all) {
        multicast->states = cc->states;
        cc->states->multicast = multicast->comm;
        cc->states->has_multicast = 1;
    } else
        multicast->comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* *made is NULL on all ranks if there is none. */
static int make(const struct coll_comm *cc, struct multicast **made) {
    struct multicast *multicast = coll_comm_at_end(cc, sizeof *multicast, end);
    int all;
    *made = NULL;
    if (multicast != NULL) {
        multicast->comm = MPI_COMM_NULL;
        multicast->owed = MPI_REQUEST_NULL;
        multicast->socket = -1;
    }
    COLL_TRY(all_can(cc->comm, multicast != NULL, &all));
    if (!all)
        return MPI_SUCCESS;
    COLL_TRY(connect_all(multicast, cc, &all));
    if (all)
        COLL_TRY(make_comm(multicast, cc, &all));
    if (!all) {
        close_socket(multicast);
        complain(cc);
        return MPI_SUCCESS;
    }
    *made = multicast;
    return MPI_SUCCESS;
}

/* What was found out about a communicator, and is kept with it. */
struct kept {
    int known;
    struct multicast *multicast;
};

int coll_multicast_of(const struct coll_comm *cc, struct multicast **multicast) {
    static const char owner = 0;
    void *data = NULL;
    *multicast = NULL;
    pthread_once(&once, read_setting);
    if (!setting.is_set)
        return MPI_SUCCESS;
    COLL_TRY(coll_comm_agreed_state(cc, &owner, sizeof(struct kept), &data));
    struct kept *kept = data;
    if (kept == NULL)
        return MPI_SUCCESS;
    if (!kept->known)
        COLL_TRY(make(cc, &kept->multicast));
    kept->known = 1;
    *multicast = kept->multicast;
    return MPI_SUCCESS;
}
