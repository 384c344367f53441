/* Part of an MPI library that takes buffers on a GPU: it says so by one of the functions. */
#if defined SAYS_CUDA
int MPIX_Query_cuda_support(void) {
    return 1;
}
#elif defined SAYS_ROCM
int MPIX_Query_rocm_support(void) {
    return 1;
}
#elif defined SAYS_HIP
int MPIX_Query_hip_support(void) {
    return 1;
}
#elif defined SAYS_ZE
int MPIX_Query_ze_support(void) {
    return 1;
}
#elif defined SAYS_ANY
int MPIX_GPU_query_support(int gpu_type, int *is_supported) {
    *is_supported = gpu_type == 2;
    return 0;
}
#else
int MPIX_Query_cuda_support(void) {
    return 0;
}
#endif
