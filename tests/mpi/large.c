/*
 * Large counts. Every MPI_..._c function with small counts is served as the one without; with more
 * elements or bytes than an int counts, it goes to the MPI library on all ranks alike.
 *
 *   large small         all functions, small counts
 *   large in_place      an alltoallv in place, which has no counts to send
 *   large many          more elements than INT_MAX of a type that has no bytes
 *   large init          a persistent broadcast of as many, made and freed
 *   large data MIB      broadcasts of so many MiB: as many elements, and as few long ones
 */
#include "program.h"

#include <limits.h>
#include <stdint.h>

#include "libcoll.h"

#if MPI_VERSION >= 4

enum { COUNT = 16 };

static int rank, size;

struct large_blocks {
    MPI_Count counts[PEERS_MOST];
    MPI_Aint displacements[PEERS_MOST];
};

static struct large_blocks large_blocks_of(MPI_Count count) {
    struct large_blocks blocks;
    for (int i = 0; i < PEERS_MOST; ++i) {
        blocks.counts[i] = count;
        blocks.displacements[i] = i * (count < INT_MAX ? count + 1 : 0);
    }
    return blocks;
}

/* The call with large counts: `count` in place of both counts of the arguments. */
static int call_large(int collective, const struct arguments *a, MPI_Count count, int native) {
    const struct large_blocks each = large_blocks_of(count);
    const struct large large = {count, each.counts, each.displacements};
    if (collectives[collective].call_large == NULL) /* a barrier has no count */
        return call(&collectives[collective], a, native);
    return collectives[collective].call_large(a, &large, native);
}

/* Both on buffers of so many bytes, filled alike. */
static void compare(int collective, struct arguments *arguments, MPI_Count count, size_t bytes) {
    char *input = malloc(bytes), *expected = malloc(bytes), *actual = malloc(bytes);
    for (size_t i = 0; i < bytes; ++i)
        input[i] = expected[i] = actual[i] = (char)((size_t)rank * 31 + i * 7);
    arguments->send = input;
    arguments->recv = expected;
    EXPECT(call_large(collective, arguments, count, 1) == MPI_SUCCESS);
    arguments->recv = actual;
    EXPECT(call_large(collective, arguments, count, 0) == MPI_SUCCESS);
    EXPECT(memcmp(expected, actual, bytes) == 0);
    free(input);
    free(expected);
    free(actual);
}

static void small(void) {
    const size_t bytes = (size_t)(COUNT + 1) * sizeof(int) * (size_t)size;
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int root = 0; root < size; ++root) {
            struct arguments arguments = {.send_type = MPI_INT,
                                          .recv_type = MPI_INT,
                                          .op = MPI_SUM,
                                          .root = root,
                                          .comm = MPI_COMM_WORLD};
            compare(collective, &arguments, COUNT, bytes);
        }
}

/* Blocks in place, then none. */
static void in_place(void) {
    const struct large_blocks blocks = large_blocks_of(COUNT);
    const MPI_Count none[PEERS_MOST] = {0};
    int values[PEERS_MOST * (COUNT + 1)];
    for (int i = 0; i < size * (COUNT + 1); ++i)
        values[i] = rank;
    EXPECT(MPI_Alltoallv_c(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, values, blocks.counts,
                           blocks.displacements, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < size * (COUNT + 1); ++i)
        EXPECT(values[i] == (i % (COUNT + 1) < COUNT ? i / (COUNT + 1) : rank));
    EXPECT(MPI_Alltoallv_c(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, values, none,
                           blocks.displacements, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
}

static void add_nothing(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in;
    (void)inout;
    (void)count;
    (void)type;
}

/* A persistent form calls nothing until it starts. */
static void init_of_nothing(void) {
    MPI_Datatype empty;
    MPI_Request request;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    EXPECT(MPI_Bcast_init_c(NULL, (MPI_Count)INT_MAX + 5, empty, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                            &request) == MPI_SUCCESS);
    EXPECT(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Type_free(&empty);
}

/* Elements of nothing, more of them than an int counts. */
static void many_of_nothing(void) {
    MPI_Datatype empty;
    MPI_Op op;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    MPI_Op_create(add_nothing, 1, &op);
    for (int collective = 0; collective < COLLECTIVES; ++collective) {
        struct arguments arguments = {
            .send_type = empty, .recv_type = empty, .op = op, .comm = MPI_COMM_WORLD};
        if (!(collectives[collective].has & REDUCES))
            compare(collective, &arguments, (MPI_Count)INT_MAX + 5, 64);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&empty);
}

/* Whether a message is what a rank makes; all of a page are alike, so that looking is quick. */
static char byte_of(int from, size_t i) {
    return (char)((size_t)from * 13 + (i >> 12) * 7);
}

static void data(size_t bytes) {
    char *message = malloc(bytes);
    size_t wrong = 0;
    EXPECT(message != NULL);
    if (message == NULL)
        return;
    for (size_t i = 0; i < bytes; i += 4096)
        memset(message + i, byte_of(rank, i), bytes - i < 4096 ? bytes - i : 4096);
    EXPECT(MPI_Bcast_c(message, (MPI_Count)bytes, MPI_BYTE, size - 1, MPI_COMM_WORLD) ==
           MPI_SUCCESS);
    for (size_t i = 0; i < bytes; ++i)
        wrong += message[i] != byte_of(size - 1, i);
    EXPECT(wrong == 0);
    /* The same as few elements of a long type, and by the function without large counts. */
    MPI_Datatype page;
    MPI_Type_contiguous(4096, MPI_BYTE, &page);
    MPI_Type_commit(&page);
    message[0] = message[bytes / 4096 * 4096 - 1] = (char)rank;
    EXPECT(MPI_Bcast(message, (int)(bytes / 4096), page, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    EXPECT(message[0] == 0 && message[bytes / 4096 * 4096 - 1] == 0);
    MPI_Type_free(&page);
    free(message);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *mode = argc > 1 ? argv[1] : "small";
    if (strcmp(mode, "small") == 0)
        small();
    else if (strcmp(mode, "in_place") == 0)
        in_place();
    else if (strcmp(mode, "init") == 0)
        init_of_nothing();
    else if (strcmp(mode, "many") == 0)
        many_of_nothing();
    else if (argc > 2)
        data((size_t)atol(argv[2]) << 20);
    return finish();
}

#else

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    printf("no large counts\n");
    return finish();
}

#endif
