/*
 * Calls that the test knows. `delays`: four allreduces to which rank r comes 5·r ms after a
 * deadline; prints "RANK CALL BEFORE AFTER", nanoseconds of CLOCK_MONOTONIC. `kinds`: calls of many
 * kinds. `many N`: N barriers. `threads N`: two threads, each with N calls on a communicator of its
 * own. `spawn N`: two processes more make N barriers. `abort`, `exit`, `kill`, `error`: rank 1 ends
 * so after three barriers. `mistake communicator`, `mistake type`: a call with what is none, then a
 * barrier. `alone`: the keepers are killed between two barriers. `signals`: as `kill`, in a program
 * that gets many signals.
 */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

static int rank, size;

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_until(long long deadline) {
    const struct timespec time = {deadline / 1000000000, deadline % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0)
        ;
}

static void delays(void) {
    double one = 1, sum;
    for (int call = 0; call < 4; ++call) {
        long long start = now() + 20000000;
        MPI_Bcast(&start, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
        sleep_until(start + 5000000LL * rank);
        const long long before = now();
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        const long long after = now();
        printf("%d %d %lld %lld\n", rank, call, before, after);
        fflush(stdout);
    }
}

static void parts_of_the_world(void) {
    int data[8] = {0};
    MPI_Comm half, twin, other, merged;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Comm_dup(half, &twin);
    MPI_Bcast(data, 3, MPI_INT, 1, half);
    MPI_Bcast(data, 5, MPI_INT, 0, twin);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0, 7, &other);
    const int sends = rank % 2 == 0;
    MPI_Bcast(data, 6, MPI_INT, sends ? (rank == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0, other);
    MPI_Barrier(other);
    MPI_Intercomm_merge(other, 0, &merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&other);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);
}

static void kinds(void) {
    int to[64], from[64], counts[16], displacements[16];
    MPI_Datatype pair;
    MPI_Request request;
    memset(to, 0, sizeof to);
    for (int i = 0; i < size; ++i) {
        counts[i] = (rank + i) % 3;
        displacements[i] = 3 * i;
    }
    MPI_Type_vector(2, 1, 3, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Alltoall(to, 2, MPI_INT, from, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, from, 2, MPI_INT, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, from, 4, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Alltoallv(to, counts, displacements, MPI_INT, from, counts, displacements, MPI_INT,
                  MPI_COMM_WORLD);
    /* What does not count on a rank may be anything. */
    MPI_Gather(to, 3, MPI_INT, from, rank == 1 ? 3 : -9, rank == 1 ? MPI_INT : MPI_DATATYPE_NULL, 1,
               MPI_COMM_WORLD);
    MPI_Gatherv(to, rank + 1, MPI_INT, from, rank == 0 ? (int[]){1, 2, 3, 4} : NULL,
                rank == 0 ? displacements : NULL, rank == 0 ? MPI_INT : MPI_DATATYPE_NULL, 0,
                MPI_COMM_WORLD);
    MPI_Bcast(from, 1, pair, 0, MPI_COMM_WORLD);
    MPI_Iallreduce(to, from, 5, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Scan(to, from, 7, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
    MPI_Bcast_init(from, 2, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
#endif
    parts_of_the_world();
    MPI_Type_free(&pair);
}

/* Rank 0 between itself and all others: each group has as many counts as ranks of its own. */
static void between_uneven_groups(void) {
    enum { ABSENT = 100 };
    const int alone = rank == 0;
    const int counts[] = {alone ? 6 : 1, alone ? ABSENT : 2, alone ? ABSENT : 3};
    int to[6] = {0}, from[6];
    MPI_Comm own, other;
    MPI_Comm_split(MPI_COMM_WORLD, alone, rank, &own);
    MPI_Intercomm_create(own, 0, MPI_COMM_WORLD, alone ? 1 : 0, 7, &other);
    MPI_Reduce_scatter(to, from, counts, MPI_INT, MPI_SUM, other);
    MPI_Comm_free(&other);
    MPI_Comm_free(&own);
}

struct task {
    MPI_Comm comm;
    int count;
};

static void *many_calls(void *argument) {
    const struct task *task = argument;
    int one = 1, sum;
    for (int i = 0; i < task->count; ++i)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, task->comm);
    return NULL;
}

static void threads(int count) {
    pthread_t handles[2];
    struct task tasks[2];
    for (int i = 0; i < 2; ++i) {
        tasks[i].count = count;
        MPI_Comm_dup(MPI_COMM_WORLD, &tasks[i].comm);
    }
    for (int i = 0; i < 2; ++i)
        pthread_create(&handles[i], NULL, many_calls, &tasks[i]);
    for (int i = 0; i < 2; ++i) {
        pthread_join(handles[i], NULL);
        MPI_Comm_free(&tasks[i].comm);
    }
}

/* Two processes more, with a world of their own, that make so many barriers. */
static void spawn(char *program, int count) {
    char text[16];
    char *arguments[] = {"many", text, NULL};
    MPI_Comm others;
    snprintf(text, sizeof text, "%d", count);
    MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_disconnect(&others);
}

static void end_as(const char *how) {
    for (int i = 0; i < 3; ++i)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 1)
        MPI_Barrier(MPI_COMM_WORLD); /* never ends */
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "term") == 0)
        raise(SIGTERM);
    if (strcmp(how, "error") == 0)
        MPI_Bcast(NULL, -1, MPI_INT, 0, MPI_COMM_WORLD);
    exit(4);
}

/* The mistake is the same error as without a recorder, and nothing else. */
static void make_mistake(const char *which) {
    const int is_freed = strcmp(which, "communicator") == 0;
    const MPI_Datatype type = is_freed ? MPI_INT : (MPI_Datatype)0;
    int one = 1, sum, expected, actual;
    MPI_Comm comm, wrong;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    wrong = comm;
    if (is_freed) {
        MPI_Comm_free(&comm);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    MPI_Error_class(PMPI_Allreduce(&one, &sum, 1, type, MPI_SUM, wrong), &expected);
    MPI_Error_class(MPI_Allreduce(&one, &sum, 1, type, MPI_SUM, wrong), &actual);
    if (expected == MPI_SUCCESS || actual != expected)
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Whether a process runs this program for the same recording. */
static int is_of_recording(int process) {
    static char environment[1 << 16];
    char path[64], own[PATH_MAX] = "", other[PATH_MAX] = "", setting[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", process);
    if (readlink("/proc/self/exe", own, sizeof own - 1) < 0 ||
        readlink(path, other, sizeof other - 1) < 0 || strcmp(own, other) != 0)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/environ", process);
    FILE *file = fopen(path, "r");
    const size_t length = file == NULL ? 0 : fread(environment, 1, sizeof environment, file);
    if (file != NULL)
        fclose(file);
    snprintf(setting, sizeof setting, "STAGEGEN_RECORD=%s", getenv("STAGEGEN_RECORD"));
    return memmem(environment, length, setting, strlen(setting) + 1) != NULL;
}

/* Those processes of this program that are no ranks are the keepers; returns how many. */
static int kill_keepers(const int *ranks) {
    int killed = 0;
    const struct dirent *entry;
    DIR *processes = opendir("/proc");
    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        const int process = atoi(entry->d_name);
        int is_rank = 0;
        for (int i = 0; i < size; ++i)
            is_rank |= ranks[i] == process;
        if (process > 0 && !is_rank && is_of_recording(process))
            killed += kill(process, SIGKILL) == 0;
    }
    if (processes != NULL)
        closedir(processes);
    return killed;
}

static void be_alone(void) {
    int own = getpid(), ranks[16];
    MPI_Barrier(MPI_COMM_WORLD);
    PMPI_Allgather(&own, 1, MPI_INT, ranks, 1, MPI_INT, MPI_COMM_WORLD);
    if (rank == 0 && kill_keepers(ranks) != size)
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void take_note(int signal) {
    (void)signal;
}

/* As a profiler's: calls that wait are interrupted. 0 ends it. */
static void send_signals(long microseconds) {
    const struct sigaction action = {.sa_handler = take_note};
    const struct itimerval timer = {{0, microseconds}, {0, microseconds}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "kinds";
    const int count = argc > 2 ? atoi(argv[2]) : 100;
    const int gets_signals = strcmp(what, "signals") == 0;
    int provided;
    if (gets_signals)
        send_signals(300);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (gets_signals)
        send_signals(0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(what, "delays") == 0) {
        delays();
    } else if (strcmp(what, "kinds") == 0) {
        kinds();
    } else if (strcmp(what, "uneven") == 0) {
        between_uneven_groups();
    } else if (strcmp(what, "threads") == 0) {
        threads(count);
    } else if (strcmp(what, "spawn") == 0) {
        spawn(argv[0], count);
    } else if (strcmp(what, "mistake") == 0) {
        make_mistake(argc > 2 ? argv[2] : "");
    } else if (strcmp(what, "alone") == 0) {
        be_alone();
    } else if (strcmp(what, "many") == 0) {
        MPI_Comm parent;
        MPI_Comm_get_parent(&parent);
        for (int i = 0; i < count; ++i)
            MPI_Barrier(MPI_COMM_WORLD);
        if (parent != MPI_COMM_NULL)
            MPI_Comm_disconnect(&parent);
    } else {
        end_as(gets_signals ? "kill" : what);
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}
