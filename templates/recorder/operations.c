/* MPI's own operations by their names; all others are the program's. */
#include <string.h>

#include "recorder.h"

static struct {
    const char *name;
    MPI_Op op;
} operations[16];

static unsigned known;

static void add(const char *name, MPI_Op op) {
    uint64_t index;
    char *entry = recorder_take(RECORDER_OPERATIONS, 1, &index);
    if (entry != NULL)
        strncpy(entry, name, RECORDER_NAME - 1);
    operations[known].name = name;
    operations[known++].op = op;
}

/* At place 0 no operation, at the last place the program's own. */
void recorder_begin_operations(void) {
    add("", MPI_OP_NULL);
    add("sum", MPI_SUM);
    add("max", MPI_MAX);
    add("min", MPI_MIN);
    add("prod", MPI_PROD);
    add("land", MPI_LAND);
    add("band", MPI_BAND);
    add("lor", MPI_LOR);
    add("bor", MPI_BOR);
    add("lxor", MPI_LXOR);
    add("bxor", MPI_BXOR);
    add("minloc", MPI_MINLOC);
    add("maxloc", MPI_MAXLOC);
    add("of the program", MPI_OP_NULL);
}

unsigned recorder_operation(MPI_Op op) {
    for (unsigned i = 0; i < known - 1; ++i)
        if (operations[i].op == op)
            return i;
    return known - 1;
}
