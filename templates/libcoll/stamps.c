/* When the messages of a schedule in phases, or of rounds, go: built with -DCOLL_STAMPS. */
#include "coll.h"

#if defined(COLL_STAMPS) && !defined(COLL_TRACED)
#include <stdio.h>
#include <stdlib.h>

/* Of one call, in memory: to write meanwhile would take the time that is to be seen. */
enum { STAMPS_MOST = 1 << 16 };

static struct {
    double seconds;
    enum coll_stamp what;
    int phase, position;
} stamps[STAMPS_MOST];

static int count;

/* The file of this position holds its latest call, a line for each stamp. */
static void write_stamps(int position) {
    char name[4096];
    const char *folder = getenv("LIBCOLL_STAMPS");
    snprintf(name, sizeof name, "%s/stamps.%d", folder == NULL ? "." : folder, position);
    FILE *file = fopen(name, "w");
    for (int i = 0; file != NULL && i < count; ++i)
        fprintf(file, "%c %d %d %.7f\n", stamps[i].what, stamps[i].phase, stamps[i].position,
                stamps[i].seconds);
    if (file != NULL)
        fclose(file);
}

void coll_stamp(enum coll_stamp what, int phase, int position) {
    if (what == COLL_STAMP_BEGUN)
        count = 0;
    if (count < STAMPS_MOST) {
        stamps[count].seconds = PMPI_Wtime();
        stamps[count].what = what;
        stamps[count].phase = phase;
        stamps[count++].position = position;
    }
    if (what == COLL_STAMP_ENDED)
        write_stamps(position);
}
#else
typedef int coll_stamps_are_left_out; /* a file has to declare something */
#endif
