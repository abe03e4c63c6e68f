/* process_tree.c - see sandbox.h. */
#include "service/common/program/sandbox.h"

#include "base/array.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct process {
    pid_t pid, parent;
    bool below;
    int threads;
    int64_t pages;
};

struct process_list {
    struct process *items;
    size_t count, room;
};

static int
process_compare(const void *a, const void *b)
{
    const pid_t left = ((const struct process *)a)->pid, right = ((const struct process *)b)->pid;
    return left < right ? -1 : left > right;
}

static bool
process_read(const char *pid, struct process *process)
{
    char path[64], line[1024];
    long long pages;
    int parent, threads;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    const char *text = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL; /* the name may have spaces */
    fclose(file);
    /* Fields 3 to 24 of proc(5): state, parent, ..., threads (20), ..., resident pages (24). */
    if (!text ||
        sscanf(text + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %*u %*u %lld",
               &parent, &threads, &pages) != 3)
        return false;
    *process = (struct process){.pid = atoi(pid), .parent = parent, .threads = threads, .pages = pages};
    return true;
}

/* Lists all processes. The caller must free the items. Without memory or /proc the list is shorter. */
static void
process_list(struct process_list *list, pid_t root)
{
    DIR *directory = opendir("/proc");
    *list = (struct process_list){0};
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        struct process *grown = array_grow(list->items, &list->room, list->count + 1, sizeof *grown);
        if (!grown)
            break;
        list->items = grown;
        list->count += process_read(entry->d_name, &grown[list->count]);
    }
    if (directory)
        closedir(directory);
    if (list->count) {
        qsort(list->items, list->count, sizeof *list->items, process_compare);
        for (bool more = true; more;) {
            more = false;
            for (struct process *process = list->items; process < list->items + list->count; process++) {
                const struct process key = {.pid = process->parent};
                const struct process *parent = bsearch(&key, list->items, list->count, sizeof key, process_compare);
                if (!process->below && (process->parent == root || (parent && parent->below)))
                    process->below = more = true;
            }
        }
    }
}

/* Returns the memory of a process in which shared pages count in proportion, or -1. */
static int64_t
process_proportional(pid_t pid)
{
    char path[64], line[256];
    long long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %lld kB", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib < 0 ? -1 : (int64_t)kib * 1024;
}

void
process_tree_measure(pid_t root, int64_t limit, struct process_usage *usage)
{
    const int64_t page = sysconf(_SC_PAGESIZE);
    struct process_list list;
    process_list(&list, root);
    *usage = (struct process_usage){0};
    for (size_t i = 0; i < list.count; i++) {
        if (!list.items[i].below)
            continue;
        usage->tasks += list.items[i].threads;
        usage->bytes += list.items[i].pages * page;
    }
    int64_t exact = 0;
    for (size_t i = 0; limit > 0 && usage->bytes > limit && i < list.count; i++) {
        const int64_t bytes = list.items[i].below ? process_proportional(list.items[i].pid) : 0;
        exact += bytes < 0 ? list.items[i].pages * page : bytes;
    }
    if (exact > 0)
        usage->bytes = exact;
    free(list.items);
}

void
process_tree_end(pid_t pid, int *status)
{
    struct timespec pause = {.tv_nsec = 500000};
    struct process_list list;
    for (;;) { /* processes that are forked meanwhile need another turn */
        int other;
        pid_t ended;
        process_list(&list, getpid());
        for (size_t i = 0; i < list.count; i++)
            if (list.items[i].below)
                kill(list.items[i].pid, SIGKILL);
        free(list.items);
        while ((ended = waitpid(-1, &other, WNOHANG)) > 0)
            if (ended == pid)
                *status = other;
        if (ended < 0)
            return;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 32000000)
            pause.tv_nsec *= 2;
    }
}
