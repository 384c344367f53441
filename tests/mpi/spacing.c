/*
 * Elements that reach over others, or go downwards: a vector of them is right as it is, but not if
 * its pieces are put side by side elsewhere. All sizes up to 64 bytes for each rule of the library.
 */
#include "program.h"

static int reach; /* an element has a number at its place, and one that is so many further */

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    const double *from = in;
    double *into = inout;
    (void)type;
    for (int i = 0; i < *count; ++i) {
        into[i] += from[i];
        into[i + reach] += from[i + reach];
    }
}

static MPI_Datatype far_pair(int distance) {
    MPI_Datatype vector, type;
    MPI_Type_vector(2, 1, distance, MPI_DOUBLE, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(double), &type);
    MPI_Type_free(&vector);
    MPI_Type_commit(&type);
    return type;
}

struct buffers {
    int size;
    double *input, *expected, *actual;
};

/* So many numbers in each, some more around them. */
static struct buffers make(int size) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const size_t room = 3 * (size_t)size;
    struct buffers made = {size, calloc(room, sizeof(double)), calloc(room, sizeof(double)),
                           calloc(room, sizeof(double))};
    for (size_t i = 0; i < room; ++i)
        made.input[i] = made.expected[i] = made.actual[i] = rank * 1000 + (int)i;
    return made;
}

static int same(struct buffers made) {
    const size_t bytes = 3 * (size_t)made.size * sizeof(double);
    const int equal = memcmp(made.expected, made.actual, bytes) == 0;
    free(made.input);
    free(made.expected);
    free(made.actual);
    return equal;
}

static void reductions(int count, int p) {
    MPI_Op op;
    reach = count;
    MPI_Datatype type = far_pair(reach);
    MPI_Op_create(add, 1, &op);
    struct buffers one = make(2 * count);
    PMPI_Allreduce(one.input, one.expected, count, type, op, MPI_COMM_WORLD);
    MPI_Allreduce(one.input, one.actual, count, type, op, MPI_COMM_WORLD);
    EXPECT(same(one));
    struct buffers two = make(2 * count);
    PMPI_Reduce(two.input, two.expected, count, type, op, p - 1, MPI_COMM_WORLD);
    MPI_Reduce(two.input, two.actual, count, type, op, p - 1, MPI_COMM_WORLD);
    EXPECT(same(two));
    MPI_Type_free(&type);
    reach = count * p;
    type = far_pair(reach);
    struct buffers all = make(2 * count * p);
    PMPI_Reduce_scatter_block(all.input, all.expected, count, type, op, MPI_COMM_WORLD);
    MPI_Reduce_scatter_block(all.input, all.actual, count, type, op, MPI_COMM_WORLD);
    EXPECT(same(all));
    MPI_Type_free(&type);
    MPI_Op_free(&op);
}

/* An element that is mostly gap. Functions of the application assign it as a whole. */
struct padded {
    double number;
    int place;
    char gap[52];
};

static void take_larger(void *in, void *inout, int *count, MPI_Datatype *type) {
    const struct padded *from = in;
    struct padded *into = inout;
    (void)type;
    for (int i = 0; i < *count; ++i)
        if (from[i].number > into[i].number)
            into[i] = from[i];
}

static MPI_Datatype mostly_gap(void) {
    MPI_Datatype fields, type;
    MPI_Type_create_struct(
        2, (int[]){1, 1},
        (MPI_Aint[]){offsetof(struct padded, number), offsetof(struct padded, place)},
        (MPI_Datatype[]){MPI_DOUBLE, MPI_INT}, &fields);
    MPI_Type_create_resized(fields, 0, sizeof(struct padded), &type);
    MPI_Type_free(&fields);
    MPI_Type_commit(&type);
    return type;
}

static int is_the_last_one_s(const struct padded *elements, int count, int p) {
    for (int i = 0; i < count; ++i)
        if (elements[i].number != p - 1 || elements[i].place != 10 * (p - 1))
            return 0;
    return 1;
}

static void whole_elements(int count, int p) {
    int rank;
    MPI_Op op;
    MPI_Datatype type = mostly_gap();
    struct padded *input = calloc(2 * (size_t)(count * p), sizeof *input);
    struct padded *output = input + count * p;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < count * p; ++i)
        input[i] = (struct padded){rank, 10 * rank, {0}};
    MPI_Op_create(take_larger, 1, &op);
    MPI_Allreduce(input, output, count, type, op, MPI_COMM_WORLD);
    EXPECT(is_the_last_one_s(output, count, p));
    MPI_Reduce(input, output, count, type, op, 0, MPI_COMM_WORLD);
    EXPECT(rank != 0 || is_the_last_one_s(output, count, p));
    MPI_Reduce_scatter_block(input, output, count, type, op, MPI_COMM_WORLD);
    EXPECT(is_the_last_one_s(output, count, p));
    free(input);
    MPI_Type_free(&type);
    MPI_Op_free(&op);
}

static void downwards(int count, int p) {
    MPI_Datatype type;
    MPI_Type_create_resized(MPI_DOUBLE, 0, -(MPI_Aint)sizeof(double), &type);
    MPI_Type_commit(&type);
    struct buffers made = make(count * p);
    const int top = 2 * made.size;
    PMPI_Allgather(made.input, count, MPI_DOUBLE, made.expected + top, count, type, MPI_COMM_WORLD);
    MPI_Allgather(made.input, count, MPI_DOUBLE, made.actual + top, count, type, MPI_COMM_WORLD);
    EXPECT(same(made));
    MPI_Type_free(&type);
}

/* Blocks that do not touch only because they are apart. */
static void in_place(int count, int p) {
    MPI_Datatype type = far_pair(count);
    struct buffers made = make(2 * count * p);
    int *counts = malloc(2 * (size_t)p * sizeof *counts), *displacements = counts + p;
    for (int i = 0; i < p; ++i) {
        counts[i] = count;
        displacements[i] = 2 * count * i;
    }
    PMPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, made.expected, counts,
                   displacements, type, MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, made.actual, counts, displacements,
                  type, MPI_COMM_WORLD);
    EXPECT(same(made));
    free(counts);
    MPI_Type_free(&type);
}

int main(int argc, char **argv) {
    int p;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    const int most = argc > 1 ? atoi(argv[1]) : 0;
    for (int count = 1; count <= most; count += 3) {
        reductions(count, p);
        downwards(count, p);
        whole_elements(count, p);
    }
    for (int count = 1; count < 20; ++count)
        in_place(count, p);
    return finish();
}
