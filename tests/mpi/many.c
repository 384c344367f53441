/*
 * Elements that an int does not count, as one of a type: bytes and extent, and where the last one
 * is, for counts around the limits. No message is sent.
 */
#include <limits.h>

#ifndef COLL_COUNT_MOST /* as before MPI 4 */
#define COLL_COUNT_MOST INT_MAX
#endif
#include "coll.h"
#include "program.h"

/* Counts next to multiples of the most that a message has. */
static void expect_sizes(MPI_Datatype element) {
    static const MPI_Count factors[] = {1, 2, 3, 1024, 1 << 20};
    MPI_Count unit;
    MPI_Aint lower_bound, extent;
    PMPI_Type_size_x(element, &unit);
    PMPI_Type_get_extent(element, &lower_bound, &extent);
    for (int i = 0; i < (int)(sizeof factors / sizeof *factors); ++i) {
        for (int more = -1; more <= 1; ++more) {
            const MPI_Count count = factors[i] * COLL_COUNT_MOST + more;
            MPI_Count bytes, low, from, to;
            MPI_Datatype many;
            if (count <= COLL_COUNT_MOST || count > ((MPI_Count)1 << 58) / extent)
                continue;
            EXPECT(coll_many_type(count, element, &many) == MPI_SUCCESS);
            PMPI_Type_size_x(many, &bytes);
            PMPI_Type_get_extent_x(many, &low, &from);
            PMPI_Type_get_true_extent_x(many, &low, &to);
            EXPECT(bytes == count * unit);
            EXPECT(from == count * extent);
            EXPECT(to == (count - 1) * extent + unit);
            PMPI_Type_free(&many);
        }
    }
}

int main(int argc, char **argv) {
    MPI_Datatype spaced;
    MPI_Init(&argc, &argv);
    PMPI_Type_create_resized(MPI_INT, 0, 12, &spaced);
    PMPI_Type_commit(&spaced);
    expect_sizes(MPI_BYTE);
    expect_sizes(MPI_DOUBLE);
    expect_sizes(spaced);
    PMPI_Type_free(&spaced);
    return finish();
}
