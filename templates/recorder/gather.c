/* At MPI_Finalize rank 0 writes the parts of all ranks, one after the other, into one file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder.h"

enum { TAG = 2, PIECE = 1 << 22 };

/* A part as it is written, in pieces: the header first, then what the sections have. */
static void send_part(MPI_Comm comm) {
    struct recorder_header header;
    memcpy(&header, recorder_store, sizeof header);
    header.bytes = sizeof header;
    for (int i = 0; i < RECORDER_SECTIONS; ++i)
        header.sections[i].place = 0;
    PMPI_Send(&header, sizeof header, MPI_BYTE, 0, TAG, comm);
    for (int i = 0; i < RECORDER_SECTIONS; ++i) {
        const char *data = recorder_entry((enum recorder_sections)i, 0);
        uint64_t bytes = recorder_filled(recorder_store, i) * recorder_store->sections[i].size;
        while (bytes > 0) {
            const int piece = bytes < PIECE ? (int)bytes : PIECE;
            PMPI_Send(data, piece, MPI_BYTE, 0, TAG, comm);
            data += piece;
            bytes -= (uint64_t)piece;
        }
    }
}

/*
 * Write a rank's part unless there was an error before; returns the first error. The part is read
 * to its end nevertheless: its rank waits to send it.
 */
static int receive_part(int from, int file, char *buffer, int error, MPI_Comm comm) {
    struct recorder_header header;
    PMPI_Recv(&header, sizeof header, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
    error = error != 0 ? error : recorder_write(file, &header, sizeof header);
    for (int i = 0; i < RECORDER_SECTIONS; ++i) {
        uint64_t bytes = recorder_filled(&header, i) * header.sections[i].size;
        while (bytes > 0) {
            const int piece = bytes < PIECE ? (int)bytes : PIECE;
            PMPI_Recv(buffer, piece, MPI_BYTE, from, TAG, comm, MPI_STATUS_IGNORE);
            error = error != 0 ? error : recorder_write(file, buffer, (uint64_t)piece);
            bytes -= (uint64_t)piece;
        }
    }
    return error;
}

static int write_parts(MPI_Comm comm, const char *name) {
    char *buffer = malloc(PIECE);
    if (buffer == NULL)
        PMPI_Abort(comm, 1);
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int error = file < 0 ? errno : recorder_write_part(file, recorder_store);
    for (int rank = 1; rank < recorder_store->ranks; ++rank)
        error = receive_part(rank, file, buffer, error, comm);
    free(buffer);
    if (file >= 0 && close(file) != 0 && error == 0)
        error = errno;
    return error;
}

/* Collective. If it cannot be written there, every rank writes its part where it is. */
void recorder_gather(MPI_Comm comm) {
    char folder[PATH_MAX], writing[2 * PATH_MAX], written[2 * PATH_MAX];
    int done = 1;
    if (recorder_store->rank == 0) {
        snprintf(folder, sizeof folder, "%s.parts", recorder_output());
        snprintf(writing, sizeof writing, "%s/all-%016llx.incomplete", folder,
                 (unsigned long long)recorder_store->world);
        snprintf(written, sizeof written, "%s/all-%016llx.part", folder,
                 (unsigned long long)recorder_store->world);
        mkdir(folder, 0777);
        int error = write_parts(comm, writing);
        if (error == 0 && rename(writing, written) != 0)
            error = errno;
        if (error != 0) {
            fprintf(stderr, "stagegen recorder: cannot write %s: %s\n", written, strerror(error));
            unlink(writing);
        }
        done = error == 0;
    } else {
        send_part(comm);
    }
    PMPI_Bcast(&done, 1, MPI_INT, 0, comm);
    recorder_dismiss(done);
}
