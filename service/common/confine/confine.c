/* confine.c - see confine.h. Calls the kernel's interface directly, since there is no library for it. */
#include "service/common/confine/confine.h"

#include "service/common/file_ops.h"
#include "service/common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Constants that older system headers lack. */
#define FS_REFER       (1u << 13)
#define FS_TRUNCATE    (1u << 14)
#define FS_IOCTL       (1u << 15)
#define NET_BIND       1u
#define NET_CONNECT    2u
#define SCOPE_ABSTRACT 1u
#define SCOPE_SIGNAL   2u

/* For all configured paths together; a busy machine may stall for seconds. */
#define REACH_SECONDS 10

struct ruleset {
    uint64_t fs, net, scoped;
};

/* The paths that this process may access. Written once, before other threads exist. */
static struct places confined;

/* ------------------------------------------------------------------------------- rights ---- */

/* Returns all access rights that the kernel can restrict. A path without a rule gets no right. */
static uint64_t
confine_fs(long abi)
{
    uint64_t access = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |
                      LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                      LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                      LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                      LANDLOCK_ACCESS_FS_MAKE_SYM;
    access |= abi >= 2 ? FS_REFER : 0;
    access |= abi >= 3 ? FS_TRUNCATE : 0;
    return access | (abi >= 5 ? FS_IOCTL : 0);
}

static uint64_t
confine_access(unsigned rights)
{
    const uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    const uint64_t change = LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE;
    uint64_t access = rights & PLACE_LIST ? LANDLOCK_ACCESS_FS_READ_DIR : 0;
    access |= rights & PLACE_READ ? read : 0;
    access |= rights & PLACE_RUN ? read | LANDLOCK_ACCESS_FS_EXECUTE : 0;
    access |= rights & PLACE_REMOVE ? LANDLOCK_ACCESS_FS_REMOVE_FILE : 0;
    access |= rights & PLACE_EMPTY ? LANDLOCK_ACCESS_FS_REMOVE_DIR : 0;
    access |= rights & PLACE_DEVICE ? read | change | FS_IOCTL : 0;
    if (rights & PLACE_WRITE)
        access |= read | change | FS_REFER | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR |
                  LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR;
    if ((rights & PLACE_WRITE) && (rights & PLACE_RUN)) /* a folder of a program */
        access |= LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SOCK;
    return access;
}

/* ------------------------------------------------------------------------------- places ---- */

/* A path that is being opened by its own thread, since a network share may hang. */
struct reach {
    char *path;
    bool make;
    int fd;
    atomic_bool left; /* set by the first of the two threads to finish; the second must free */
};

static int
place_open(const char *path, bool make)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && make && file_make_path(path) == 0)
        fd = open(path, O_PATH | O_CLOEXEC);
    return fd;
}

static void
reach_free(struct reach *reach)
{
    if (reach->fd >= 0)
        close(reach->fd);
    free(reach->path);
    free(reach);
}

static void *
reach_main(void *argument)
{
    struct reach *reach = argument;
    reach->fd = place_open(reach->path, reach->make);
    if (atomic_exchange(&reach->left, true))
        reach_free(reach);
    return NULL;
}

/* Returns a descriptor, or -1 if the path does not exist or did not respond in time. */
static int
place_reach(const struct place *place, const struct timespec *until)
{
    struct reach *reach = calloc(1, sizeof *reach);
    pthread_t thread;
    if (!reach)
        return -1;
    *reach = (struct reach){.path = strdup(place->path), .make = place->make, .fd = -1};
    if (!reach->path || pthread_create(&thread, NULL, reach_main, reach) != 0) {
        reach_free(reach);
        return -1;
    }
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, until) != 0) {
        log_warn("role.place_hangs", LOG_STR("place", place->path));
        pthread_detach(thread);
    }
    if (!atomic_exchange(&reach->left, true))
        return -1;
    const int fd = reach->fd;
    reach->fd = -1;
    reach_free(reach);
    return fd;
}

static void
place_note(struct place *place, int found, const struct stat *status)
{
    place->device = found == 0 ? status->st_dev : 0;
    place->inode = found == 0 ? status->st_ino : 0;
}

static int
confine_allow(int ruleset, uint64_t handled, struct place *place, const struct timespec *until)
{
    const uint64_t of_files = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                              LANDLOCK_ACCESS_FS_READ_FILE | FS_TRUNCATE | FS_IOCTL;
    struct stat status;
    struct landlock_path_beneath_attr rule = {.allowed_access = confine_access(place->rights) & handled,
                                              .parent_fd = place->configured ? place_reach(place, until)
                                                                             : place_open(place->path, place->make)};
    const int found = rule.parent_fd < 0 ? -1 : fstat(rule.parent_fd, &status);
    place_note(place, found, &status);
    if (found == 0 && !S_ISDIR(status.st_mode))
        rule.allowed_access &= of_files;
    int rc =
        found == 0 && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ? -errno : 0;
    if (rule.parent_fd >= 0)
        close(rule.parent_fd);
    return rc;
}

/* ------------------------------------------------------------------------------- itself ---- */

static int
confine_by(const struct ruleset *rules, size_t size, struct places *places)
{
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, rules, size, 0);
    if (ruleset < 0)
        return -errno;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += REACH_SECONDS;
    int rc = 0;
    for (size_t i = 0; rc == 0 && rules->fs && i < places->count; i++)
        rc = confine_allow(ruleset, rules->fs, &places->items[i], &until);
    if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        rc = -errno;
    if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        rc = -errno;
    close(ruleset);
    return rc;
}

long
confine_landlock(void)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return abi < 0 ? 0 : abi;
}

int
confine_to(enum confine_role role, struct places *places, int rc)
{
    const long abi = confine_landlock();
    /* Version 1 does not allow renames between folders. The receiver needs them to make files durable. */
    const struct ruleset rules = {
        .fs = abi >= (role == CONFINE_INTAKE ? 2 : 1) ? confine_fs(abi) : 0,
        .net = abi >= 4 ? (role & (CONFINE_INTAKE | CONFINE_PROGRAM_NET) ? 0 : NET_BIND) |
                              (role & (CONFINE_COURIER | CONFINE_PROGRAM_NET) ? 0 : NET_CONNECT)
                        : 0,
        .scoped = abi >= 6 ? SCOPE_ABSTRACT | SCOPE_SIGNAL : 0,
    };
    const size_t size = abi >= 6   ? sizeof rules
                        : abi >= 4 ? offsetof(struct ruleset, scoped)
                                   : offsetof(struct ruleset, net);
    if (!rc) {
        if (rules.fs || rules.net)
            rc = confine_by(&rules, size, places);
        if (!rc && rules.fs)
            confined = *places;
        else
            places_free(places);
    }
    if (!rc)
        log_debug("role.confined", LOG_INT("landlock", abi), LOG_INT("files", rules.fs != 0),
                  LOG_INT("net", rules.net != 0), LOG_INT("signals", rules.scoped != 0));
    else
        log_error("role.confine", LOG_STR("error", strerror(-rc)));
    return rc;
}

int
confine_self(enum confine_role role, const struct conf *conf)
{
    struct places places;
    const int rc = places_of(role, conf, &places);
    return confine_to(role, &places, rc);
}

int
confine_step(enum confine_role role, const struct step_places *step)
{
    struct places places;
    const int rc = places_of_step(role, step, &places);
    return confine_to(role, &places, rc);
}

int
confine_command(enum confine_role role, const struct command_places *command)
{
    struct places places;
    const int rc = places_of_command(role, command, &places);
    return confine_to(role, &places, rc);
}

/* ------------------------------------------------------------------------------ renewal ---- */

const char *
confine_lacks(const struct places *needed)
{
    for (size_t i = 0; confined.count > 0 && i < needed->count; i++) {
        const struct place *place = &needed->items[i];
        const struct place *before = confined.items, *end = before + confined.count;
        struct place now = {0};
        struct stat status;
        while (before < end && (before->rights != place->rights || strcmp(before->path, place->path) != 0))
            before++;
        if (before == end)
            return place->path;
        place_note(&now, stat(before->path, &status), &status);
        if (before->configured && (now.device != before->device || now.inode != before->inode))
            return before->path;
    }
    return NULL;
}
