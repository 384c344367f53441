/*
 * A C program that loads a library of Fortran for itself alone, as Python does with an extension:
 *   loads_fortran LIBRARY
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

int main(int argc, char **argv) {
    const int count = 3;
    void (*call)(const int *);
    MPI_Init(&argc, &argv);
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return EXIT_FAILURE;
    }
    *(void **)&call = dlsym(library, "call_barriers_");
    call(&count);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
