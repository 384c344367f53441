/*
 * Alltoallvs with blocks of very different lengths, some empty: those around the limits of routines
 * that treat short blocks in another way than long ones, and those of many segments.
 */
#include "program.h"

enum { CALLS = 40 };

static const int lengths[] = {0, 0, 1, 63, 64, 65, 511, 512, 513, 4095, 4096, 4097, 8192, 70001};

static int rank, size;

/* A number that all ranks know, and that changes with each of the arguments. */
static unsigned mixed(int call, int from, int to) {
    unsigned number = 2654435761u * (unsigned)(1 + call + 97 * from + 9973 * to);
    number ^= number >> 15;
    number *= 2246822519u;
    return number ^ number >> 13;
}

static int length_of(int call, int from, int to) {
    return lengths[mixed(call, from, to) % (sizeof lengths / sizeof *lengths)];
}

static unsigned char byte_of(int call, int from, int to, int place) {
    return (unsigned char)(mixed(call, from, to) + (unsigned)place * 7u);
}

static void set_blocks(struct blocks *blocks, int call, int sends) {
    int all = 0;
    for (int i = 0; i < size; ++i) {
        blocks->counts[i] = sends ? length_of(call, rank, i) : length_of(call, i, rank);
        blocks->displacements[i] = all;
        all += blocks->counts[i] + 1;
    }
}

static size_t room_of(const struct blocks *blocks) {
    return (size_t)blocks->displacements[size - 1] + (size_t)blocks->counts[size - 1] + 1;
}

static void exchange(int call) {
    struct blocks to, from;
    set_blocks(&to, call, 1);
    set_blocks(&from, call, 0);
    unsigned char *sent = calloc(room_of(&to), 1), *received = calloc(room_of(&from), 1);
    for (int i = 0; i < size; ++i)
        for (int place = 0; place < to.counts[i]; ++place)
            sent[to.displacements[i] + place] = byte_of(call, rank, i, place);
    EXPECT(MPI_Alltoallv(sent, to.counts, to.displacements, MPI_BYTE, received, from.counts,
                         from.displacements, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS);
    int wrong = 0;
    for (int i = 0; i < size; ++i) {
        for (int place = 0; place < from.counts[i]; ++place)
            wrong += received[from.displacements[i] + place] != byte_of(call, i, rank, place);
        wrong += received[from.displacements[i] + from.counts[i]] != 0; /* behind the block */
    }
    EXPECT(wrong == 0);
    free(sent);
    free(received);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int call = 0; call < CALLS; ++call)
        exchange(call);
    return finish();
}
