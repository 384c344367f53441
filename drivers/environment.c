/*
 * What a rank knows of where it runs: its host, kernel and CPUs, the settings of TCP, and those of
 * the MPI library. Each rank writes a line of JSON; rank 0 prints them all.
 */
#include "environment.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Settings of the kernel that change how long messages take, below /proc/sys/net. */
static const char *const network_settings[] = {
    "core.busy_poll",
    "core.busy_read",
    "core.default_qdisc",
    "core.rmem_max",
    "core.wmem_max",
    "ipv4.tcp_autocorking",
    "ipv4.tcp_congestion_control",
    "ipv4.tcp_ecn",
    "ipv4.tcp_limit_output_bytes",
    "ipv4.tcp_min_tso_segs",
    "ipv4.tcp_moderate_rcvbuf",
    "ipv4.tcp_mtu_probing",
    "ipv4.tcp_no_metrics_save",
    "ipv4.tcp_notsent_lowat",
    "ipv4.tcp_rmem",
    "ipv4.tcp_sack",
    "ipv4.tcp_slow_start_after_idle",
    "ipv4.tcp_timestamps",
    "ipv4.tcp_window_scaling",
    "ipv4.tcp_wmem",
    NULL,
};

/* Environment variables that MPI libraries and their transports read begin like this. */
static const char *const prefixes[] = {"FI_",   "I_MPI_", "LIBCOLL_",  "MPICH_",    "MPIR_",
                                       "MV2_",  "MVP_",   "OMPI_MCA_", "PMIX_MCA_", "PRTE_MCA_",
                                       "PSM2_", "PSM3_",  "UCX_",      NULL};

/*
 * What the MPI library itself says of settings that decide how native collectives run, also if no
 * variable sets them. A library lacks those of another one.
 */
static const char *const control_variables[] = {
    "MPIR_CVAR_COLLECTIVE_FALLBACK",
    "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE",
    "MPIR_CVAR_DEVICE_COLLECTIVES",
    "btl",
    "coll",
    "coll_tuned_dynamic_rules_filename",
    "coll_tuned_use_dynamic_rules",
    "pml",
    NULL,
};

enum { LONGEST = 4096 };

/* A text of JSON; bytes that are not ASCII are taken for Latin-1, so that the result is valid. */
static void put_text(FILE *out, const char *text) {
    putc('"', out);
    for (const char *c = text; *c != '\0'; ++c) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < ' ' || byte > '~')
            fprintf(out, "\\u%04x", byte);
        else
            putc(byte, out);
    }
    putc('"', out);
}

/* Begin an entry of an object; `count` counts those before it. */
static void put_key(FILE *out, const char *key, size_t length, int *count) {
    char name[LONGEST];
    snprintf(name, sizeof name, "%.*s", (int)length, key);
    fputs((*count)++ == 0 ? "" : ", ", out);
    put_text(out, name);
    fputs(": ", out);
}

/* The first line of a file, in which white space is a single blank; 0 if it cannot be read. */
static int read_line(const char *path, char *line, int size) {
    FILE *file = fopen(path, "r");
    const int is_read = file != NULL && fgets(line, size, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!is_read)
        return 0;
    char *end = line;
    for (const char *c = line; *c != '\0'; ++c)
        if (!isspace((unsigned char)*c))
            *end++ = *c;
        else if (end > line && end[-1] != ' ')
            *end++ = ' ';
    if (end > line && end[-1] == ' ')
        --end;
    *end = '\0';
    return 1;
}

static void put_network(FILE *out) {
    int count = 0;
    putc('{', out);
    for (int i = 0; network_settings[i] != NULL; ++i) {
        char path[LONGEST], line[LONGEST];
        const int root = snprintf(path, sizeof path, "/proc/sys/net/");
        snprintf(path + root, sizeof path - (size_t)root, "%s", network_settings[i]);
        *strchr(path, '.') = '/';
        if (!read_line(path, line, sizeof line))
            continue;
        put_key(out, network_settings[i], strlen(network_settings[i]), &count);
        put_text(out, line);
    }
    putc('}', out);
}

static int is_relevant(const char *variable) {
    for (int i = 0; prefixes[i] != NULL; ++i)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return 1;
    return 0;
}

static void put_variables(FILE *out) {
    int count = 0;
    putc('{', out);
    for (char **variable = environ; *variable != NULL; ++variable) {
        const char *equals = strchr(*variable, '=');
        if (equals == NULL || !is_relevant(*variable))
            continue;
        put_key(out, *variable, (size_t)(equals - *variable), &count);
        put_text(out, equals + 1);
    }
    putc('}', out);
}

/* The CPUs that this process may run on; NULL if there is no memory. */
static cpu_set_t *allowed_cpus(int *most) {
    for (*most = 1024; *most <= 1 << 20; *most *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)*most);
        if (set == NULL)
            return NULL;
        if (sched_getaffinity(0, CPU_ALLOC_SIZE(*most), set) == 0)
            return set;
        CPU_FREE(set);
        if (errno != EINVAL) /* the kernel's set is longer */
            return NULL;
    }
    return NULL;
}

/* A file of a CPU below /sys. */
static int read_cpu(int cpu, const char *name, char *line, int size) {
    char path[LONGEST];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    return read_line(path, line, size);
}

/* The first hardware thread of a CPU's core: it stands for the core. */
static int core_of(int cpu) {
    char line[LONGEST];
    return read_cpu(cpu, "topology/thread_siblings_list", line, sizeof line) ? atoi(line) : cpu;
}

/* The governor of a CPU's frequency; "" if it has none. */
static void add_governor(int cpu, int is_first, char *governor, int size) {
    char line[LONGEST];
    if (!read_cpu(cpu, "cpufreq/scaling_governor", line, sizeof line))
        line[0] = '\0';
    if (is_first)
        snprintf(governor, (size_t)size, "%s", line);
    else if (strcmp(governor, line) != 0)
        snprintf(governor, (size_t)size, "mixed");
}

static void put_cpus(FILE *out) {
    int most, count = 0;
    char governor[LONGEST] = "";
    cpu_set_t *set = allowed_cpus(&most);
    fputs("\"cpus\": [", out);
    for (int cpu = 0; set != NULL && cpu < most; ++cpu) {
        if (!CPU_ISSET_S((size_t)cpu, CPU_ALLOC_SIZE(most), set))
            continue;
        fprintf(out, "%s[%d, %d]", count == 0 ? "" : ", ", cpu, core_of(cpu));
        add_governor(cpu, count++ == 0, governor, sizeof governor);
    }
    fputs("], \"governor\": ", out);
    put_text(out, governor);
    if (set != NULL)
        CPU_FREE(set);
}

/* The value of a control variable: a text or a number. */
static void put_value(FILE *out, MPI_T_cvar_handle handle, MPI_Datatype type) {
    char text[LONGEST] = "";
    int number = 0;
    MPI_T_cvar_read(handle, type == MPI_CHAR ? (void *)text : &number);
    if (type != MPI_CHAR)
        snprintf(text, sizeof text, "%d", number);
    put_text(out, text);
}

static void put_control(FILE *out, const char *variable, int *count) {
    int index, verbosity, bind, scope, length = 0, unused = 0, elements;
    MPI_Datatype type;
    MPI_T_cvar_handle handle;
    if (MPI_T_cvar_get_index(variable, &index) != MPI_SUCCESS ||
        MPI_T_cvar_get_info(index, NULL, &length, &verbosity, &type, NULL, NULL, &unused, &bind,
                            &scope) != MPI_SUCCESS ||
        (type != MPI_CHAR && type != MPI_INT) || bind != MPI_T_BIND_NO_OBJECT ||
        MPI_T_cvar_handle_alloc(index, NULL, &handle, &elements) != MPI_SUCCESS)
        return;
    if (elements < LONGEST && (type == MPI_CHAR || elements == 1)) {
        put_key(out, variable, strlen(variable), count);
        put_value(out, handle, type);
    }
    MPI_T_cvar_handle_free(&handle);
}

/* MPI_T stays initialized: after its finalization, MPICH 4.3 has lost the texts that it uses. */
static void put_controls(FILE *out) {
    int provided, count = 0;
    putc('{', out);
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS)
        for (int i = 0; control_variables[i] != NULL; ++i)
            put_control(out, control_variables[i], &count);
    putc('}', out);
}

/* A line of JSON about this rank, to be freed; NULL if there is no memory. */
static char *describe(int rank) {
    char *text = NULL, host[LONGEST] = "";
    size_t length;
    struct utsname system;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL)
        return NULL;
    gethostname(host, sizeof host - 1);
    fprintf(out, "{\"rank\": %d, \"host\": ", rank);
    put_text(out, host);
    fputs(", \"kernel\": ", out);
    put_text(out, uname(&system) == 0 ? system.release : "");
    fputs(", ", out);
    put_cpus(out);
    fputs(", \"network\": ", out);
    put_network(out);
    fputs(", \"variables\": ", out);
    put_variables(out);
    fputs(", \"controls\": ", out);
    put_controls(out);
    putc('}', out);
    return fclose(out) == 0 ? text : NULL;
}

/* Print the lines of all ranks, each of at most `longest` bytes; rank 0 has room for all. */
static int print_all(const char *own, int longest, int rank, int size, MPI_Comm comm) {
    char *line = calloc(1, (size_t)longest);
    int error = line == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    for (int other = 0; error == MPI_SUCCESS && other < size; ++other) {
        if (rank == 0 && other != 0)
            error = PMPI_Recv(line, longest, MPI_CHAR, other, 0, comm, MPI_STATUS_IGNORE);
        else if (rank == other && rank != 0)
            error = PMPI_Send(own, (int)strlen(own) + 1, MPI_CHAR, 0, 0, comm);
        if (rank == 0 && error == MPI_SUCCESS)
            printf("%s\n", other == 0 ? own : line);
    }
    free(line);
    return error;
}

int print_environment(MPI_Comm comm) {
    int rank, size;
    int error = PMPI_Comm_rank(comm, &rank);
    if (error == MPI_SUCCESS)
        error = PMPI_Comm_size(comm, &size);
    if (error != MPI_SUCCESS)
        return error;
    char *own = describe(rank);
    int longest = own == NULL ? 0 : (int)strlen(own) + 1;
    error = PMPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_INT, MPI_MAX, comm);
    if (error == MPI_SUCCESS)
        error = own == NULL ? MPI_ERR_NO_MEM : print_all(own, longest, rank, size, comm);
    free(own);
    return error;
}
