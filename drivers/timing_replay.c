/* Ranks come as late as in the recorded calls of a program, one recorded call after the other. */
#include "arrivals.h"

const struct timing by_replay = {
    .name = "replay", .each_call = 1, .late = 1, .repeat = arrivals_repeat};
