/* Whether the MPI library takes buffers on a GPU, as routines of this library do not. */
#include <stddef.h>

#include "coll.h"

/*
 * What CUDA-aware MPI libraries and their like have, each some of these: Open MPI, MPICH, MVAPICH.
 * No header need declare them. Where there is none its address is NULL.
 */
#define MAYBE __attribute__((weak))
extern int MPIX_Query_cuda_support(void) MAYBE;
extern int MPIX_Query_rocm_support(void) MAYBE;
extern int MPIX_Query_hip_support(void) MAYBE;
extern int MPIX_Query_ze_support(void) MAYBE;
extern int MPIX_GPU_query_support(int gpu_type, int *is_supported) MAYBE;

/* MPICH's numbers of CUDA, ZE and HIP. */
enum { GPU_TYPES = 3 };

static int any_type_is_supported(void) {
    for (int type = 0; type < GPU_TYPES && MPIX_GPU_query_support != NULL; ++type) {
        int supported = 0;
        if (MPIX_GPU_query_support(type, &supported) == MPI_SUCCESS && supported)
            return 1;
    }
    return 0;
}

const char *coll_gpu_support(void) {
    const struct {
        const char *name;
        int (*query)(void);
    } queries[] = {
        {"MPIX_Query_cuda_support", MPIX_Query_cuda_support},
        {"MPIX_Query_rocm_support", MPIX_Query_rocm_support},
        {"MPIX_Query_hip_support", MPIX_Query_hip_support},
        {"MPIX_Query_ze_support", MPIX_Query_ze_support},
        {"MPIX_GPU_query_support", any_type_is_supported},
    };
    for (size_t i = 0; i < sizeof queries / sizeof *queries; ++i)
        if (queries[i].query != NULL && queries[i].query() == 1)
            return queries[i].name;
    return NULL;
}
