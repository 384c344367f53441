/* The functions for Fortran are those of libcoll; here they call the recorder's. */
#include "recorder.h"
