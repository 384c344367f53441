/* Ranks come late by random delays, the same in all calls of a repetition (Faraj 2006, Fig. 4.20).
 */
#include "arrivals.h"

const struct timing by_imbalance = {
    .name = "imbalance", .each_call = 1, .late = 1, .repeat = arrivals_repeat};
