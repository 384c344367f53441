/* The beginning and the end of MPI, and of communicators: what is not to be used any more. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#ifdef COLL_ADAPTIVE
#include "adaptive.h"
#else
#include "dispatch.h"
#endif
#include "libcoll.h"
#include "persistent.h"

/*
 * Other libraries may stand between the application and MPI as this one does: profilers that want
 * to see the program begin and end, and its requests. So the functions here, and those of
 * persistent.c, call those of their names that come next in the order of libraries, which are the
 * MPI library's own if there is no other. Collectives do not: see README.md. In C libraries
 * before 2.34, dlsym is of a library of its own, and there is none in a static program: PMPI_
 * serves there.
 */
#pragma weak dlsym

/* What dlsym finds as a function. */
static coll_any_function *found_in(void *place, const char *name) {
    coll_any_function *function = NULL;
    *(void **)&function = dlsym == NULL ? NULL : dlsym(place, name);
    return function;
}

coll_any_function *coll_next_of(const char *name, coll_any_function *of_mpi) {
    coll_any_function *found = found_in(RTLD_NEXT, name);
    return found == NULL ? of_mpi : found;
}

/*
 * Whether the program's calls of a function come here, and not to a library before this one, which
 * would pass them on to PMPI_. A program that has this library in itself, and does not show its
 * functions to others, finds only the next one.
 */
int coll_is_first(const char *name, coll_any_function *ours) {
    coll_any_function *found = found_in(RTLD_DEFAULT, name);
    return found == NULL || found == ours || found == found_in(RTLD_NEXT, name);
}

/*
 * While a communicator is freed, the application's functions that delete its attributes may call
 * collectives on it: before what is ours on it is gone or after that, which ranks need not have in
 * common. These calls are native. (Fortran programs of Open MPI free it without coming here.)
 */
struct dying {
    MPI_Comm comm;
    const struct dying *outer; /* which one of these functions frees another in */
};

static _Thread_local const struct dying *innermost;

int coll_is_dying(MPI_Comm comm) {
    for (const struct dying *one = innermost; one != NULL; one = one->outer)
        if (one->comm == comm)
            return 1;
    return 0;
}

/*
 * Only of a communicator that can end is anything given up here. Whether it has been freed before
 * is asked first: that tells an error handler, and the error is the call's.
 */
static int end(MPI_Comm *comm, int (*how)(MPI_Comm *comm)) {
    int rank, size;
    if (comm == NULL || *comm == MPI_COMM_NULL || *comm == MPI_COMM_WORLD || *comm == MPI_COMM_SELF)
        return how(comm);
    COLL_TRY(coll_member(*comm, &rank, &size));
    const struct dying dying = {*comm, innermost};
    innermost = &dying;
    coll_comm_end_together(dying.comm);
    coll_peers_part(dying.comm);
    const int error = how(comm);
    innermost = dying.outer;
    return error;
}

LIBCOLL_EXPORT int MPI_Comm_free(MPI_Comm *comm) {
    return end(comm, COLL_NEXT(MPI_Comm_free));
}

LIBCOLL_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm) {
    return end(comm, COLL_NEXT(MPI_Comm_disconnect));
}

/*
 * Sessions that are open; those of them that are in MPI_Session_finalize; and whether the world
 * model has come to its end.
 */
static atomic_int sessions, leaving, world_over;

static int world_is_active(void) {
    int begun = 0, over = 0;
    return PMPI_Initialized(&begun) == MPI_SUCCESS && PMPI_Finalized(&over) == MPI_SUCCESS &&
           begun && !over;
}

static int leave_world(MPI_Comm comm, int key, void *attribute, void *extra) {
    (void)comm;
    (void)key;
    (void)attribute;
    (void)extra;
    atomic_store(&world_over, 1);
    if (atomic_load(&sessions) > 0) { /* their threads may be in meetings */
        coll_comm_leave_world();
        return MPI_SUCCESS;
    }
#ifdef COLL_ADAPTIVE
    coll_leave_meetings();
#endif
    coll_comm_finalize();
    return MPI_SUCCESS;
}

/*
 * MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the latest one first. The
 * application's functions for that may call collectives whose counterparts other ranks call before
 * their MPI_Finalize: as long as these run, all goes on as before. So an attribute of ours is the
 * first of all, where the library is there from the beginning.
 */
void coll_watch_world(void) {
    static atomic_int watching;
    int key;
    if (atomic_load(&watching) || !world_is_active() || atomic_exchange(&watching, 1))
        return;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_world, &key, NULL) != MPI_SUCCESS)
        return;
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    PMPI_Comm_free_keyval(&key); /* once the attribute is deleted */
}

/* Calls on that communicator are native for good; others, of sessions, may go on. */
int coll_is_over(MPI_Comm comm) {
    return atomic_load(&world_over) &&
           (atomic_load(&sessions) <= 0 || comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
}

/* MPI may begin anew, with other keys for attributes. */
static void end_of_mpi(void) {
    if (atomic_load(&sessions) <= 0 && !world_is_active()) {
        coll_comm_restart();
        coll_persistent_restart();
    }
}

/* Also where the library is disabled: ranks on which it is not have to know. */
static int begin_world(int error) {
    if (error == MPI_SUCCESS && world_is_active()) {
        coll_settings(); /* as they are told to others */
        coll_watch_world();
        coll_peers_meet(MPI_COMM_WORLD);
        coll_events_open();
    }
    return error;
}

LIBCOLL_EXPORT int MPI_Init(int *argc, char ***argv) {
    return begin_world(COLL_NEXT(MPI_Init)(argc, argv));
}

LIBCOLL_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return begin_world(COLL_NEXT(MPI_Init_thread)(argc, argv, required, provided));
}

LIBCOLL_EXPORT int MPI_Finalize(void) {
    coll_trace_print();
    coll_histogram_write();
    coll_events_write();
#ifdef COLL_ADAPTIVE
    coll_learn_write();
#endif
    if (atomic_load(&sessions) <= atomic_load(&leaving))
        coll_persistent_finalize(1);
    const int error = COLL_NEXT(MPI_Finalize)();
    end_of_mpi();
    return error;
}

/* The ranks of a communicator that may not have met before. */
static int introduce(int error, const MPI_Comm *comm) {
    if (error == MPI_SUCCESS && comm != NULL && *comm != MPI_COMM_NULL)
        coll_peers_meet(*comm);
    return error;
}

LIBCOLL_EXPORT int MPI_Intercomm_merge(MPI_Comm intercomm, int high, MPI_Comm *comm) {
    return introduce(COLL_NEXT(MPI_Intercomm_merge)(intercomm, high, comm), comm);
}

/* Open MPI 5 has sessions, although it says that it is of MPI 3. */
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
LIBCOLL_EXPORT int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session *session) {
    const int error = COLL_NEXT(MPI_Session_init)(info, handler, session);
    atomic_fetch_add(&sessions, error == MPI_SUCCESS);
    return error;
}

/* MPI ends with the last session, unless the world goes on. */
LIBCOLL_EXPORT int MPI_Session_finalize(MPI_Session *session) {
    const int left = atomic_fetch_add(&leaving, 1) + 1;
    const int is_last = atomic_load(&sessions) <= left && !world_is_active();
    if (is_last) {
#ifdef COLL_ADAPTIVE
        coll_leave_meetings();
#endif
        coll_persistent_finalize(1);
    }
    const int error = COLL_NEXT(MPI_Session_finalize)(session);
    atomic_fetch_sub(&sessions, error == MPI_SUCCESS);
    atomic_fetch_sub(&leaving, 1);
    if (is_last) /* it failed, or another thread has begun a session meanwhile */
        coll_persistent_finalize(0);
    end_of_mpi();
    return error;
}

LIBCOLL_EXPORT int MPI_Comm_create_from_group(MPI_Group group, const char *tag, MPI_Info info,
                                              MPI_Errhandler handler, MPI_Comm *comm) {
    return introduce(COLL_NEXT(MPI_Comm_create_from_group)(group, tag, info, handler, comm), comm);
}
#endif

/*
 * Fault tolerance, where the MPI library has it (ULFM): ranks that wait in a routine of ours wait
 * on the private duplicate, which has to be revoked for them to wake up. So have those of plans and
 * of releases by multicast.
 */
#if defined(MPICH_VERSION) || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
LIBCOLL_EXPORT int MPIX_Comm_revoke(MPI_Comm comm);
extern int PMPIX_Comm_revoke(MPI_Comm comm) __attribute__((weak));

int MPIX_Comm_revoke(MPI_Comm comm) {
    if (PMPIX_Comm_revoke == NULL)
        return MPI_ERR_UNSUPPORTED_OPERATION;
    MPI_Comm twins[3] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
    if (comm != MPI_COMM_NULL) {
        twins[0] = coll_comm_twin(comm);
        twins[1] = coll_comm_plans_twin(comm);
        twins[2] = coll_comm_multicast_twin(comm);
    }
    const int error = COLL_NEXT(MPIX_Comm_revoke)(comm);
    for (int i = 0; i < 3 && error == MPI_SUCCESS; ++i)
        if (twins[i] != MPI_COMM_NULL)
            PMPIX_Comm_revoke(twins[i]);
    return error;
}
#endif
