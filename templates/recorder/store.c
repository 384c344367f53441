/* The memory that holds what is recorded, and the keeper that writes it if the process cannot. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recorder.h"

enum { SITES = 4096, COMMUNICATORS = 1 << 16, MEMBERS = 1 << 21, SAMPLES = 16, OPERATIONS = 64 };
enum { MEBIBYTE = 1 << 20, LIMIT = 64, LIMIT_MOST = 1 << 20, COUNTS_SHARE = 8, FILES = 65536 };

struct recorder_header *recorder_store;

static int keeper = -1; /* the socket to it */

const char *recorder_output(void) {
    const char *output = getenv("STAGEGEN_RECORD");
    return output == NULL || *output == '\0' ? NULL : output;
}

static uint64_t limit(void) {
    const char *text = getenv("STAGEGEN_RECORD_LIMIT");
    const long mebibytes = text == NULL ? LIMIT : strtol(text, NULL, 10);
    const long least = mebibytes < 1 ? LIMIT : mebibytes;
    return (uint64_t)(least > LIMIT_MOST ? LIMIT_MOST : least) * MEBIBYTE;
}

static void lay_out(struct recorder_header *header, uint64_t bytes) {
    const struct recorder_section sections[RECORDER_SECTIONS] = {
        [RECORDER_FUNCTIONS] = {.room = recorder_function_count, .size = RECORDER_NAME},
        [RECORDER_OPERATIONS] = {.room = OPERATIONS, .size = RECORDER_NAME},
        [RECORDER_SITES] = {.room = SITES, .size = sizeof(struct recorder_site)},
        [RECORDER_COMMUNICATORS] = {.room = COMMUNICATORS,
                                    .size = sizeof(struct recorder_communicator)},
        [RECORDER_MEMBERS] = {.room = MEMBERS, .size = sizeof(int32_t)},
        [RECORDER_SAMPLES] = {.room = SAMPLES, .size = sizeof(struct clocks_sample)},
        [RECORDER_COUNTS] = {.room = bytes / COUNTS_SHARE / sizeof(int64_t),
                             .size = sizeof(int64_t)},
        [RECORDER_EVENTS] = {.room = (bytes - bytes / COUNTS_SHARE) / sizeof(struct recorder_event),
                             .size = sizeof(struct recorder_event)},
    };
    uint64_t place = sizeof *header;
    for (int i = 0; i < RECORDER_SECTIONS; ++i) {
        header->sections[i].room = sections[i].room;
        header->sections[i].size = sections[i].size;
        header->sections[i].place = place;
        place += (sections[i].room * sections[i].size + 63) / 64 * 64;
    }
    header->bytes = place; /* of all, until it is written */
}

void *recorder_entry(enum recorder_sections section, uint64_t index) {
    const struct recorder_section *one = &recorder_store->sections[section];
    return (char *)recorder_store + one->place + index * one->size;
}

/* So many entries that follow each other; NULL if there is no room, which is counted. */
void *recorder_take(enum recorder_sections section, uint64_t count, uint64_t *index) {
    struct recorder_section *one = &recorder_store->sections[section];
    *index = atomic_fetch_add_explicit(&one->used, count, memory_order_relaxed);
    return *index + count > one->room ? NULL : recorder_entry(section, *index);
}

uint64_t recorder_filled(const struct recorder_header *header, int section) {
    const uint64_t used = atomic_load(&header->sections[section].used);
    return used < header->sections[section].room ? used : header->sections[section].room;
}

int recorder_write(int file, const void *data, uint64_t bytes) {
    for (const char *at = data; bytes > 0;) {
        const ssize_t done = write(file, at, bytes < INT_MAX ? bytes : INT_MAX);
        if (done < 0 && errno != EINTR)
            return errno;
        at += done < 0 ? 0 : done;
        bytes -= done < 0 ? 0 : (uint64_t)done;
    }
    return 0;
}

/* The header, then the entries that the sections have. */
int recorder_write_part(int file, const struct recorder_header *header) {
    struct recorder_header written;
    memcpy(&written, header, sizeof written);
    written.bytes = sizeof written;
    uint64_t filled[RECORDER_SECTIONS];
    for (int i = 0; i < RECORDER_SECTIONS; ++i) {
        filled[i] = recorder_filled(&written, i);
        written.sections[i].place = 0;
    }
    int error = recorder_write(file, &written, sizeof written);
    for (int i = 0; error == 0 && i < RECORDER_SECTIONS; ++i)
        error = recorder_write(file, (const char *)header + header->sections[i].place,
                               filled[i] * header->sections[i].size);
    return error;
}

/* The names of this process's part, while it is being written and after that. */
struct names {
    char folder[PATH_MAX], writing[2 * PATH_MAX], written[2 * PATH_MAX];
};

static void name_part(struct names *names, pid_t process) {
    const char *host = recorder_store->host;
    snprintf(names->folder, sizeof names->folder, "%s.parts", recorder_output());
    snprintf(names->writing, sizeof names->writing, "%s/%s-%d.writing", names->folder, host,
             (int)process);
    snprintf(names->written, sizeof names->written, "%s/%s-%d.part", names->folder, host,
             (int)process);
}

/* On a host that does not see the starter's folder, the part stays where it is written. */
static void save(const struct names *names) {
    mkdir(names->folder, 0777);
    const int file = open(names->writing, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const int failed = file < 0 || recorder_write_part(file, recorder_store) != 0;
    if ((file >= 0 && close(file) != 0) || failed || rename(names->writing, names->written) != 0) {
        fprintf(stderr, "stagegen recorder: cannot write %s: %s\n", names->written,
                strerror(errno));
        unlink(names->writing);
    }
}

/* The process's descriptors are its own, but for the output: its starter waits for that. */
static void let_go(int end) {
    const int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
#ifdef SYS_close_range
    const int low =
        end <= STDERR_FILENO + 1 || syscall(SYS_close_range, STDERR_FILENO + 1, end - 1, 0) == 0;
    if (low && syscall(SYS_close_range, end + 1, ~0U, 0) == 0)
        return;
#endif
    const long most = sysconf(_SC_OPEN_MAX);
    for (int file = STDERR_FILENO + 1; file < (most < 0 || most > FILES ? FILES : most); ++file)
        if (file != end)
            close(file);
}

/* Wait for a word of the process, or for its end, and write unless the word says not to. */
static void keep(int end, const struct names *names) {
    char word = 'w';
    ssize_t got;
    do
        got = read(end, &word, 1);
    while (got < 0 && errno == EINTR);
    if (got == 1 && word == 'd')
        unlink(names->writing);
    else if (recorder_store->ranks > 0) /* else MPI_Init did not end */
        save(names);
    else
        unlink(names->writing);
    _exit(0);
}

/*
 * Whether a keeper tells that it is there; the child that started it goes. Signals of the program
 * may come meanwhile. How the child ended is not asked: where the program ignores SIGCHLD, or waits
 * for all children in a handler, nobody can tell.
 */
static int has_begun(int end, pid_t child) {
    char word = 0;
    ssize_t got;
    do
        got = read(end, &word, 1);
    while (got < 0 && errno == EINTR);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    if (got == 0)
        errno = ECHILD;
    return got == 1;
}

/* A process that the program forks is not to keep the keeper waiting. */
static void leave_keeper(void) {
    if (keeper >= 0)
        close(keeper);
    keeper = -1;
}

/*
 * A grandchild, for which the process need not wait; it outlives signals to its group. A word for
 * it goes through a socket: to write into a pipe would end the program if the keeper is gone.
 */
static int start_keeper(void) {
    int ends[2];
    struct names names;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return -1;
    const pid_t process = getpid(), child = fork();
    if (child == 0) {
        setsid();
        const pid_t second = fork();
        if (second != 0)
            _exit(second < 0);
        static const int ignored[] = {SIGHUP, SIGINT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
        for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; ++i)
            signal(ignored[i], SIG_IGN);
        let_go(ends[0]);
        name_part(&names, process);
        close(open(names.writing, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)); /* the starter waits */
        while (write(ends[0], "b", 1) < 0 && errno == EINTR)
            ;
        keep(ends[0], &names);
    }
    close(ends[0]);
    if (child < 0 || !has_begun(ends[1], child)) {
        close(ends[1]);
        return -1;
    }
    return ends[1];
}

static int complain(const char *what) {
    fprintf(stderr, "stagegen recorder: %s: %s; nothing is recorded\n", what, strerror(errno));
    return 0;
}

/* Whether the process is to be recorded, and can be. */
int recorder_open(void) {
    if (recorder_output() == NULL || recorder_store != NULL)
        return 0;
    struct recorder_header draft = {.version = RECORDER_VERSION, .endian = RECORDER_ENDIAN};
    memcpy(draft.magic, "sgrecpt\n", sizeof draft.magic);
    lay_out(&draft, limit());
    void *memory = mmap(NULL, draft.bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return complain("no memory");
    recorder_store = memory;
    memcpy(recorder_store, &draft, sizeof draft);
    gethostname(recorder_store->host, RECORDER_HOST - 1);
    clocks_identify(recorder_store->clock, recorder_store->host);
    for (unsigned i = 0; i < recorder_function_count; ++i) {
        uint64_t index;
        strncpy(recorder_take(RECORDER_FUNCTIONS, 1, &index), recorder_functions[i].name,
                RECORDER_NAME - 1);
    }
    uint64_t index;
    recorder_take(RECORDER_COUNTS, 1, &index); /* place 0 stands for none */
    keeper = start_keeper();
    if (keeper >= 0)
        pthread_atfork(NULL, NULL, leave_keeper);
    else
        fprintf(stderr,
                "stagegen recorder: no second process: %s; nothing is kept if the program "
                "ends without MPI_Finalize\n",
                strerror(errno));
    return 1;
}

/*
 * All is told: the keeper has to write, or need not. If it is gone, its work is done here. One that
 * was killed just now gets the word, but does not act on it: the empty file is removed here, too.
 */
void recorder_dismiss(int written) {
    struct names names;
    const int is_gone = keeper < 0 || send(keeper, written ? "d" : "w", 1, MSG_NOSIGNAL) != 1;
    if (keeper >= 0)
        close(keeper);
    keeper = -1;
    name_part(&names, getpid());
    if (written)
        unlink(names.writing);
    else if (is_gone)
        save(&names);
}
