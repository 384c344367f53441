/*
 * Copies between types of one signature, of lengths around those that MPI libraries cut; and to
 * elements without data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll.h"

enum { SIZE = 12 }; /* bytes of data of an element: a double and an int */

static MPI_Datatype structure(MPI_Aint of_double, MPI_Aint of_int, MPI_Aint extent) {
    const int lengths[] = {1, 1};
    const MPI_Aint displacements[] = {of_double, of_int};
    const MPI_Datatype types[] = {MPI_DOUBLE, MPI_INT};
    MPI_Datatype inner, type;
    MPI_Type_create_struct(2, lengths, displacements, types, &inner);
    MPI_Type_create_resized(inner, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    return type;
}

/* The data of so many elements, in the order of the type. */
static void pack(const char *from, int count, MPI_Datatype type, char *packed) {
    int position = 0;
    if (type == MPI_PACKED)
        memcpy(packed, from, (size_t)count * SIZE);
    else
        MPI_Pack(from, count, type, packed, count * SIZE, &position, MPI_COMM_SELF);
}

static int count_of(int elements, MPI_Datatype type) {
    return type == MPI_PACKED ? elements * SIZE : elements;
}

/* Whether a copy has the same data, and nothing else was written. */
static int is_right(const struct coll_comm *cc, int count, MPI_Datatype from, MPI_Datatype to) {
    const size_t room = (size_t)count * 32, data = (size_t)count * SIZE;
    char *source = malloc(room), *target = malloc(room), *left = malloc(room);
    char *given = malloc(data), *got = malloc(data);
    for (size_t i = 0; i < room; ++i)
        source[i] = (char)(i * 7 + i / 251);
    memset(target, 0x55, room);
    memset(left, 0x55, room);
    int right = coll_copy(source, count_of(count, from), from, target, count_of(count, to), to,
                          cc) == MPI_SUCCESS;
    pack(source, count, from, given);
    pack(target, count, to, got);
    right &= memcmp(given, got, data) == 0;
    int position = 0;
    if (to == MPI_PACKED)
        memcpy(left, given, data);
    else
        MPI_Unpack(given, (int)data, &position, left, count, to, MPI_COMM_SELF);
    right &= memcmp(target, left, room) == 0;
    free(source);
    free(target);
    free(left);
    free(given);
    free(got);
    return right;
}

/* Elements may have no data, and no room for any, but an extent: data does not fit in there. */
static int tells_of_no_room(const struct coll_comm *cc, MPI_Datatype from) {
    char source[32] = {0}, target[32];
    MPI_Datatype none, empty;
    int class = MPI_SUCCESS;
    memset(target, 0x55, sizeof target);
    MPI_Type_contiguous(0, MPI_INT, &none);
    MPI_Type_create_resized(none, 0, 4, &empty);
    MPI_Type_commit(&empty);
    MPI_Error_class(coll_copy(source, count_of(1, from), from, target, 1, empty, cc), &class);
    MPI_Type_free(&none);
    MPI_Type_free(&empty);
    return class == MPI_ERR_TRUNCATE && target[0] == 0x55;
}

int main(void) {
    const int counts[] = {0, 1, 1000, 1365, 1366, 5461, 5462, 50001};
    int wrong = 0, seen = 0;
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    struct coll_comm cc = {.comm = MPI_COMM_WORLD};
    MPI_Comm_rank(cc.comm, &cc.rank);
    MPI_Comm_size(cc.comm, &cc.size);
    const MPI_Datatype types[] = {structure(0, 8, 12),  structure(0, 8, 16), structure(8, 0, 16),
                                  structure(0, 20, 24), MPI_DOUBLE_INT,      MPI_PACKED};
    const int many = (int)(sizeof types / sizeof *types);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c)
        for (int i = 0; i < many; ++i)
            for (int j = 0; j < many; ++j, ++seen)
                if (!is_right(&cc, counts[c], types[i], types[j])) {
                    printf("%d elements from type %d to type %d\n", counts[c], i, j);
                    ++wrong;
                }
    for (int i = 0; i < many; ++i, ++seen)
        if (!tells_of_no_room(&cc, types[i])) {
            printf("an element of type %d is copied to one without data\n", i);
            ++wrong;
        }
    if (cc.rank == 0)
        printf("%d of %d copies are wrong\n", wrong, seen);
    MPI_Finalize();
    return wrong != 0;
}
