/* How long timing_compute takes on this rank. */
#ifndef CALIBRATION_H
#define CALIBRATION_H

/* How many times 1,000 operations this rank does in a millisecond; measured at the first call. */
long calibration_rate(void);

/* The bound with which timing_compute takes so many milliseconds on this rank. */
long calibration_bound(double milliseconds);

#endif
