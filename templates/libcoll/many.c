/*
 * Messages of more elements than an int counts, for an MPI library that has no functions for them:
 * before MPI 4. Parts of so many elements are one element of a type that is made of them. With
 * -DCOLL_COUNT_MOST=N, for tests, messages of more than N elements go so with any MPI library.
 */
#include <limits.h>

#include "coll.h"

#ifdef COLL_COUNT_MOST

/* Elements as MPI takes them. */
struct many {
    int count;
    MPI_Datatype type;
    int is_made;
};

int coll_many_type(MPI_Count count, MPI_Datatype type, MPI_Datatype *many) {
    const MPI_Count parts = count / COLL_COUNT_MOST, rest = count % COLL_COUNT_MOST;
    MPI_Aint lower_bound, extent;
    MPI_Datatype part, body;
    if (parts > COLL_COUNT_MOST)
        return MPI_ERR_COUNT;
    COLL_TRY(PMPI_Type_get_extent(type, &lower_bound, &extent));
    COLL_TRY(PMPI_Type_contiguous(COLL_COUNT_MOST, type, &part));
    int error = PMPI_Type_contiguous((int)parts, part, &body);
    COLL_TRY(PMPI_Type_free(&part));
    COLL_TRY(error);
    const MPI_Aint displacements[] = {0, (MPI_Aint)(count - rest) * extent};
    const int lengths[] = {1, (int)rest};
    const MPI_Datatype types[] = {body, type};
    error = PMPI_Type_create_struct(2, lengths, displacements, types, many);
    COLL_TRY(PMPI_Type_free(&body));
    COLL_TRY(error);
    error = PMPI_Type_commit(many);
    if (error != MPI_SUCCESS)
        PMPI_Type_free(many);
    return error;
}

static int many_of(MPI_Count count, MPI_Datatype type, struct many *many) {
    *many = (struct many){1, type, count > COLL_COUNT_MOST};
    if (many->is_made)
        return coll_many_type(count, type, &many->type);
    many->count = (int)count;
    return MPI_SUCCESS;
}

/* After a message was posted, which ended in `error`: the type lives on until it is through. */
static int done_with(struct many *many, int error) {
    if (many->is_made)
        COLL_TRY(PMPI_Type_free(&many->type));
    return error;
}

int coll_isend_many(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                    MPI_Comm comm, MPI_Request *request) {
    struct many many;
    COLL_TRY(many_of(count, type, &many));
    return done_with(&many, PMPI_Isend(data, many.count, many.type, to, tag, comm, request));
}

int coll_issend_many(const void *data, MPI_Count count, MPI_Datatype type, int to, int tag,
                     MPI_Comm comm, MPI_Request *request) {
    struct many many;
    COLL_TRY(many_of(count, type, &many));
    return done_with(&many, PMPI_Issend(data, many.count, many.type, to, tag, comm, request));
}

int coll_irecv_many(void *data, MPI_Count count, MPI_Datatype type, int from, int tag,
                    MPI_Comm comm, MPI_Request *request) {
    struct many many;
    COLL_TRY(many_of(count, type, &many));
    return done_with(&many, PMPI_Irecv(data, many.count, many.type, from, tag, comm, request));
}

int coll_sendrecv_many(const void *out, MPI_Count out_count, MPI_Datatype out_type, int to,
                       int out_tag, void *in, MPI_Count in_count, MPI_Datatype in_type, int from,
                       int in_tag, MPI_Comm comm, MPI_Status *status) {
    struct many sent, received;
    COLL_TRY(many_of(out_count, out_type, &sent));
    const int made = many_of(in_count, in_type, &received);
    if (made != MPI_SUCCESS)
        return done_with(&sent, made);
    const int error = PMPI_Sendrecv(out, sent.count, sent.type, to, out_tag, in, received.count,
                                    received.type, from, in_tag, comm, status);
    return done_with(&sent, done_with(&received, error));
}

#endif
