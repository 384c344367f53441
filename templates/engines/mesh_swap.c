/* All-to-all between the points of a mesh, along one side after the other. */
#include <stdbool.h>
#include <string.h>

#include "mesh_swap.h"

/*
 * Point r has coordinate r / stride % side along a side; its stride is the product of the sides
 * before. In the phase of a side, the points on one line swap: a point sends every other one the
 * slots with that one's coordinate, and what it receives takes their place. So after the phase, the
 * coordinate of a slot along this side tells where the slot came from, and no longer where it goes.
 */
struct line {
    int side, stride;
    int runs;     /* of `stride` slots with one coordinate: the product of the sides after */
    size_t bytes; /* of a slot */
};

/* Pack the slots with a coordinate, one right after the other, or unpack them. */
static void copy_slots(const struct line *line, int coordinate, char *slots, char *packed,
                       bool back) {
    const size_t run = (size_t)line->stride * line->bytes;
    for (int i = 0; i < line->runs; ++i) {
        char *slot = slots + (size_t)(i * line->side + coordinate) * run;
        char *copy = packed + (size_t)i * run;
        memcpy(back ? slot : copy, back ? copy : slot, run);
    }
}

/* One phase. The slots with a coordinate have place `coordinate` in `out` and in `in`. */
static int swap_along(const struct coll_comm *cc, const struct line *line, MPI_Datatype slot,
                      char *slots, char *out, char *in, MPI_Request *requests) {
    const int here = cc->rank / line->stride % line->side;
    const int count = line->stride * line->runs;
    int receives = 0, sends = 0, error = MPI_SUCCESS;
    for (int i = 1; i < line->side && error == MPI_SUCCESS; ++i) {
        const int there = (here + line->side - i) % line->side;
        error = PMPI_Irecv(in + (size_t)(there * count) * line->bytes, count, slot,
                           cc->rank + (there - here) * line->stride, COLL_TAG_DATA, cc->comm,
                           &requests[receives]);
        receives += error == MPI_SUCCESS;
    }
    for (int i = 1; i < line->side && error == MPI_SUCCESS; ++i) {
        const int there = (here + i) % line->side;
        char *packed = out + (size_t)(there * count) * line->bytes;
        copy_slots(line, there, slots, packed, false);
        error = PMPI_Isend(packed, count, slot, cc->rank + (there - here) * line->stride,
                           COLL_TAG_DATA, cc->comm, &requests[receives + sends]);
        sends += error == MPI_SUCCESS;
    }
    error = coll_complete(requests, receives, sends, error);
    for (int i = 1; i < line->side && error == MPI_SUCCESS; ++i) {
        const int there = (here + i) % line->side;
        copy_slots(line, there, slots, in + (size_t)(there * count) * line->bytes, true);
    }
    return error;
}

int coll_mesh_swap(const struct coll_comm *cc, int points, const int *sides, size_t bytes,
                   char *slots, char *work, MPI_Request *requests) {
    char *out = work, *in = work + (size_t)points * bytes;
    MPI_Datatype slot;
    COLL_TRY(PMPI_Type_contiguous((int)bytes, MPI_PACKED, &slot));
    COLL_TRY(PMPI_Type_commit(&slot));
    int error = MPI_SUCCESS;
    for (int stride = 1; stride < points && error == MPI_SUCCESS; stride *= *sides++) {
        const struct line line = {*sides, stride, points / stride / *sides, bytes};
        error = swap_along(cc, &line, slot, slots, out, in, requests);
    }
    COLL_TRY(PMPI_Type_free(&slot));
    return error;
}
