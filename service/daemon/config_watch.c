#include "service/daemon/config_watch.h"

#include "config/config.h"
#include "service/common/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define AGAIN_MS 10000

static uint64_t
print_add(uint64_t print, uint64_t value)
{
    return (print ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (print >> 29);
}

/* The change time covers contents, owner and mode. */
static uint64_t
print_of(const char *paths)
{
    char *copy = strdup(paths), *rest = NULL;
    uint64_t print = 0;
    for (char *path = copy ? strtok_r(copy, "\n", &rest) : NULL; path; path = strtok_r(NULL, "\n", &rest)) {
        struct stat status;
        if (stat(path, &status) < 0) {
            print = print_add(print, 1);
            continue;
        }
        print = print_add(print, status.st_ino);
        print = print_add(print, (uint64_t)status.st_size);
        print = print_add(print, (uint64_t)status.st_ctim.tv_sec);
        print = print_add(print, (uint64_t)status.st_ctim.tv_nsec);
    }
    free(copy);
    return print;
}

static void
config_watch_load(struct config_watch *watch)
{
    struct conf_findings findings;
    struct conf *conf = NULL;
    struct error fault = {0};
    const uint64_t before = watch->paths ? print_of(watch->paths) : 0;
    const int rc = conf_load_all(watch->file, watch->root, &conf, &findings, &fault);
    char *paths;
    if (asprintf(&paths, "%s\n%s", findings.files ? findings.files : watch->file,
                 findings.folders ? findings.folders : "") >= 0) {
        /* Other paths are loaded once more: one may have changed meanwhile. */
        watch->print = watch->paths && strcmp(watch->paths, paths) == 0 ? before : 0;
        free(watch->paths);
        watch->paths = paths;
    }
    conf_findings_free(&findings);
    conf_free(conf);
    watch->again_ms = clock_steady_ms() + AGAIN_MS;
    watch->fault = rc ? fault : (struct error){0};
    if (!rc)
        watch->since_ms = 0;
    else if (!watch->since_ms)
        watch->since_ms = clock_unix_ms();
}

void
config_watch_loaded(struct config_watch *watch, const struct error *refused)
{
    watch->refused = refused ? *refused : (struct error){0};
    config_watch_load(watch);
}

void
config_watch_check(struct config_watch *watch)
{
    const bool is_again = watch->since_ms && clock_steady_ms() >= watch->again_ms;
    if (watch->paths && (is_again || print_of(watch->paths) != watch->print))
        config_watch_load(watch);
}

const char *
config_watch_fault(const struct config_watch *watch)
{
    return watch->since_ms && strcmp(watch->fault.message, watch->refused.message) != 0 ? watch->fault.message : NULL;
}
