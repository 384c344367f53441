/* Calls of every collective from every root, of sizes that all rules of a library serve. */
#include "program.h"

enum { STEP = 64, RULES = 8 };

int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int collective = 0; collective < COLLECTIVES; ++collective)
        for (int bytes = 1; bytes < RULES * STEP; bytes += STEP / 4 - 1)
            for (int root = 0; root < ((collectives[collective].has & ROOTED) ? size : 1); ++root)
                EXPECT(!differs(collective, bytes, root, (unsigned)bytes, MPI_COMM_WORLD));
    return finish();
}
