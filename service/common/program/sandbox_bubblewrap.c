/* sandbox_bubblewrap.c - the command line of bubblewrap (bwrap(1)). */
#include "service/common/program/sandbox_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIXED_WORDS 48
#define PLACE_WORDS 3

struct bubblewrap_line {
    char **words;
    size_t count;
    bool failed;
};

/* Adds words up to a NULL. */
static void
bubblewrap_add(struct bubblewrap_line *line, const char *const *words)
{
    for (; *words && !line->failed; words++) {
        line->words[line->count] = strdup(*words);
        line->failed = !line->words[line->count];
        line->count += !line->failed;
    }
}

#define ADD(line, ...) bubblewrap_add((line), (const char *const[]){__VA_ARGS__, NULL})

char **
sandbox_bubblewrap(const struct sandbox_order *order, const struct places *places, bool filtered)
{
    size_t argc = 0;
    while (order->argv[argc])
        argc++;
    struct bubblewrap_line line = {.words =
                                       calloc(FIXED_WORDS + PLACE_WORDS * places->count + argc + 1, sizeof(char *))};
    if (!line.words)
        return NULL;
    ADD(&line, SANDBOX_BUBBLEWRAP_PATH, "--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--json-status-fd", "3", "--dev", "/dev");
    if (!order->host_network)
        ADD(&line, "--unshare-net");
    if (order->host_proc)
        ADD(&line, "--ro-bind", "/proc", "/proc");
    else
        ADD(&line, "--proc", "/proc");
    if (filtered)
        ADD(&line, "--seccomp", "4");
    ADD(&line, "--bind", order->places.temporary, "/tmp", "--bind-try", order->places.shared, "/dev/shm");
    for (size_t i = 0; i < places->count; i++) {
        /* At its own path. bubblewrap makes /proc and /dev itself, except devices of GPUs. */
        const struct place *place = &places->items[i];
        const bool is_gpu = strncmp(place->path, "/dev/nvidia", strlen("/dev/nvidia")) == 0;
        const bool own = place_within(place->path, "/proc") || (place_within(place->path, "/dev") && !is_gpu);
        const char *how = is_gpu ? "--dev-bind-try" : (place->rights & PLACE_WRITE) ? "--bind-try" : "--ro-bind-try";
        if (!own)
            ADD(&line, how, place->path, place->path);
    }
    /* Files that bubblewrap creates lie in memory, and no limit counts them. */
    ADD(&line, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", order->places.out, "--");
    bubblewrap_add(&line, (const char *const *)order->argv);
    if (line.failed) {
        while (line.count > 0)
            free(line.words[--line.count]);
        free(line.words);
        return NULL;
    }
    return line.words;
}
