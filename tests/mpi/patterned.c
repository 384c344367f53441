/*
 * Alltoallv calls with random counts, of which every rank makes the same from the same seed.
 *
 *   patterned SEED CALLS [PLAN [communicators|rows|asked]]
 *
 * All routines of patterns in turn, or the entry point, get them: blocks that a schedule has are
 * often empty, and others are not. What arrives is compared with what was sent, byte by byte.
 * Each routine has its defaults, or other values of its parameters by chance.
 * With a plan, only the entry point gets calls. Its letters are taken in turn:
 *
 *   a, b   the first pattern of the library for these ranks, or the last
 *   A      the first with blocks of four times the length
 *   n      nearly the first: no block differs by more than a sixteenth
 *   x      the first, but one rank has something else
 *   m      the first, but several ranks have something else, or nothing, or what they have in the
 *          last pattern, or four times as much
 *   r      anything
 *   ?      one of these by chance
 *
 *   v, V   blocks of about one length; long ones
 *   h      one block, of another pair each time, is twenty times as long
 *   s      the same with so few bytes that another rule serves
 *   i      blocks of two ranks for each other are twenty times as long; in place
 *   q      each rank has something for the next one only
 *   0      nothing
 *
 * With `communicators`, each call is on one of several by chance: that of all ranks, a duplicate,
 * one with all ranks in any order, one for each half. Now and then one of them is made anew.
 * With `rows`, the halves are the first ranks and the last ones. The letters a, b and A then mean
 * the patterns of the call's own ranks, and there may be no others.
 * With `asked`, the program prints how often the ranks told each other of their counts. It is
 * linked with --wrap for what they do so with, which has to be freed at the end.
 *
 * These letters are calls of allgatherv, whose contents are compared likewise:
 *
 *   E      blocks of about one length
 *   L      one block, in turn each rank's, is ten times as long
 *   S      the same with so few bytes that another rule serves
 */
#include <stdint.h>

#include "dispatch.h"

#include "program.h"

enum { RANKS_MOST = 32, ROUTINES_MOST = 64 };

static int rank, size, group, in_rows;
static uint64_t state;

static int asked, operations;

int __real_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm);
int __wrap_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm);
int __real_PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op);
int __wrap_PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op);
int __real_PMPI_Op_free(MPI_Op *op);
int __wrap_PMPI_Op_free(MPI_Op *op);

int __wrap_PMPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm) {
    int bytes;
    PMPI_Type_size(type, &bytes);
    asked += count * bytes == (int)sizeof(struct coll_counts_told);
    return __real_PMPI_Allreduce(in, out, count, type, op, comm);
}

int __wrap_PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op) {
    ++operations;
    return __real_PMPI_Op_create(function, commutes, op);
}

int __wrap_PMPI_Op_free(MPI_Op *op) {
    --operations;
    return __real_PMPI_Op_free(op);
}

/* Steele, Lea and Flood's SplitMix64: the same numbers on all ranks. */
static unsigned draw(unsigned most) {
    uint64_t z = (state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (unsigned)((z ^ z >> 31) % most);
}

static int counts[RANKS_MOST][RANKS_MOST]; /* [from][to] in MPI_COMM_WORLD, in pairs of bytes */

/* A communicator, and what its ranks are in MPI_COMM_WORLD. */
struct group {
    MPI_Comm comm;
    int size, world_of[RANKS_MOST];
};

enum { WORLD, DUPLICATE, REORDERED, HALVES, GROUPS };
enum { MADE_ANEW = 1000 }; /* one in so many calls is on a new communicator */

static struct group groups[GROUPS];
static const struct group *here = &groups[WORLD];

static void find_ranks(struct group *group) {
    EXPECT(MPI_Comm_size(group->comm, &group->size) == MPI_SUCCESS);
    EXPECT(PMPI_Allgather(&rank, 1, MPI_INT, group->world_of, 1, MPI_INT, group->comm) ==
           MPI_SUCCESS);
}

/* All ranks draw alike, so that each knows the keys of all. */
static int draw_key(void) {
    int own = 0;
    for (int i = 0; i < size; ++i) {
        const int key = (int)draw(1000);
        own = i == rank ? key : own;
    }
    return own;
}

static void make_group(int kind) {
    struct group *made = &groups[kind];
    int color = 0;
    if (made->comm != MPI_COMM_NULL)
        MPI_Comm_free(&made->comm);
    if (kind == DUPLICATE) {
        EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &made->comm) == MPI_SUCCESS);
    } else {
        if (kind == HALVES)
            color = in_rows ? 2 * rank / size : draw_key() % 2;
        EXPECT(MPI_Comm_split(MPI_COMM_WORLD, color, draw_key(), &made->comm) == MPI_SUCCESS);
    }
    find_ranks(made);
}

static void make_groups(int several) {
    groups[WORLD].comm = MPI_COMM_WORLD;
    find_ranks(&groups[WORLD]);
    for (int kind = DUPLICATE; kind < GROUPS; ++kind) {
        groups[kind].comm = MPI_COMM_NULL;
        if (several)
            make_group(kind);
    }
}

static void choose_group(void) {
    const int kind = (int)draw(GROUPS);
    if (kind != WORLD && draw(MADE_ANEW) == 0)
        make_group(kind);
    here = &groups[kind];
}

static void free_groups(void) {
    for (int kind = DUPLICATE; kind < GROUPS; ++kind)
        if (groups[kind].comm != MPI_COMM_NULL)
            MPI_Comm_free(&groups[kind].comm);
}

/* What the library knows of a communicator. */
static struct coll_comm *known_of(MPI_Comm comm) {
    struct coll_comm *cc;
    EXPECT(coll_comm_get(comm, &cc) == MPI_SUCCESS);
    return cc;
}

/* The blocks of the library's first alltoallv pattern of a group, or of the last one. */
static const int *bytes_of(int group, int last) {
    const int *found = NULL;
    for (int i = 0; i < coll_pattern_count; ++i)
        if (coll_pattern_entries[i].collective == COLL_ALLTOALLV &&
            coll_pattern_entries[i].group == group && coll_pattern_entries[i].bytes != NULL &&
            (last || found == NULL))
            found = coll_pattern_entries[i].bytes;
    return found;
}

/* The same of the ranks of MPI_COMM_WORLD. */
static const int *bytes_of_pattern(int last) {
    return bytes_of(group, last);
}

static int length(int kind, int from, int to) {
    switch (kind) {
    case 0: /* any */
        return (int)draw(40);
    case 1: /* few, some of them long */
        return draw(5) == 0 ? (int)draw(draw(4) == 0 ? 30000 : 30) : 0;
    case 2: /* one row and one column */
        return from == (int)(state >> 60) % size || to == 1 ? (int)draw(300) : 0;
    case 3: /* nothing at all */
        return 0;
    case 4: /* even */
        return 17;
    case 5: /* as the longest pattern of the library */
        return bytes_of_pattern(1)[from * size + to] / 2;
    default: /* neighbours, segments and their ends */
        return (to - from + size) % size <= 2 ? 4096 * (int)draw(4) + (int)draw(3) - 1 : 0;
    }
}

static void draw_any(int kind) {
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            const int found = length(kind, from, to);
            counts[from][to] = found > 0 ? found : 0;
        }
}

/* Some ranks, perhaps all of them, have other rows than those of the first pattern. */
static void change_rows(void) {
    const int *last = bytes_of_pattern(1);
    for (int from = 0; from < size; ++from) {
        if (draw(3) == 0)
            continue;
        const int how = (int)draw(4);
        for (int to = 0; to < size; ++to) {
            int *count = &counts[from][to];
            *count = how == 0   ? (int)draw(600)
                     : how == 1 ? 0
                     : how == 2 ? last[from * size + to] / 2
                                : 4 * *count;
        }
    }
}

static const char *plan;
static unsigned long calls_made;

/* Those of a pattern of the ranks that call. */
static void counts_of_own(char letter) {
    const struct coll_comm *cc = known_of(here->comm);
    const int *bytes = bytes_of(cc->group, letter == 'b');
    for (int i = 0; i < cc->size; ++i)
        for (int j = 0; j < cc->size; ++j) {
            const int length = bytes[cc->position_of[i] * cc->size + cc->position_of[j]] / 2;
            counts[here->world_of[i]][here->world_of[j]] = letter == 'A' ? 4 * length : length;
        }
}

/* The lengths of a letter of the plan, in pairs of bytes. */
static void counts_of(char letter) {
    const int *bytes = bytes_of_pattern(letter == 'b');
    const int odd = (int)draw((unsigned)size);
    if (letter == 'r') {
        draw_any((int)draw(7));
        return;
    }
    for (int from = 0; from < size; ++from)
        for (int to = 0; to < size; ++to) {
            const int length = bytes[from * size + to] / 2;
            counts[from][to] = letter == 'A'   ? 4 * length
                               : letter == 'n' ? length + (int)draw((unsigned)length / 16 + 1)
                                               : length;
            if (letter == 'x' && from == odd)
                counts[from][to] = (int)draw(600);
        }
    if (letter == 'm')
        change_rows();
}

/* Those of the letters of classes. */
static void counts_of_class(char letter) {
    const int mean = letter == 's' ? 10 : letter == '0' ? 0 : letter == 'V' ? 1000 : 100;
    const int from = (int)draw((unsigned)size);
    const int to = (from + 1 + (int)draw((unsigned)size - 1)) % size;
    for (int u = 0; u < size; ++u)
        for (int v = 0; v < size; ++v)
            counts[u][v] = strchr("vV", letter) != NULL           ? mean + (int)draw(5)
                           : letter == 'q' && v != (u + 1) % size ? 0
                                                                  : mean;
    if (strchr("hsi", letter) != NULL)
        counts[from][to] = 20 * mean;
    if (letter == 'i')
        counts[to][from] = 20 * mean;
}

/* The letter of the next call; without a plan any that is none. */
static char draw_letter(void) {
    static const char all[] = "abAnxmrvVhsiq0";
    if (plan == NULL)
        return ' ';
    return plan[0] == '?' ? all[draw(sizeof all - 1)] : plan[calls_made % strlen(plan)];
}

static void draw_counts(char letter) {
    const int kind = (int)draw(7);
    if (plan == NULL)
        draw_any(kind);
    else if (in_rows)
        counts_of_own(letter);
    else if (strchr("vVhsiq0", letter) != NULL)
        counts_of_class(letter);
    else
        counts_of(letter);
}

static char content(int from, int to, int at) {
    const unsigned mixed = (unsigned)at * 2654435761U ^ (unsigned)(31 * from + 7 * to);
    return (char)((mixed >> 24) + mixed % 127); /* segments that change places are seen */
}

struct side {
    char *data;
    int counts[RANKS_MOST], displacements[RANKS_MOST];
};

/* Blocks with gaps of a byte pair; elements are of `unit` bytes. */
static struct side side_of(int sends, int unit) {
    struct side side;
    int place = 0;
    for (int i = 0; i < here->size; ++i) {
        const int peer = here->world_of[i];
        const int bytes = 2 * (sends ? counts[rank][peer] : counts[peer][rank]);
        side.counts[i] = bytes / unit;
        side.displacements[i] = place / unit;
        place += bytes + 2;
    }
    side.data = malloc((size_t)place + 2);
    EXPECT(side.data != NULL);
    memset(side.data, -1, (size_t)place + 2);
    for (int i = 0; i < here->size && sends; ++i) {
        const int peer = here->world_of[i];
        for (int at = 0; at < 2 * counts[rank][peer]; ++at)
            side.data[side.displacements[i] * unit + at] = content(rank, peer, at);
    }
    return side;
}

static int wrong_bytes(const struct side *got, int unit) {
    int wrong = 0;
    for (int i = 0; i < here->size; ++i) {
        const int peer = here->world_of[i];
        const char *block = got->data + got->displacements[i] * unit;
        for (int at = 0; at < 2 * counts[peer][rank]; ++at)
            wrong += block[at] != content(peer, rank, at);
        wrong += block[2 * counts[peer][rank]] != -1;
    }
    return wrong;
}

static const struct coll_routine *routines[ROUTINES_MOST];

static int find_routines(void) {
    int found = 0;
    for (int i = 0; i < coll_routine_count; ++i)
        if (coll_routines[i].collective == COLL_ALLTOALLV && coll_routines[i].group == group &&
            strncmp(coll_routines[i].name, "pattern_", 8) == 0)
            routines[found++] = &coll_routines[i];
    return found;
}

static void run(const struct coll_routine *routine, struct coll_call *call) {
    struct coll_comm *cc;
    EXPECT(coll_comm_get(call->comm, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(call->comm, cc) == MPI_SUCCESS);
    EXPECT(coll_views[call->collective]->measure(call) == MPI_SUCCESS);
    struct coll_parameters parameters = routine->defaults;
    parameters.receives_ahead = 1 << draw(3);
    parameters.segment_size = 8192 << draw(2);
    parameters.tail = 4096 * (int)draw(3);
    EXPECT(coll_run(routine, call, cc, &parameters) == MPI_SUCCESS);
}

/* The blocks of a rank for each other one, where it gets theirs. */
static int call_in_place(void) {
    struct side both = side_of(0, 1);
    for (int i = 0; i < here->size; ++i) {
        const int peer = here->world_of[i];
        for (int at = 0; at < 2 * counts[rank][peer]; ++at)
            both.data[both.displacements[i] + at] = content(rank, peer, at);
    }
    EXPECT(MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, both.data, both.counts,
                         both.displacements, MPI_CHAR, here->comm) == MPI_SUCCESS);
    const int wrong = wrong_bytes(&both, 1);
    free(both.data);
    return wrong;
}

/* One side may count pairs of bytes, and the other bytes: signatures match anyway. */
static int call_once(const struct coll_routine *routine, MPI_Datatype pair) {
    const MPI_Comm comm = here->comm;
    const int send_unit = 1 + (int)draw(2), recv_unit = 1 + (int)draw(2);
    struct side sent = side_of(1, send_unit), got = side_of(0, recv_unit);
    struct coll_call call = {
        .collective = COLL_ALLTOALLV,
        .comm = comm,
        .sendbuf = sent.data,
        .recvbuf = got.data,
        .send_type = send_unit == 1 ? MPI_CHAR : pair,
        .recv_type = recv_unit == 1 ? MPI_CHAR : pair,
        .send_blocks = {.counts = sent.counts, .displacements = sent.displacements},
        .recv_blocks = {.counts = got.counts, .displacements = got.displacements}};
    if (routine == NULL)
        EXPECT(MPI_Alltoallv(sent.data, sent.counts, sent.displacements, call.send_type, got.data,
                             got.counts, got.displacements, call.recv_type, comm) == MPI_SUCCESS);
    else
        run(routine, &call);
    const int wrong = wrong_bytes(&got, recv_unit);
    free(sent.data);
    free(got.data);
    return wrong;
}

/* An allgatherv in which each block has this rank's number, and so many bytes as all ranks know. */
static int gather_once(char letter, MPI_Comm comm) {
    int lengths[RANKS_MOST], displacements[RANKS_MOST], all = 0, wrong = 0;
    const int odd = (int)draw((unsigned)size), mean = letter == 'S' ? 10 : 200;
    for (int i = 0; i < size; ++i) {
        lengths[i] = letter != 'E' && i == odd ? 10 * mean : mean + (int)draw(3);
        displacements[i] = all;
        all += lengths[i];
    }
    char *out = malloc((size_t)lengths[rank]), *in = calloc((size_t)all, 1);
    EXPECT(out != NULL && in != NULL);
    for (int i = 0; i < lengths[rank]; ++i)
        out[i] = content(rank, 0, i);
    EXPECT(MPI_Allgatherv(out, lengths[rank], MPI_CHAR, in, lengths, displacements, MPI_CHAR,
                          comm) == MPI_SUCCESS);
    for (int from = 0; from < size; ++from)
        for (int i = 0; i < lengths[from]; ++i)
            wrong += in[displacements[from] + i] != content(from, 0, i);
    free(out);
    free(in);
    return wrong;
}

/* Sums stay at the most that they can hold, whatever the order of ranks. */
static void check_agreement(void) {
    struct coll_comm *cc;
    EXPECT(coll_comm_get(MPI_COMM_WORLD, &cc) == MPI_SUCCESS);
    EXPECT(coll_comm_private(MPI_COMM_WORLD, cc) == MPI_SUCCESS);
    struct coll_counts_told few = {UINT64_MAX << rank, 1 + (unsigned)rank, 7U * (unsigned)rank};
    struct coll_counts_told many = {0, UINT64_MAX / 2 + (unsigned)rank, UINT64_MAX};
    EXPECT(coll_agree_on_counts(cc, &few) == MPI_SUCCESS);
    EXPECT(coll_agree_on_counts(cc, &many) == MPI_SUCCESS);
    EXPECT(few.fitting == UINT64_MAX << (size - 1));
    EXPECT(few.bytes == (unsigned)(size * (size + 1) / 2));
    EXPECT(few.largest == 7U * (unsigned)(size - 1));
    EXPECT(many.bytes == UINT64_MAX && many.largest == UINT64_MAX);
}

int main(int argc, char **argv) {
    MPI_Datatype pair;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in_rows = argc == 5 && strcmp(argv[4], "rows") == 0;
    const int several = in_rows || (argc == 5 && strcmp(argv[4], "communicators") == 0);
    const int counted = argc == 5 && strcmp(argv[4], "asked") == 0;
    EXPECT((argc == 3 || argc == 4 || several || counted) && size <= RANKS_MOST);
    plan = argc > 3 ? argv[3] : NULL;
    state = strtoull(argv[1], NULL, 10);
    group = known_of(MPI_COMM_WORLD)->group;
    const int calls = atoi(argv[2]), count = find_routines();
    EXPECT(count > 0);
    make_groups(several);
    check_agreement();
    asked = 0;
    MPI_Type_contiguous(2, MPI_CHAR, &pair);
    MPI_Type_commit(&pair);
    int wrong = 0;
    for (int i = 0; i < calls; ++i) {
        if (several)
            choose_group();
        const char letter = draw_letter();
        const int turn = plan != NULL ? count : i % (count + 1);
        if (strchr("ELS", letter) != NULL) {
            wrong += gather_once(letter, MPI_COMM_WORLD);
        } else {
            draw_counts(letter);
            wrong += letter == 'i' ? call_in_place()
                                   : call_once(turn == count ? NULL : routines[turn], pair);
        }
        ++calls_made;
    }
    EXPECT(wrong == 0);
    if (rank == 0 && counted)
        printf("asked %d times\n", asked);
    else if (rank == 0)
        printf("%d calls, %d routines\n", calls, count);
    MPI_Type_free(&pair);
    free_groups();
    const int status = finish();
    return operations == 0 ? status : EXIT_FAILURE;
}
