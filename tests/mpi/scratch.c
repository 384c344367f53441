/*
 * How much memory calls take, beside what the library says before: linked with --wrap for malloc
 * and its like, so that what the library allocates is counted, and what MPI allocates is not.
 *
 *   scratch COLLECTIVE/NAME:parameter=value:... ...
 *
 * Prints for each routine and size the most that a rank needed, and the bound. A rank that needs
 * more than the bound, or keeps something, is a failure.
 */
#include <stdint.h>
#include <unistd.h>

#include "coll.h"
#include "dispatch.h"
#include "program.h"

/* Of what is asked of a session, the routines: NAME:parameter=value:... */
#include "request.h"

enum { LIVE_MOST = 1 << 16 };

static struct {
    void *memory;
    size_t bytes;
} live[LIVE_MOST];

static int live_count, counting;
static size_t current, peak;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static void *note(void *memory, size_t bytes) {
    if (!counting || memory == NULL || live_count == LIVE_MOST)
        return memory;
    live[live_count].memory = memory;
    live[live_count++].bytes = bytes;
    current += bytes;
    peak = current > peak ? current : peak;
    return memory;
}

void *__wrap_malloc(size_t bytes) {
    return note(__real_malloc(bytes), bytes);
}

void *__wrap_calloc(size_t count, size_t bytes) {
    return note(__real_calloc(count, bytes), count * bytes);
}

static void forget(uintptr_t memory) {
    for (int i = live_count - 1; i >= 0; --i) {
        if ((uintptr_t)live[i].memory != memory)
            continue;
        current -= live[i].bytes;
        live[i] = live[--live_count];
        break;
    }
}

/* Memory that moves is there twice for a while. */
void *__wrap_realloc(void *memory, size_t bytes) {
    const uintptr_t old = (uintptr_t)memory;
    void *moved = __real_realloc(memory, bytes);
    if (moved == NULL)
        return NULL;
    if ((uintptr_t)moved == old)
        forget(old);
    note(moved, bytes);
    if ((uintptr_t)moved != old)
        forget(old);
    return moved;
}

void __wrap_free(void *memory) {
    forget((uintptr_t)memory);
    __real_free(memory);
}

/* What may change how much a call takes, besides its size. */
struct variant {
    int root, in_place, ordered;
    int odd; /* elements: of a reduction large ones, else with gaps between them */
};

/* Bytes of a large element; the first of the sizes that it divides has no more than one. */
enum { LARGE = 1000 };

/* Requests and tables of a routine, by rank, which are not counted as its data. */
enum { BOOKKEEPING = 64 };

/* Calls of so many bytes teach routines that ranks are late: by so many microseconds at least, and
 * by so many times what a call takes without late ranks, however slow this machine is now. */
enum { MUCH = 30000, LESSONS = 5, LATE = 2000, TIMES_LATE = 10 };

struct buffers {
    char *send, *recv;
    int *counts, *displacements;
    MPI_Datatype element; /* of one byte, with gaps twice as far apart; or a large one */
    MPI_Op op;
};

static void keep_left(void *left, void *right, int *count, MPI_Datatype *type) {
    MPI_Aint lower_bound, extent;
    PMPI_Type_get_extent(*type, &lower_bound, &extent);
    memcpy(right, left, (size_t)*count * (size_t)extent);
}

static struct buffers make_buffers(const struct coll_descriptor *kind, int count, int size,
                                   const struct variant *variant) {
    const size_t room = 2 * (size_t)LARGE * (size_t)(count + 1) * (size_t)size;
    struct buffers b = {calloc(room, 1),
                        calloc(room, 1),
                        calloc((size_t)size, sizeof(int)),
                        calloc((size_t)size, sizeof(int)),
                        MPI_BYTE,
                        MPI_BXOR};
    for (int i = 0; i < size; ++i) {
        const long long whole = kind->whole ? count : (long long)count * size;
        b.displacements[i] = (int)(whole * i / size);
        b.counts[i] = (int)(whole * (i + 1) / size) - b.displacements[i];
    }
    if (variant->odd) {
        if (kind->reduces)
            PMPI_Type_contiguous(LARGE, MPI_BYTE, &b.element);
        else
            PMPI_Type_create_resized(MPI_BYTE, 0, 2, &b.element);
        PMPI_Type_commit(&b.element);
    }
    if (variant->odd || variant->ordered)
        PMPI_Op_create(keep_left, !variant->ordered, &b.op);
    return b;
}

static void free_buffers(struct buffers *b) {
    free(b->send);
    free(b->recv);
    free(b->counts);
    free(b->displacements);
    if (b->element != MPI_BYTE)
        PMPI_Type_free(&b->element);
    if (b->op != MPI_BXOR)
        PMPI_Op_free(&b->op);
}

static struct coll_call make_call(enum coll_collective collective, const struct buffers *b,
                                  int count, int rank, const struct variant *variant) {
    const struct coll_descriptor *kind = &coll_descriptors[collective];
    const int uneven = kind->uneven;
    struct coll_call call = {.collective = collective,
                             .comm = MPI_COMM_WORLD,
                             .sendbuf = b->send,
                             .recvbuf = b->recv,
                             .send_count = uneven ? b->counts[rank] : count,
                             .send_type = b->element,
                             .recv_count = count,
                             .recv_type = b->element,
                             .op = b->op,
                             .root = variant->root};
    if (uneven) {
        call.send_blocks =
            (struct coll_blocks){.counts = b->counts, .displacements = b->displacements};
        call.recv_blocks = call.send_blocks;
    }
    if (variant->in_place && (!kind->rooted || rank == variant->root)) {
        if (kind->in_place == COLL_RECVBUF)
            call.recvbuf = MPI_IN_PLACE;
        else
            call.sendbuf = MPI_IN_PLACE;
    }
    return call;
}

static void run_once(const struct candidate *candidate, struct coll_call *call,
                     struct coll_comm *cc) {
    EXPECT(coll_run(candidate->routine, call, cc, &candidate->parameters) == MPI_SUCCESS);
}

/* Seconds of a call for which all ranks come together, of the slowest. */
static double longest_call(const struct candidate *candidate, struct coll_call *call,
                           struct coll_comm *cc) {
    PMPI_Barrier(MPI_COMM_WORLD);
    const double begin = PMPI_Wtime();
    run_once(candidate, call, cc);
    double longest = PMPI_Wtime() - begin;
    PMPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return longest;
}

/* Half of the ranks come late to some calls. */
static void teach(const struct candidate *candidate, struct coll_call *call, struct coll_comm *cc) {
    double late = TIMES_LATE * 1e6 * longest_call(candidate, call, cc);
    late = late > LATE ? late : LATE;
    for (int i = 0; i < LESSONS; ++i) {
        if (cc->rank >= (cc->size + 1) / 2)
            usleep((useconds_t)late);
        run_once(candidate, call, cc);
    }
}

/* Before a call that is counted: what a routine keeps is made, and it learns that ranks come late,
 * where that may take memory. */
static void prepare(const struct candidate *candidate, struct coll_call *call,
                    struct coll_comm *cc) {
    const int learns = candidate->routine->constraints & COLL_WATCHES_ARRIVALS;
    if (learns && call->bytes >= MUCH)
        teach(candidate, call, cc);
    else
        run_once(candidate, call, cc);
}

/* Bytes of data that the call took on this rank; what it may take is in *bound. */
static double taken(const struct candidate *candidate, struct coll_call *call, struct coll_comm *cc,
                    double *bound) {
    EXPECT(coll_views[call->collective]->measure(call) == MPI_SUCCESS);
    if (!coll_applicable(candidate->routine, cc, call->bytes))
        return 0;
    const double most = coll_scratch(candidate->routine, &candidate->parameters, call, cc);
    *bound = most > *bound ? most : *bound;
    const int watches = candidate->routine->constraints & COLL_WATCHES_ARRIVALS;
    if (call->collective == COLL_BARRIER || watches)
        prepare(candidate, call, cc);
    counting = 1;
    current = peak = 0;
    EXPECT(coll_run(candidate->routine, call, cc, &candidate->parameters) == MPI_SUCCESS);
    counting = 0;
    EXPECT(current == 0);
    live_count = 0;
    const double beside = BOOKKEEPING * (cc->size + 1.0), data = (double)peak - beside;
    if (data > most)
        fprintf(stderr, "%s: %ld bytes took %.0f, bound %.0f\n", candidate->text, (long)call->bytes,
                data, most);
    EXPECT(data <= most);
    return data;
}

/* Whether a collective and a routine have calls of that variant. */
static int allows(enum coll_collective collective, const struct coll_routine *routine,
                  const struct variant *variant) {
    const struct coll_descriptor *kind = &coll_descriptors[collective];
    const int reorders = (routine->constraints & COLL_COMMUTATIVE) != 0;
    return !(variant->in_place && kind->in_place == COLL_NEVER) &&
           !(variant->root > 0 && !kind->rooted) &&
           !(variant->ordered && (!kind->reduces || reorders));
}

static void try(enum coll_collective collective, const struct candidate *candidate, int bytes,
                struct coll_comm *cc) {
    double most = 0, bound = 0;
    for (int bits = 0; bits < 16; ++bits) {
        const struct variant variant = {bits & 1 ? cc->size - 1 : 0, bits & 2, bits & 4, bits & 8};
        if (!allows(collective, candidate->routine, &variant))
            continue;
        const int large = coll_descriptors[collective].reduces && variant.odd;
        const int count = large ? (bytes + LARGE - 1) / LARGE : bytes;
        struct buffers buffers =
            make_buffers(&coll_descriptors[collective], count, cc->size, &variant);
        struct coll_call call = make_call(collective, &buffers, count, cc->rank, &variant);
        const double here = taken(candidate, &call, cc, &bound);
        most = here > most ? here : most;
        free_buffers(&buffers);
    }
    PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (cc->rank == 0)
        printf("%s/%s %d %.0f %.0f\n", coll_collective_names[collective], candidate->text, bytes,
               most, bound);
}

int main(int argc, char **argv) {
    static const int sizes[] = {1, 52, 1000, 30011};
    struct coll_comm *cc;
    MPI_Init(&argc, &argv);
    EXPECT(coll_comm_get(MPI_COMM_WORLD, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(MPI_COMM_WORLD, cc) == MPI_SUCCESS);
    for (int i = 1; i < argc; ++i) {
        enum coll_collective collective;
        struct candidate candidate = {.text = strdup(strchr(argv[i], '/') + 1)};
        strchr(argv[i], '/')[0] = '\0';
        if (!parse_collective(argv[i], &collective) ||
            !parse_candidate(strchr(argv[i], '\0') + 1, collective, &candidate)) {
            EXPECT(!"a routine of this library");
            continue;
        }
        for (size_t size = 0; size < sizeof sizes / sizeof *sizes; ++size)
            try(collective, &candidate, sizes[size], cc);
    }
    return finish();
}
