/* lab_relay.c - a long link of the lab: holds every frame for the link's latency.
 *
 *     lab-relay NEAR FAR LATENCY_NS RATE QUEUE
 *
 * NEAR and FAR are two network devices of this process's network namespace. What arrives on one
 * leaves by the other, LATENCY_NS nanoseconds after it arrived, in the order of arrival. RATE is
 * the link's rate in bit/s, which the ports before the relay keep; it bounds the memory: for each
 * direction, twice RATE times the latency (short frames have long heads) and QUEUE bytes. The
 * relay writes a line to standard output when it is ready, and ends only on an error.
 *
 * The kernel writes arriving frames, with the time of their arrival, to a ring that this process
 * shares (TPACKET_V2). So the relay need not wake for a frame that arrives: it sleeps until the
 * first frame is due, and what arrived meanwhile is late only if the ring could fill.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1024, SLOT = 2048, BLOCK = 65536 }; /* the kernel's ring: 2 MB */
enum { SENDERS = 16, BATCH = 32, SEND_BUFFER = 8 << 20, LEAST_FRAME = 64 };
enum { HEAD = sizeof(struct virtio_net_hdr) }; /* before each frame: its unfinished checksum */
static const int64_t SECOND = 1000000000;
static const int64_t PAUSE = 100000; /* ns between two wakes: frames of fast links go together */

/* A device. A frame counts as its sender's until it has left the port of the next switch, so one
 * socket's share of memory could hold up the frames of all ports: hence several that send. */
struct port {
    int receiver;
    int senders[SENDERS];
    int sender; /* the one in turn */
    unsigned char *ring;
    unsigned slot; /* of the ring: the next one to read */
};

/* A frame that waits: this, then HEAD bytes, then the frame; aligned to 8 bytes. */
struct held {
    int64_t due;     /* on the monotonic clock, in ns */
    uint64_t length; /* of what follows; 0: the next one is at the start of the memory */
};

/* One direction of the link: a queue of `held` in a circle of memory. */
struct direction {
    struct port *from;
    struct port *to;
    unsigned char *memory;
    size_t size, first, end; /* bytes; first == end: empty */
    int64_t last;            /* when the last one taken is due */
};

static void fail(const char *what) {
    fprintf(stderr, "lab-relay: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static int open_socket(int device, int protocol) {
    int on = 1;
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(protocol), .sll_ifindex = device};
    int made = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (made < 0 || setsockopt(made, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof on))
        fail("packet socket");
    if (bind(made, (struct sockaddr *)&address, sizeof address))
        fail("bind a packet socket");
    return made;
}

static int open_sender(int device) {
    int made = open_socket(device, 0), bytes = SEND_BUFFER;
    if (setsockopt(made, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes)) /* root only */
        setsockopt(made, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    return made;
}

static void open_port(struct port *port, const char *name) {
    struct tpacket_req ring = {BLOCK, SLOTS * SLOT / BLOCK, SLOT, SLOTS};
    int device = (int)if_nametoindex(name), version = TPACKET_V2, on = 1;
    if (device == 0)
        fail(name);
    port->receiver = open_socket(device, 0); /* of no protocol, until its ring stands */
    if (setsockopt(port->receiver, SOL_PACKET, PACKET_VERSION, &version, sizeof version) ||
        setsockopt(port->receiver, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) ||
        setsockopt(port->receiver, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring))
        fail("ring of a packet socket");
    port->ring =
        mmap(NULL, (size_t)SLOTS * SLOT, PROT_READ | PROT_WRITE, MAP_SHARED, port->receiver, 0);
    if (port->ring == MAP_FAILED)
        fail("map the ring");
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = device};
    if (bind(port->receiver, (struct sockaddr *)&address, sizeof address))
        fail("bind the ring");
    for (int i = 0; i < SENDERS; i++)
        port->senders[i] = open_sender(device);
}

/* Room for `bytes` more at the end of the queue; NULL if there is none. */
static struct held *append(struct direction *way, size_t bytes) {
    if (way->first == way->end)
        way->first = way->end = 0;
    if (way->end < way->first)
        return way->end + bytes < way->first ? (struct held *)(way->memory + way->end) : NULL;
    if (way->end + bytes + sizeof(struct held) <= way->size)
        return (struct held *)(way->memory + way->end);
    if (bytes >= way->first)
        return NULL;
    ((struct held *)(way->memory + way->end))->length = 0;
    way->end = 0;
    return (struct held *)way->memory;
}

static size_t room(size_t length) {
    return sizeof(struct held) + ((length + 7) & ~(size_t)7);
}

/* Moves what has arrived from the ring to the queue, as far as there is memory. */
static void take(struct direction *way, int64_t latency) {
    int64_t here = now(CLOCK_MONOTONIC), wall = now(CLOCK_REALTIME);
    for (struct port *port = way->from;; port->slot = (port->slot + 1) % SLOTS) {
        unsigned char *slot = port->ring + (size_t)port->slot * SLOT;
        struct tpacket2_hdr *head = (struct tpacket2_hdr *)slot;
        if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            return;
        if (head->tp_snaplen == head->tp_len) { /* never longer: the hosts do not segment */
            size_t length = HEAD + head->tp_snaplen;
            struct held *frame = append(way, room(length));
            if (frame == NULL)
                return;
            int64_t age = wall - (head->tp_sec * SECOND + head->tp_nsec);
            age = age < 0 ? 0 : age > latency ? latency : age; /* the wall's clock may be set */
            frame->due = here - age + latency;
            if (frame->due < way->last)
                frame->due = way->last;
            way->last = frame->due;
            frame->length = length;
            memcpy(frame + 1, slot + head->tp_mac - HEAD, length);
            way->end += room(length);
        }
        __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    }
}

/* The first frame of the queue; NULL if it is empty. */
static struct held *front(struct direction *way) {
    if (way->first == way->end)
        return NULL;
    struct held *frame = (struct held *)(way->memory + way->first);
    if (frame->length == 0) {
        way->first = 0;
        frame = (struct held *)way->memory;
    }
    return frame;
}

/* Sends a batch; returns how many have left. Waits if all senders' memory is in use. */
static int send_batch(struct port *port, struct mmsghdr *messages, int count) {
    for (int tried = 0;;) {
        int sent = sendmmsg(port->senders[port->sender], messages, count, MSG_DONTWAIT);
        if (sent > 0)
            return sent;
        if (errno == ENOBUFS) /* the next port dropped it */
            return 1;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
            fail("send");
        port->sender = (port->sender + 1) % SENDERS;
        struct pollfd full = {.fd = port->senders[port->sender], .events = POLLOUT};
        if (++tried >= SENDERS)
            poll(&full, 1, 1);
    }
}

/* Sends what is due; returns when the next one is, or -1 if there is none. */
static int64_t release(struct direction *way) {
    for (;;) {
        struct iovec data[BATCH];
        struct mmsghdr messages[BATCH] = {0};
        int64_t here = now(CLOCK_MONOTONIC), due = -1;
        size_t saved = way->first;
        int count = 0;
        for (struct held *frame; count < BATCH && (frame = front(way)) != NULL; count++) {
            if (frame->due > here) {
                due = frame->due;
                break;
            }
            data[count] = (struct iovec){frame + 1, frame->length};
            messages[count].msg_hdr.msg_iov = &data[count];
            messages[count].msg_hdr.msg_iovlen = 1;
            way->first += room(frame->length);
        }
        if (count == 0)
            return due;
        int sent = send_batch(way->to, messages, count);
        if (sent == count)
            continue;
        for (way->first = saved; sent > 0; sent--) /* pass again what has left */
            way->first += room(front(way)->length);
    }
}

/* Runs the link for ever: take, release, sleep until the next frame is due. */
static void carry(struct direction *ways, int64_t latency, int64_t longest) {
    struct pollfd arrivals[2];
    for (int i = 0; i < 2; i++)
        arrivals[i] = (struct pollfd){.fd = ways[i].from->receiver, .events = POLLIN};
    for (;;) {
        int64_t begin = now(CLOCK_MONOTONIC), wake = begin + longest;
        int held = 0;
        for (int i = 0; i < 2; i++) {
            take(&ways[i], latency);
            int64_t due = release(&ways[i]);
            held |= due >= 0;
            if (due >= 0 && due < wake)
                wake = due;
        }
        if (held) {
            if (wake < begin + PAUSE)
                wake = begin + PAUSE;
            struct timespec until = {wake / SECOND, wake % SECOND};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        } else if (poll(arrivals, 2, -1) < 0
                       ? errno != EINTR
                       : (arrivals[0].revents | arrivals[1].revents) & POLLERR) {
            fail("wait for frames");
        }
    }
}

static struct direction direction(struct port *from, struct port *to, size_t size) {
    struct direction way = {.from = from, .to = to, .size = size};
    way.memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (way.memory == MAP_FAILED)
        fail("memory for held frames");
    return way;
}

int main(int count, char **words) {
    if (count != 6) {
        fprintf(stderr, "usage: lab-relay NEAR FAR LATENCY_NS RATE QUEUE\n");
        return 2;
    }
    int64_t latency = atoll(words[3]);
    double rate = atof(words[4]);
    size_t size = (size_t)(2 * rate / 8 * ((double)latency / SECOND)) + (size_t)atoll(words[5]);
    size = (size + 4095) & ~(size_t)4095;
    /* The ring must not be more than half full of the shortest frames. */
    double filled = SLOTS / 2 * LEAST_FRAME * 8 / rate * SECOND;
    int64_t longest = filled < (double)latency ? (int64_t)filled : latency;
    struct port near = {0}, far = {0};
    open_port(&near, words[1]);
    open_port(&far, words[2]);
    struct direction ways[2] = {direction(&near, &far, size), direction(&far, &near, size)};
    /* Before other processes, where that is allowed; exact timers in any case. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    prctl(PR_SET_TIMERSLACK, 1UL);
    puts("ready");
    fflush(stdout);
    carry(ways, latency, longest);
}
