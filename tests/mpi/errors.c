/*
 * With a handler on the communicator alone, a mistake gives the same class of error as the MPI
 * library gives, and the communicator's own handler is told as often, with this communicator.
 *
 *   errors                     all mistakes in all collectives
 *   errors truncate KIND       a rank that expects less than is sent
 *   errors fatal KIND          errors are fatal: the program ends in a mistake
 *   errors fatal-inside KIND   the same in an error that a routine of the library finds
 */
#include "program.h"

enum { COUNT = 20 };

static MPI_Comm comm;
static int rank, size, handled, elsewhere;
static int buffer[COUNT * 64], other[COUNT * 64];

static void note(MPI_Comm *where, int *code, ...) {
    (void)code;
    ++handled;
    elsewhere += *where != comm;
}

static void bad_root(struct arguments *a) {
    a->root = size;
}

static void negative_root(struct arguments *a) {
    a->root = -5;
}

static void negative_count(struct arguments *a) {
    a->recv_count = -1;
}

static void negative_send_count(struct arguments *a) {
    a->send_count = -3;
}

static void null_type(struct arguments *a) {
    a->recv_type = MPI_DATATYPE_NULL;
}

static void null_send_type(struct arguments *a) {
    a->send_type = MPI_DATATYPE_NULL;
}

/* What a variable is that got no value. */
static void no_type(struct arguments *a) {
    a->recv_type = (MPI_Datatype)0;
}

static void no_send_type(struct arguments *a) {
    a->send_type = (MPI_Datatype)0;
}

static void no_operation(struct arguments *a) {
    a->op = (MPI_Op)0;
}

#ifndef OPEN_MPI /* which has other types for these */
static void exchanged(struct arguments *a) {
    a->recv_type = (MPI_Datatype)MPI_SUM;
    a->op = (MPI_Op)MPI_INT;
}

#endif
static void null_operation(struct arguments *a) {
    a->op = MPI_OP_NULL;
}

static void bits_of_reals(struct arguments *a) {
    a->recv_type = MPI_FLOAT;
    a->op = MPI_BAND;
}

static void place_of_no_pair(struct arguments *a) {
    a->op = MPI_MINLOC;
}

static void largest_byte(struct arguments *a) {
    a->recv_type = MPI_BYTE;
    a->op = MPI_MAX;
}

static void largest_complex(struct arguments *a) {
    a->recv_type = MPI_C_FLOAT_COMPLEX;
    a->op = MPI_MAX;
}

static void replacement(struct arguments *a) {
    a->op = MPI_REPLACE;
}

/* Predefined operations are for predefined types, but the type is a copy of one. */
static void sum_of_derived(struct arguments *a) {
    MPI_Type_dup(MPI_INT, &a->recv_type);
    a->op = MPI_SUM;
}

static void receive_in_place(struct arguments *a) {
    a->recv = MPI_IN_PLACE;
}

static void same_buffers(struct arguments *a) {
    a->recv = (void *)a->send;
}

static void no_buffer(struct arguments *a) {
    a->recv = NULL;
}

static void no_send_buffer(struct arguments *a) {
    a->send = NULL;
}

/*
 * What is wrong on the receiving side, or with all, on the sending side, or on both; and in which
 * collectives it can be: those with all of `has`.
 */
static const struct mistake {
    const char *name;
    void (*make)(struct arguments *arguments), (*make_sending)(struct arguments *arguments);
    int has;
    int needs_checks; /* Open MPI does not look, and works on what is nowhere */
} mistakes[] = {
    {"bad root", bad_root, NULL, ROOTED, 0},
    {"negative root", negative_root, NULL, ROOTED, 0},
    {"null operation", null_operation, NULL, REDUCES, 0},
    {"bits of reals", bits_of_reals, NULL, REDUCES, 0},
    {"place of no pair", place_of_no_pair, NULL, REDUCES, 0},
    {"largest byte", largest_byte, NULL, REDUCES, 0},
    {"largest complex number", largest_complex, NULL, REDUCES, 0},
    {"replacement", replacement, NULL, REDUCES, 0},
    {"sum of a derived type", sum_of_derived, NULL, REDUCES, 0},
    {"negative count", negative_count, negative_send_count, RECEIVES, 0},
    {"null type", null_type, null_send_type, RECEIVES, 0},
    {"no type", no_type, no_send_type, RECEIVES, 1},
    {"no operation", no_operation, NULL, REDUCES, 1},
#ifndef OPEN_MPI
    {"operation and type exchanged", exchanged, NULL, REDUCES, 0},
#endif
    {"no buffer", no_buffer, no_send_buffer, RECEIVES, 1},
    {"receive in place", receive_in_place, NULL, RECEIVES | SENDS, 1},
    {"same buffers", same_buffers, NULL, EXCHANGES, 1},
    {"same buffers", same_buffers, NULL, RECEIVES | REDUCES, 1},
};

/* In what the MPI library crashes by itself, or waits for ever. */
static const struct {
    const char *collective, *mistake;
} untold[] = {
#ifdef OPEN_MPI /* 4.1 */
    {"allgatherv", "negative count"},
#else /* MPICH 4.3 */
    {"reduce", "negative count"},
    {"reduce_scatter_block", "negative count"},
#endif
};

static int is_untold(const struct collective *collective, const struct mistake *mistake) {
#ifdef OPEN_MPI
    if (mistake->needs_checks)
        return 1;
#endif
    if (size == 1 && mistake->make == same_buffers) /* MPICH 4.3 ends in an assertion */
        return 1;
    for (size_t i = 0; i < sizeof untold / sizeof *untold; ++i)
        if (strcmp(untold[i].collective, collective->name) == 0 &&
            strcmp(untold[i].mistake, mistake->name) == 0)
            return 1;
    return 0;
}

static struct arguments correct(void) {
    return (struct arguments){.send = buffer,
                              .send_count = COUNT,
                              .send_type = MPI_INT,
                              .recv = other,
                              .recv_count = COUNT,
                              .recv_type = MPI_INT,
                              .op = MPI_SUM,
                              .comm = comm};
}

static int class_of(int error) {
    int class = -1;
    MPI_Error_class(error, &class);
    return class;
}

static void compare(const struct collective *collective, const char *name,
                    const struct arguments *wrong) {
    handled = elsewhere = 0;
    const int expected = class_of(call(collective, wrong, 1));
    const int by_native = handled;
    const int actual = class_of(call(collective, wrong, 0));
    if (expected == actual && handled == 2 * by_native && elsewhere == 0)
        return;
    fprintf(stderr, "%s, %s: class %d in place of %d, handler told %d times in place of %d\n",
            collective->name, name, actual, expected, handled - by_native, by_native);
    ++failures;
}

static void compare_sides(const struct collective *collective, const struct mistake *mistake,
                          int receiving, int sending) {
    struct arguments wrong = correct();
    if (receiving)
        mistake->make(&wrong);
    if (sending)
        mistake->make_sending(&wrong);
    compare(collective, mistake->name, &wrong);
    for (int k = 0; k < COLLECTIVES; ++k)
        EXPECT(!differs(k, 100, 0, 1, comm)); /* and it works on */
}

/* Every rank makes the mistake. With a root, both sides do: one side is not for all ranks to see.
 */
static void compare_with(const struct collective *collective, const struct mistake *mistake) {
    const int two_sides = (collective->has & SENDS) != 0 && (mistake->has & RECEIVES) != 0;
    if ((collective->has & mistake->has) != mistake->has || is_untold(collective, mistake))
        return;
    const int sending = two_sides && mistake->make_sending != NULL;
    const int together = two_sides && (collective->has & ROOTED);
    if (together && sending)
        compare_sides(collective, mistake, 1, 1);
    if (!together)
        compare_sides(collective, mistake, 1, 0);
    if (!together && sending && (collective->has & TWO_TYPES))
        compare_sides(collective, mistake, 0, 1);
}

static void compare_all(void) {
    for (int k = 0; k < COLLECTIVES; ++k)
        for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i)
            compare_with(&collectives[k], &mistakes[i]);
}

/* Another communicator's handlers are told: whose, is the MPI library's choice. */
static void no_communicator(void) {
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    struct arguments wrong = correct();
    wrong.comm = MPI_COMM_NULL;
    for (int k = 0; k < COLLECTIVES; ++k) {
#ifdef OPEN_MPI /* 4.1 crashes in the others */
        if (collectives[k].has & SENDS)
            continue;
#endif
        EXPECT(class_of(call(&collectives[k], &wrong, 0)) ==
               class_of(call(&collectives[k], &wrong, 1)));
    }
}

#ifndef OPEN_MPI /* 4.1 reads what is freed */
/* The handler is told once there, too. */
static void call_with_large_counts(const struct collective *collective,
                                   const struct arguments *wrong) {
    const MPI_Count counts[PEERS_MOST] = {0};
    const MPI_Aint displacements[PEERS_MOST] = {0};
    const struct large large = {.count = 1, .counts = counts, .displacements = displacements};
    if (collective->call_large == NULL)
        return;
    handled = 0;
    collective->call_large(wrong, &large, 0);
    EXPECT(handled == 1);
}
#endif

/*
 * Likewise of one that has been freed: they are told once. (Where they are functions that come
 * back, MPICH 4.3 returns no error.)
 */
static void freed_communicator(MPI_Errhandler handler) {
#ifndef OPEN_MPI
    MPI_Comm freed;
    struct arguments wrong = correct();
    MPI_Comm_dup(MPI_COMM_WORLD, &freed);
    wrong.comm = freed;
    MPI_Comm_free(&freed);
    for (int k = 0; k < COLLECTIVES; ++k) {
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        EXPECT(class_of(call(&collectives[k], &wrong, 1)) == MPI_ERR_COMM);
        EXPECT(class_of(call(&collectives[k], &wrong, 0)) == MPI_ERR_COMM);
        PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        PMPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        handled = 0;
        call(&collectives[k], &wrong, 0);
        EXPECT(handled == 1);
        call_with_large_counts(&collectives[k], &wrong);
    }
#else
    (void)handler;
#endif
}

static const struct collective *find(const char *name) {
    int k = 0;
    while (k < COLLECTIVES - 1 && strcmp(collectives[k].name, name) != 0)
        ++k;
    return &collectives[k];
}

/* The last rank expects less than is sent, which it alone sees. */
static int truncated(const struct collective *collective) {
    struct arguments arguments = correct();
    if (rank == size - 1)
        arguments.send_count = arguments.recv_count = COUNT / 2;
    return call(collective, &arguments, 0);
}

static void truncate_message(const struct collective *collective) {
    EXPECT(class_of(truncated(collective)) == (rank == size - 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
    EXPECT(handled == (rank == size - 1));
    EXPECT(elsewhere == 0);
}

/*
 * A barrier can be called on no communicator only. A rank for which the mistake does not count, as
 * one that only sends, ends its call; the barrier holds it until the others end the program.
 */
static void make_mistake(const struct collective *collective) {
    struct arguments wrong = correct();
    if (collective->has & REDUCES)
        wrong.op = MPI_OP_NULL;
    else if (collective->has & RECEIVES)
        wrong.recv_count = -1;
    else
        wrong.comm = MPI_COMM_NULL;
    call(collective, &wrong, 0);
    PMPI_Barrier(comm);
}

/* The result of this operation of MPICH is one int. Of one rank, it copies all. */
static void compare_operands(void) {
#ifdef MPIX_EQUAL
    int result[COUNT] = {0};
    if (size == 1)
        return;
    for (int i = 0; i < COUNT; ++i)
        buffer[i] = i;
    EXPECT(MPI_Allreduce(buffer, result, COUNT, MPI_INT, MPIX_EQUAL, comm) == MPI_SUCCESS);
    EXPECT(result[0] == 1 && result[1] == 0);
    buffer[COUNT - 1] = rank;
    EXPECT(MPI_Reduce(buffer, result, COUNT, MPI_INT, MPIX_EQUAL, 0, comm) == MPI_SUCCESS);
    EXPECT(rank != 0 || (result[0] == 0 && result[1] == 0));
#endif
}

/* An allgather from the own block's place. Each rank has another one: none may go another way. */
static void gather_in_place(void) {
    struct arguments wrong = correct();
    wrong.send = (int *)wrong.recv + rank * COUNT;
    if (size > 1)
        compare(find("allgather"), "own block at its place", &wrong);
}

/* One buffer and the same arrays for both sides: each rank sees that it is wrong. */
static void exchange_in_one_buffer(void) {
#ifndef OPEN_MPI
    int counts[PEERS_MOST], displacements[PEERS_MOST];
    for (int i = 0; i < size; ++i) {
        counts[i] = COUNT;
        displacements[i] = i * COUNT;
    }
    const int native = PMPI_Alltoallv(buffer, counts, displacements, MPI_INT, buffer, counts,
                                      displacements, MPI_INT, comm);
    const int ours = MPI_Alltoallv(buffer, counts, displacements, MPI_INT, buffer, counts,
                                   displacements, MPI_INT, comm);
    EXPECT(class_of(native) == class_of(ours));
#endif
}

static void go_on(void) {
    printf("went on\n");
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const char *mode = argc == 3 ? argv[1] : "";
    const struct collective *collective = find(argc == 3 ? argv[2] : "");
    for (int k = 0; k < COLLECTIVES; ++k)
        EXPECT(!differs(k, 100, 0, 1, comm));
    if (strcmp(mode, "fatal") == 0 || strcmp(mode, "fatal-inside") == 0) {
        mode[5] == '\0' ? make_mistake(collective) : (void)truncated(collective);
        go_on();
        return finish();
    }
    MPI_Comm_create_errhandler(note, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    if (strcmp(mode, "truncate") == 0) {
        truncate_message(collective);
    } else {
        compare_all();
        compare_operands();
        gather_in_place();
        exchange_in_one_buffer();
        no_communicator();
        freed_communicator(handler);
    }
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    return finish();
}
