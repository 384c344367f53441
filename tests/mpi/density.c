/*
 * Which types are plain bytes: random ones, made of others by all constructors, compared with what
 * MPI_Pack makes of them, other ones on each rank; and that no routine packs them.
 */
#include "program.h"

#include "counting.h"

/* MPICH 4.0 packs types wrongly once some 1,700 of them have been made. */
enum { TYPES = 1000, MEMBERS = 4, DEPTH = 3, EXTENT_MOST = 4096, FILLS = 4 };

static unsigned state;

static int one_of(int count) {
    return (int)(next_random(&state) % (unsigned)count);
}

/* Mostly as without a gap. */
static int perhaps(int natural, int other) {
    return one_of(8) != 0 ? natural : other;
}

static MPI_Datatype some_type(int depth);

static int extent_of(MPI_Datatype type) {
    MPI_Aint lower_bound, extent;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    return (int)extent;
}

/* Where its data ends, if it begins at 0 and has no gaps. */
static int size_of(MPI_Datatype type) {
    int size;
    MPI_Type_size(type, &size);
    return size;
}

struct members {
    int lengths[MEMBERS], displacements[MEMBERS];
    MPI_Aint bytes[MEMBERS];
};

/* Blocks one after the other, `unit` bytes for an element, now and then with a gap or exchanged. */
static struct members members_of(int count, int unit, int one_length) {
    struct members members;
    int next = one_of(6) == 0;
    for (int i = 0; i < count; ++i) {
        members.lengths[i] = one_length >= 0 ? one_length : one_of(3);
        members.displacements[i] = perhaps(next, next + one_of(3) - 1);
        members.bytes[i] = (MPI_Aint)members.displacements[i] * unit;
        next = members.displacements[i] + members.lengths[i];
    }
    if (count > 1 && one_of(8) == 0) {
        const int place = members.displacements[0];
        members.displacements[0] = members.displacements[1];
        members.displacements[1] = place;
        members.bytes[0] = (MPI_Aint)members.displacements[0] * unit;
        members.bytes[1] = (MPI_Aint)members.displacements[1] * unit;
    }
    return members;
}

static void make_struct(MPI_Datatype *type) {
    MPI_Datatype types[MEMBERS];
    MPI_Aint displacements[MEMBERS], next = 0;
    int lengths[MEMBERS];
    const int count = 1 + one_of(MEMBERS);
    for (int i = 0; i < count; ++i) {
        types[i] = some_type(DEPTH - 1);
        lengths[i] = one_of(3);
        displacements[i] = perhaps((int)next, (int)next + 4 * (one_of(3) - 1));
        next = displacements[i] + (MPI_Aint)lengths[i] * size_of(types[i]);
    }
#if MPI_VERSION >= 4
    if (one_of(2)) {
        MPI_Count many[MEMBERS], far[MEMBERS];
        for (int i = 0; i < count; ++i) {
            many[i] = lengths[i];
            far[i] = displacements[i];
        }
        MPI_Type_create_struct_c(count, many, far, types, type);
    } else
#endif
        MPI_Type_create_struct(count, lengths, displacements, types, type);
    for (int i = 0; i < count; ++i)
        MPI_Type_free(&types[i]);
}

static void make_subarray(MPI_Datatype inner, MPI_Datatype *type) {
    int sizes[3], parts[3], starts[3];
    const int dimensions = 1 + one_of(3), order = one_of(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < dimensions; ++i) {
        sizes[i] = 1 + one_of(3);
        parts[i] = perhaps(sizes[i], 1 + one_of(sizes[i]));
        starts[i] = one_of(sizes[i] - parts[i] + 1);
    }
#if MPI_VERSION >= 4
    if (one_of(2)) {
        MPI_Count large_sizes[3], large_parts[3], large_starts[3];
        for (int i = 0; i < dimensions; ++i) {
            large_sizes[i] = sizes[i];
            large_parts[i] = parts[i];
            large_starts[i] = starts[i];
        }
        MPI_Type_create_subarray_c(dimensions, large_sizes, large_parts, large_starts, order, inner,
                                   type);
        return;
    }
#endif
    MPI_Type_create_subarray(dimensions, sizes, parts, starts, order, inner, type);
}

/* By the functions for large counts; 0 if there are none. */
static int make_large(int which, MPI_Datatype inner, int count, int length, int stride,
                      const struct members *members, MPI_Datatype *type) {
#if MPI_VERSION >= 4
    MPI_Count lengths[MEMBERS], displacements[MEMBERS], bytes[MEMBERS];
    for (int i = 0; i < MEMBERS; ++i) {
        lengths[i] = members->lengths[i];
        displacements[i] = members->displacements[i];
        bytes[i] = members->bytes[i];
    }
    switch (which) {
    case 1:
        return MPI_Type_contiguous_c(count, inner, type) == MPI_SUCCESS;
    case 2:
        return MPI_Type_vector_c(count, length, stride, inner, type) == MPI_SUCCESS;
    case 3:
        return MPI_Type_create_hvector_c(count, length, (MPI_Count)stride * size_of(inner), inner,
                                         type) == MPI_SUCCESS;
    case 4:
        return MPI_Type_indexed_c(count, lengths, displacements, inner, type) == MPI_SUCCESS;
    case 5:
        return MPI_Type_create_hindexed_c(count, lengths, bytes, inner, type) == MPI_SUCCESS;
    case 6:
        return MPI_Type_create_indexed_block_c(count, length, displacements, inner, type) ==
               MPI_SUCCESS;
    case 7:
        return MPI_Type_create_hindexed_block_c(count, length, bytes, inner, type) == MPI_SUCCESS;
    }
#else
    (void)which, (void)inner, (void)count, (void)length, (void)stride, (void)members, (void)type;
#endif
    return 0;
}

static void make_small(int which, MPI_Datatype inner, int count, int length, int stride,
                       const struct members *members, MPI_Datatype *type) {
    switch (which) {
    case 1:
        MPI_Type_contiguous(count, inner, type);
        break;
    case 2:
        MPI_Type_vector(count, length, stride, inner, type);
        break;
    case 3:
        MPI_Type_create_hvector(count, length, (MPI_Aint)stride * size_of(inner), inner, type);
        break;
    case 4:
        MPI_Type_indexed(count, members->lengths, members->displacements, inner, type);
        break;
    case 5:
        MPI_Type_create_hindexed(count, members->lengths, members->bytes, inner, type);
        break;
    case 6:
        MPI_Type_create_indexed_block(count, length, members->displacements, inner, type);
        break;
    case 7:
        MPI_Type_create_hindexed_block(count, length, members->bytes, inner, type);
        break;
    }
}

static void make_blocks(int which, MPI_Datatype inner, MPI_Datatype *type) {
    const int count = 1 + one_of(MEMBERS), length = 1 + one_of(2);
    const int stride = perhaps(length, length + one_of(3) - 1);
    const int one_length = which == 6 || which == 7 ? length : -1;
    const struct members members = members_of(MEMBERS, size_of(inner), one_length);
    if (!one_of(2) || !make_large(which, inner, count, length, stride, &members, type))
        make_small(which, inner, count, length, stride, &members, type);
}

static void make_resized(MPI_Datatype inner, MPI_Datatype *type) {
    const int bound = perhaps(0, 4 * (one_of(3) - 1));
    MPI_Type_create_resized(inner, bound, perhaps(size_of(inner), extent_of(inner) + 4), type);
}

/* The caller frees it. */
static MPI_Datatype some_type(int depth) {
    const MPI_Datatype simple[] = {MPI_INT, MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
    MPI_Datatype inner, type;
    const int which = depth == 0 ? 0 : one_of(11);
    if (which == 0) {
        MPI_Type_dup(one_of(12) == 0 ? MPI_DOUBLE_INT : simple[one_of(4)], &type);
        return type;
    }
    if (which == 10) {
        make_struct(&type);
        return type;
    }
    for (inner = some_type(depth - 1); size_of(inner) == 0; inner = some_type(depth - 1))
        MPI_Type_free(&inner); /* MPICH 4.3 divides by its size */
    if (which == 8)
        make_subarray(inner, &type);
    else if (which == 9)
        make_resized(inner, &type);
    else
        make_blocks(which, inner, &type);
    MPI_Type_free(&inner);
    return type;
}

/* By what MPI says and does: its bytes are in order, from the address on, and nothing between. */
static int is_plain(MPI_Datatype type) {
    static char memory[3 * EXTENT_MOST], packed[EXTENT_MOST];
    MPI_Aint lower_bound, extent, low, bytes;
    MPI_Type_get_extent(type, &lower_bound, &extent);
    MPI_Type_get_true_extent(type, &low, &bytes);
    const int size = size_of(type);
    if (lower_bound != 0 || extent != size || (size > 0 && (low != 0 || bytes != size)))
        return 0;
    if (size == 0)
        return 1;
    for (int fill = 0; fill < FILLS; ++fill) {
        int position = 0;
        for (size_t i = 0; i < sizeof memory; ++i)
            memory[i] = (char)next_random(&state);
        MPI_Pack(memory + EXTENT_MOST, 1, type, packed, sizeof packed, &position, MPI_COMM_WORLD);
        EXPECT(position == size);
        if (memcmp(packed, memory + EXTENT_MOST, (size_t)size) != 0)
            return 0;
    }
    return 1;
}

static void compare_random_types(void) {
    int plain = 0, others = 0;
    for (int i = 0; i < TYPES; ++i) {
        int dense, again, twin_dense;
        MPI_Datatype twin, type = some_type(DEPTH);
        if (size_of(type) > EXTENT_MOST)
            continue;
        MPI_Type_commit(&type);
        const int expected = is_plain(type);
        EXPECT(coll_is_dense(type, &dense) == MPI_SUCCESS && dense == expected);
        EXPECT(coll_is_dense(type, &again) == MPI_SUCCESS && again == expected);
        MPI_Type_dup(type, &twin);
        EXPECT(coll_is_dense(twin, &twin_dense) == MPI_SUCCESS && twin_dense == expected);
        MPI_Type_free(&type);
        MPI_Type_free(&twin);
        plain += expected && dense;
        others += !expected;
    }
    EXPECT(plain > TYPES / 8);
    EXPECT(others > TYPES / 8);
}

/* As programs describe a structure. */
struct particle {
    double place[3];
    int number, kind;
};

static MPI_Datatype particle_type(void) {
    const int lengths[] = {3, 1, 1};
    const MPI_Aint displacements[] = {offsetof(struct particle, place),
                                      offsetof(struct particle, number),
                                      offsetof(struct particle, kind)};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT, MPI_INT};
    MPI_Datatype members, type;
    MPI_Type_create_struct(3, lengths, displacements, types, &members);
    MPI_Type_create_resized(members, 0, sizeof(struct particle), &type);
    MPI_Type_free(&members);
    MPI_Type_commit(&type);
    return type;
}

/* A routine on blocks of particles: the own block is not sent, and plain bytes are not packed. */
static void expect_no_packing(const struct coll_routine *routine, MPI_Datatype type, int rank,
                              int size) {
    enum { PARTICLES = 20 };
    const size_t bytes = (size_t)size * PARTICLES * sizeof(struct particle);
    char *out = malloc(bytes), *in = malloc(bytes), *expected = malloc(bytes);
    struct coll_comm *cc;
    for (size_t i = 0; i < bytes; ++i)
        out[i] = in[i] = expected[i] = (char)(i + 31 * (size_t)rank);
    struct coll_call call = {.collective = routine->collective,
                             .comm = MPI_COMM_WORLD,
                             .sendbuf = out,
                             .recvbuf = expected,
                             .send_count = PARTICLES,
                             .send_type = type,
                             .recv_count = PARTICLES,
                             .recv_type = type};
    coll_native[routine->collective]->run(&call, NULL, NULL);
    call.recvbuf = in;
    EXPECT(coll_comm_get(call.comm, &cc) == MPI_SUCCESS);
    EXPECT(coll_views[call.collective]->measure(&call) == MPI_SUCCESS);
    if (coll_applicable(routine, cc, call.bytes)) {
        EXPECT(coll_comm_private(call.comm, cc) == MPI_SUCCESS);
        memset(&counted, 0, sizeof counted);
        EXPECT(coll_run(routine, &call, cc, &routine->defaults) == MPI_SUCCESS);
        EXPECT(memcmp(in, expected, bytes) == 0);
        EXPECT(counted.copies == 0);
        if (routine->constraints & COLL_DENSE) /* others may put blocks together by packing them */
            EXPECT(counted.packed == 0);
    }
    free(out);
    free(in);
    free(expected);
}

int main(int argc, char **argv) {
    int rank, size, tried = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    state = (unsigned)rank;
    compare_random_types();
    MPI_Datatype type = particle_type();
    for (int i = 0; i < coll_routine_count; ++i) {
        const struct coll_routine *routine = &coll_routines[i];
        const struct coll_descriptor *descriptor = &coll_descriptors[routine->collective];
        if ((routine->constraints & COLL_UNPREPARED) || descriptor->uneven || descriptor->reduces ||
            descriptor->recv == COLL_NOTHING)
            continue;
        tried += (routine->constraints & COLL_DENSE) != 0;
        expect_no_packing(routine, type, rank, size);
    }
    EXPECT(tried > 0);
    MPI_Type_free(&type);
    return finish();
}
