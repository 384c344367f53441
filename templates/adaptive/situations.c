/* Which situation a call belongs to. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "adaptive.h"

/* What hangs on all communicators. */
static struct coll_adaptive *all;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void enter_in_list(struct coll_adaptive *adaptive) {
    pthread_mutex_lock(&mutex);
    adaptive->next = all;
    all = adaptive;
    pthread_mutex_unlock(&mutex);
}

static void leave_list(const struct coll_adaptive *adaptive) {
    pthread_mutex_lock(&mutex);
    struct coll_adaptive **place = &all;
    while (*place != NULL && *place != adaptive)
        place = &(*place)->next;
    if (*place != NULL)
        *place = adaptive->next;
    pthread_mutex_unlock(&mutex);
}

/* Programs need not free their communicators before MPI ends, but no request may be active then. */
void coll_leave_meetings(void) {
    pthread_mutex_lock(&mutex);
    for (struct coll_adaptive *one = all; one != NULL; one = one->next)
        coll_leave_meeting(one);
    pthread_mutex_unlock(&mutex);
}

/* MPI has ended: the requests of communicators that were not freed are no more. */
void coll_situations_restart(void) {
    pthread_mutex_lock(&mutex);
    all = NULL;
    pthread_mutex_unlock(&mutex);
}

/* All ranks are about to free the communicator. */
static int end_with(void *data) {
    struct coll_adaptive *const *adaptive = data;
    return *adaptive == NULL ? MPI_SUCCESS : coll_leave_meeting(*adaptive);
}

/* What hangs on a communicator, made by its first call that adapts; NULL if there is no memory. */
static struct coll_adaptive *adaptive_of(struct coll_comm *cc) {
    static atomic_uint communicators;
    const size_t room = (size_t)coll_told_most(), calls = (size_t)coll_stage_most();
    if (cc->adaptive != NULL)
        return cc->adaptive;
    struct coll_adaptive *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    made->own = malloc(room * sizeof *made->own);
    if (cc->rank == 0) {
        made->all = malloc(room * sizeof *made->all);
        made->times = malloc(2 * calls * sizeof *made->times);
    }
    made->meeting.request = MPI_REQUEST_NULL;
    made->at_end = coll_comm_at_end(cc, sizeof(struct coll_adaptive *), end_with);
    if (made->own == NULL || made->at_end == NULL ||
        (cc->rank == 0 && (made->all == NULL || made->times == NULL))) {
        coll_free_adaptive(made);
        return NULL;
    }
    *made->at_end = made;
    enter_in_list(made);
    made->number = atomic_fetch_add(&communicators, 1);
    cc->adaptive = made;
    return made;
}

static struct coll_family *find_family(const struct coll_adaptive *adaptive,
                                       const struct coll_call *call) {
    struct coll_family *const *families = adaptive->families[call->collective];
    for (int i = 0; i < adaptive->known[call->collective]; ++i)
        if (families[i]->bytes == call->bytes)
            return families[i];
    return NULL;
}

static struct coll_family *make_family(struct coll_adaptive *adaptive,
                                       const struct coll_call *call) {
    const size_t sites = (size_t)coll_settings()->adaptive->sites;
    struct coll_family *made = calloc(1, sizeof *made + sites * sizeof made->of_site[0]);
    if (made == NULL)
        return NULL;
    made->collective = call->collective;
    made->bytes = call->bytes;
    made->pattern.is_off = sites == 0;
    adaptive->families[call->collective][adaptive->known[call->collective]++] = made;
    return made;
}

int coll_adapts(const struct coll_call *call, struct coll_comm *cc, struct coll_family **family,
                struct coll_situation **situation) {
    const struct coll_settings *settings = coll_settings();
    *situation = NULL;
    if (cc->no_adaptive || settings->fixed[call->collective] != NULL ||
        settings->forced[call->collective] != NULL)
        return 0;
    struct coll_adaptive *adaptive = adaptive_of(cc);
    if (adaptive == NULL)
        return 1;
    *family = adaptive->latest[call->collective];
    if (*family == NULL || (*family)->bytes != call->bytes) {
        *family = find_family(adaptive, call);
        if (*family == NULL && adaptive->known[call->collective] == settings->adaptive->sizes)
            return 0;
        if (*family == NULL)
            *family = make_family(adaptive, call);
        if (*family == NULL)
            return 1;
        adaptive->latest[call->collective] = *family;
    }
    *situation = coll_site_of(*family, call->site, settings->adaptive->sites);
    if (*situation != NULL && (*situation)->is_closed)
        *situation = NULL;
    return *situation != NULL;
}

/* What a situation holds, but for its record, which stays to the end. */
void coll_close(struct coll_situation *situation) {
    free(situation->options);
    free(situation->candidates);
    free(situation->ticks);
    free(situation->state);
    *situation = (struct coll_situation){.is_closed = 1};
}

static void free_family(struct coll_family *family) {
    coll_unite(family);
    coll_close(&family->whole);
    free(family);
}

/* With the communicator. */
void coll_free_adaptive(struct coll_adaptive *adaptive) {
    if (adaptive == NULL)
        return;
    leave_list(adaptive);
    for (int i = 0; i < COLL_COLLECTIVES; ++i)
        for (int k = 0; k < adaptive->known[i]; ++k)
            free_family(adaptive->families[i][k]);
    free(adaptive->own);
    free(adaptive->all);
    free(adaptive->times);
    free(adaptive);
}
