/*
 * How often a call asks for a rule: once, even if it is the first on its communicator, and not at
 * all on native ones. Link with --wrap=coll_find_rule.
 */
#include "program.h"

#include "dispatch.h"

static int asked;

const struct coll_rule *__real_coll_find_rule(enum coll_collective collective, struct coll_comm *cc,
                                              MPI_Aint bytes);

const struct coll_rule *__wrap_coll_find_rule(enum coll_collective collective, struct coll_comm *cc,
                                              MPI_Aint bytes) {
    ++asked;
    return __real_coll_find_rule(collective, cc, bytes);
}

/* How many rules a call asks for; it must be right. */
static int rules_of_call(int collective, MPI_Comm comm) {
    asked = 0;
    EXPECT(!differs(collective, 100, 0, 1, comm));
    return asked;
}

int main(int argc, char **argv) {
    MPI_Comm twin;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (int collective = 0; collective < COLLECTIVES; ++collective) {
        EXPECT(rules_of_call(collective, twin) == 1);
        EXPECT(rules_of_call(collective, MPI_COMM_WORLD) == 1);
        EXPECT(rules_of_call(collective, MPI_COMM_WORLD) <=
               1); /* none if the first one was native */
        EXPECT(rules_of_call(collective, MPI_COMM_SELF) == 0);
    }
    MPI_Comm_free(&twin);
    return finish();
}
