/*
 * How much of a routine's tables a process uses: rss one|all
 *
 * Compiled with -DROUTINE='"file.c"'. Reads the rows of the middle position, or of all, and
 * prints the kilobytes of the mapping that holds steps[]: its size, what of it was used, and
 * what of it is the process's own and not the file's. Everything is read once before, and then
 * marked as unused: the kernel maps as much around a page as it likes when that is first read.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include ROUTINE

static volatile long sum;

static void read_position(int position) {
    for (int i = first_step[position]; i < first_step[position + 1]; ++i)
        sum += steps[i].phase + steps[i].owed;
    for (int i = first_token[position]; i < first_token[position + 1]; ++i)
        sum += tokens[i].peer + tokens[i].windows;
}

/* Print of the mapping of an address what /proc/self/smaps says, and return where it is. */
static void find_mapping(const void *address, uintptr_t *from, uintptr_t *to, int print) {
    char line[512];
    int here = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        uintptr_t begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            here = begin <= (uintptr_t)address && (uintptr_t)address < end;
            *from = here ? begin : *from;
            *to = here ? end : *to;
        } else if (here && print &&
                   (strncmp(line, "Size:", 5) == 0 || strncmp(line, "Referenced:", 11) == 0 ||
                    strncmp(line, "Anonymous:", 10) == 0)) {
            fputs(line, stdout);
        }
    }
    if (maps != NULL)
        fclose(maps);
}

/* The processor notes the next use of a page only if it has forgotten the page meanwhile. */
static int mark_unused(uintptr_t from, uintptr_t to) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL)
        return 0;
    const int marked = fputs("1", file) >= 0;
    return fclose(file) == 0 && marked && mprotect((void *)from, to - from, PROT_NONE) == 0 &&
           mprotect((void *)from, to - from, PROT_READ) == 0;
}

int main(int argc, char **argv) {
    const int count = (int)(sizeof first_step / sizeof first_step[0]) - 1;
    const int all = argc > 1 && argv[1][0] == 'a';
    uintptr_t from = 0, to = 0;
    for (int position = 0; position < count; ++position)
        read_position(position);
    find_mapping(steps, &from, &to, 0);
    if (!mark_unused(from, to))
        return 1;
    for (int position = all ? 0 : count / 2; position < (all ? count : count / 2 + 1); ++position)
        read_position(position);
    find_mapping(steps, &from, &to, 1);
    return 0;
}
