/* What ranks have for each other, where the blocks of a measured call differ in length. */
#ifndef BLOCK_TABLE_H
#define BLOCK_TABLE_H

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    int ranks;     /* 0: blocks are even */
    double *bytes; /* [from * ranks + to] */
} block_table;

static inline int block_table_ranks(void) {
    return block_table.ranks;
}

static inline void block_table_forget(void) {
    free(block_table.bytes);
    block_table.bytes = NULL;
    block_table.ranks = 0;
}

/* Keep `RANK TO BYTES TO BYTES...`, what one of so many ranks has for others. Returns 0 if wrong.
 */
static inline int block_table_keep(const char *words, int ranks) {
    char *end;
    const long from = strtol(words, &end, 10);
    if (end == words || from < 0 || from >= ranks)
        return 0;
    if (block_table.ranks != ranks) {
        block_table_forget();
        block_table.bytes = calloc((size_t)ranks * (size_t)ranks, sizeof *block_table.bytes);
        if (block_table.bytes == NULL)
            return 0;
        block_table.ranks = ranks;
    }
    for (;;) {
        words = end;
        const long to = strtol(words, &end, 10);
        if (end == words)
            return words[strspn(words, " \n")] == '\0';
        words = end;
        const double bytes = strtod(words, &end);
        if (end == words || to < 0 || to >= ranks || !(bytes >= 0))
            return 0;
        block_table.bytes[from * ranks + to] = bytes;
    }
}

/* The mean of the blocks between different ranks, as they were told. */
static inline double block_table_mean(void) {
    const int p = block_table.ranks;
    double sum = 0;
    for (int from = 0; from < p; ++from)
        for (int to = 0; to < p; ++to)
            sum += from == to ? 0 : block_table.bytes[from * p + to];
    return sum / p / (p - 1);
}

/* Bytes of a block, if the mean is to be so many. None becomes empty, as in patterns of a file. */
static inline int block_table_bytes(int from, int to, long mean) {
    const double told = block_table.bytes[from * block_table.ranks + to];
    const double bytes = nearbyint(told * (double)mean / block_table_mean());
    return told <= 0 ? 0 : bytes < 1 ? 1 : bytes < INT_MAX ? (int)bytes : INT_MAX;
}

/* The share of a rank's block in all blocks, where rank 0 told the block of each. */
static inline double block_table_share(int rank) {
    double sum = 0;
    for (int other = 0; other < block_table.ranks; ++other)
        sum += block_table.bytes[other];
    return block_table.bytes[rank] / sum;
}

/* Bytes of all that a rank sends, or receives. */
static inline size_t block_table_all(int rank, long mean, int sends) {
    size_t sum = 0;
    for (int other = 0; other < block_table.ranks; ++other)
        sum += (size_t)(sends ? block_table_bytes(rank, other, mean)
                              : block_table_bytes(other, rank, mean));
    return sum;
}

#endif
