#include "service/common/confine/confine_places.h"

#include "base/array.h"
#include "base/test_hook.h"
#include "service/common/layout.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS  (CONFINE_WORKER | CONFINE_GPU_WORKER)
#define STEPS    (CONFINE_STEP | CONFINE_GPU_STEP)
#define GPUS     (CONFINE_GPU_WORKER | CONFINE_GPU_STEP)
#define PROGRAMS (CONFINE_PROGRAM_ROLE | CONFINE_PROGRAM_STEP)
#define EVERYONE (CONFINE_INTAKE | CONFINE_COURIER | CONFINE_PAGE | WORKERS | STEPS | PROGRAMS)

struct place_row {
    unsigned roles, rights;
    const char *path;
};

/* Below the root folder. */
static const struct place_row root_rows[] = {
    {CONFINE_INTAKE, PLACE_LIST, ""}, /* synced when a folder is created in it */
    {CONFINE_INTAKE, PLACE_WRITE, LAYOUT_INCOMING},
    {CONFINE_INTAKE, PLACE_WRITE, LAYOUT_SERIES},
    {CONFINE_INTAKE, PLACE_WRITE, LAYOUT_QUARANTINE},
    {CONFINE_INTAKE, PLACE_WRITE, LAYOUT_RELEASED},
    {CONFINE_COURIER, PLACE_READ, LAYOUT_OUTBOX},
    {CONFINE_COURIER, PLACE_WRITE, LAYOUT_CONVERTED},
    {WORKERS, PLACE_READ, LAYOUT_SERIES},
    {WORKERS, PLACE_READ, LAYOUT_JOBS},
    {WORKERS, PLACE_READ, LAYOUT_PROGRAMS}, /* masks */
    {WORKERS, PLACE_WRITE, LAYOUT_OUTBOX},
    {CONFINE_PAGE, PLACE_READ, LAYOUT_OUTBOX}, /* previews */
};

/* Below the root folder: files that may be replaced while the child runs. */
static const struct place_row root_files[] = {
    {CONFINE_PAGE, PLACE_READ, LAYOUT_DATABASE},
    {CONFINE_PAGE, PLACE_READ, LAYOUT_DATABASE "-wal"},
    {CONFINE_PAGE, PLACE_READ, LAYOUT_DATABASE "-shm"},
};

/* Files that libraries open on first use. */
static const struct place_row system_rows[] = {
    {EVERYONE, PLACE_READ, "/usr"}, /* character set tables, the DICOM dictionary, name service modules */
    {EVERYONE, PLACE_READ, "/lib"},
    {EVERYONE, PLACE_READ, "/lib64"},
    {EVERYONE, PLACE_READ, "/opt"},
    {EVERYONE, PLACE_READ, "/etc/ld.so.cache"},
    {EVERYONE, PLACE_READ, "/etc/localtime"},
    {EVERYONE, PLACE_READ, "/dev/urandom"},
    {EVERYONE, PLACE_DEVICE, "/dev/null"},
    {EVERYONE, PLACE_READ, "/proc/self"},
    {EVERYONE, PLACE_READ, "/proc/meminfo"},
    {EVERYONE, PLACE_READ, "/proc/cpuinfo"},
    {EVERYONE, PLACE_READ, "/proc/stat"},
    {EVERYONE, PLACE_READ, "/proc/sys/vm"}, /* malloc reads the overcommit policy */
    {EVERYONE, PLACE_READ, "/sys/devices/system"},
    {EVERYONE, PLACE_READ, "/sys/fs/cgroup"},
    {EVERYONE, PLACE_READ, "/sys/kernel/mm"},
    {CONFINE_INTAKE | CONFINE_COURIER | STEPS, PLACE_READ, "/etc/ssl/openssl.cnf"},
    {CONFINE_COURIER, PLACE_READ, "/etc/ssl/certs"}, /* the system's trusted CAs, for STOW-RS */
    /* Name resolution of destinations. */
    {CONFINE_COURIER, PLACE_READ, "/etc/resolv.conf"},
    {CONFINE_COURIER, PLACE_READ, "/etc/hosts"},
    {CONFINE_COURIER, PLACE_READ, "/etc/host.conf"},
    {CONFINE_COURIER, PLACE_READ, "/etc/nsswitch.conf"},
    {CONFINE_COURIER, PLACE_READ, "/etc/gai.conf"},
    {CONFINE_COURIER, PLACE_READ, "/etc/services"},
    {CONFINE_COURIER, PLACE_READ, "/run/systemd/resolve"},
    /* The driver reads the state of the machine, fails if it cannot name its threads
     * (/proc/self/task/TID/comm), and caches compiled code (places_add_driver). */
    {GPUS, PLACE_READ, "/proc"},
    {GPUS, PLACE_DEVICE, "/proc/self"},
    {GPUS, PLACE_READ, "/sys"},
    {GPUS, PLACE_WRITE, "/dev/shm"},
};

/* Paths that programs of the site expect on each machine. Rows of bubblewrap's own /proc and /dev count without it. */
static const struct place_row program_rows[] = {
    {CONFINE_PROGRAM, PLACE_RUN, "/usr"},
    {CONFINE_PROGRAM, PLACE_RUN, "/bin"},
    {CONFINE_PROGRAM, PLACE_RUN, "/sbin"},
    {CONFINE_PROGRAM, PLACE_RUN, "/lib"},
    {CONFINE_PROGRAM, PLACE_RUN, "/lib32"},
    {CONFINE_PROGRAM, PLACE_RUN, "/lib64"},
    {CONFINE_PROGRAM, PLACE_RUN, "/opt"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/ld.so.cache"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/alternatives"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/localtime"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/passwd"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/group"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/nsswitch.conf"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/hosts"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/resolv.conf"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/ssl/openssl.cnf"},
    {CONFINE_PROGRAM, PLACE_READ, "/etc/ssl/certs"},
    {CONFINE_PROGRAM, PLACE_READ, "/sys/devices/system"},
    {CONFINE_PROGRAM, PLACE_READ, "/proc"},
    {CONFINE_PROGRAM, PLACE_DEVICE, "/dev/null"},
    {CONFINE_PROGRAM, PLACE_DEVICE, "/dev/zero"},
    {CONFINE_PROGRAM, PLACE_DEVICE, "/dev/full"},
    {CONFINE_PROGRAM, PLACE_DEVICE, "/dev/random"},
    {CONFINE_PROGRAM, PLACE_DEVICE, "/dev/urandom"},
};

static int
places_add(struct places *places, const char *path, unsigned rights)
{
    struct place *grown = array_grow(places->items, &places->room, places->count + 1, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    places->items = grown;
    places->items[places->count] = (struct place){.path = strdup(path), .rights = rights};
    return places->items[places->count++].path ? 0 : -ENOMEM;
}

/* A NULL path is not configured and is skipped. */
static int
places_add_configured(struct places *places, const char *path, unsigned rights, bool make)
{
    if (!path)
        return 0;
    const int rc = places_add(places, path, rights);
    if (!rc) {
        places->items[places->count - 1].configured = true;
        places->items[places->count - 1].make = make;
    }
    return rc;
}

static int
places_add_below(struct places *places, const char *root, const struct place_row *row, bool make)
{
    char *path;
    if (asprintf(&path, "%s/%s", root, row->path) < 0)
        return -ENOMEM;
    const int rc = places_add_configured(places, path, row->rights, make);
    free(path);
    return rc;
}

/* A move needs write rights at its source and at its target. */
static int
places_add_inboxes(struct places *places, const struct conf *conf)
{
    static const unsigned rights[] = {
        [CONF_KEEP] = PLACE_READ, [CONF_DELETE] = PLACE_READ | PLACE_REMOVE, [CONF_MOVE] = PLACE_WRITE};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < conf->inbox_count; i++) {
        const struct conf_inbox *inbox = &conf->inboxes[i];
        rc = places_add_configured(places, inbox->path, rights[inbox->after], true);
        if (!rc)
            rc = places_add_configured(places, inbox->move_to, PLACE_WRITE, true);
    }
    return rc;
}

static int
places_add_destinations(struct places *places, const struct conf *conf)
{
    static const struct place_row images = {CONFINE_COURIER, PLACE_READ, LAYOUT_SERIES};
    int rc = 0;
    /* The Patient ID and date for a query of earlier studies come from the images. */
    for (size_t i = 0; rc == 0 && i < conf->pipeline_count; i++)
        if (conf->pipelines[i].changes == CONF_CHANGES_PULL)
            rc = places_add_below(places, conf->root, &images, false);
    for (size_t i = 0; rc == 0 && i < conf->destination_count; i++) {
        const struct conf_destination *destination = &conf->destinations[i];
        const char *const files[] = {destination->ca, destination->client_certificate, destination->client_key,
                                     destination->token_file, destination->login_file};
        rc = places_add_configured(places, destination->folder, PLACE_WRITE, true);
        if (rc == 0 && (destination->send & CONF_SEND_IMAGES))
            rc = places_add_below(places, conf->root, &images, false);
        for (size_t f = 0; rc == 0 && f < sizeof files / sizeof *files; f++)
            rc = places_add_configured(places, files[f], PLACE_READ, false);
    }
    return rc;
}

/* Adds the folders of LD_LIBRARY_PATH. A driver loads its libraries on first use. */
static int
places_add_libraries(struct places *places)
{
    const char *given = getenv("LD_LIBRARY_PATH");
    char *copy = given ? strdup(given) : NULL, *rest = NULL;
    int rc = given && !copy ? -ENOMEM : 0;
    for (const char *folder = copy ? strtok_r(copy, ":", &rest) : NULL; folder && rc == 0;
         folder = strtok_r(NULL, ":", &rest))
        rc = places_add(places, folder, PLACE_READ);
    free(copy);
    return rc;
}

bool
places_have_gpus(void)
{
    glob_t found;
    if (glob("/dev/nvidia*", 0, NULL, &found) != 0)
        return false;
    globfree(&found);
    return true;
}

static int
places_add_devices(struct places *places)
{
    glob_t found;
    int rc = 0;
    if (glob("/dev/nvidia*", 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
        rc = places_add(places, found.gl_pathv[i], PLACE_DEVICE);
    globfree(&found);
    return rc;
}

/* Adds the GPU devices, the folder of MPS (GPU sharing among processes), and the cache of code
 * compiled for GPUs newer than this program. */
static int
places_add_driver(struct places *places)
{
    const char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
    int rc = places_add(places, pipes ? pipes : "/tmp/nvidia-mps", PLACE_WRITE);
    if (!rc)
        rc = places_add_devices(places);
    /* The cache: CUDA_CACHE_PATH, or the default in the account's home. */
    const char *cache = getenv("CUDA_CACHE_PATH"), *home = getenv("HOME");
    char *path = NULL;
    if (rc || (!cache && !home))
        return rc;
    if (!cache && asprintf(&path, "%s/.nv/ComputeCache", home) < 0)
        return -ENOMEM;
    rc = places_add(places, cache ? cache : path, PLACE_WRITE);
    if (!rc)
        places->items[places->count - 1].make = true;
    free(path);
    return rc;
}

/* Adds the files that test hooks open (test_hook.h, tests/emulator/, tests/tools/). */
static int
places_add_hooks(struct places *places)
{
    static const char *const files[] = {"NOCTULE_CRASH_ONCE", "NOCTULE_FAULT_HIT"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof files / sizeof *files; i++) {
        const char *file = test_hook_variable(files[i]);
        if (!file)
            continue;
        char *folder = strndup(file, (size_t)(strrchr(file, '/') - file));
        rc = folder ? places_add(places, folder, PLACE_WRITE) : -ENOMEM;
        free(folder);
    }
    static const char *const folders[] = {"NOCTULE_EMULATOR_GPUS", "NOCTULE_TEST_PLACE"};
    for (size_t i = 0; rc == 0 && i < sizeof folders / sizeof *folders; i++) {
        const char *folder = test_hook_variable(folders[i]);
        rc = folder ? places_add(places, folder, PLACE_READ) : 0;
    }
    return rc;
}

/* Adds the paths that each role needs regardless of the configuration. `rc`: the result of the steps before. */
static int
places_finish(struct places *places, enum confine_role role, int rc)
{
    for (size_t i = 0; rc == 0 && i < sizeof system_rows / sizeof *system_rows; i++) {
        const struct place_row *row = &system_rows[i];
        /* Files below /etc count as configured: administrators may replace them. */
        if (row->roles & role)
            rc = strncmp(row->path, "/etc/", strlen("/etc/"))
                     ? places_add(places, row->path, row->rights)
                     : places_add_configured(places, row->path, row->rights, false);
    }
    if (!rc)
        rc = places_add_libraries(places);
    if (!rc && (role & GPUS))
        rc = places_add_driver(places);
    if (!rc)
        rc = places_add_hooks(places);
    if (rc)
        places_free(places);
    return rc;
}

int
places_of(enum confine_role role, const struct conf *conf, struct places *places)
{
    *places = (struct places){0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof root_rows / sizeof *root_rows; i++)
        if (root_rows[i].roles & role)
            rc = places_add_below(places, conf->root, &root_rows[i], true);
    for (size_t i = 0; rc == 0 && i < sizeof root_files / sizeof *root_files; i++)
        if (root_files[i].roles & role)
            rc = places_add_below(places, conf->root, &root_files[i], false);
    if (!rc && role == CONFINE_INTAKE)
        rc = places_add_inboxes(places, conf);
    const struct conf_tls *tls = &conf->dicom.tls;
    const char *const files[] = {tls->certificate, tls->key, tls->ca, tls->crl};
    const bool uses_tls = role == CONFINE_INTAKE || role == CONFINE_COURIER;
    for (size_t i = 0; rc == 0 && uses_tls && i < sizeof files / sizeof *files; i++)
        rc = places_add_configured(places, files[i], PLACE_READ, false);
    if (!rc && role == CONFINE_COURIER)
        rc = places_add_destinations(places, conf);
    return places_finish(places, role, rc);
}

/* Adds a scratch folder. The process also removes the folder itself, which requires a right on its parent. */
static int
places_add_scratch(struct places *places, const char *scratch)
{
    if (!scratch)
        return 0;
    char *above = strndup(scratch, (size_t)(strrchr(scratch, '/') - scratch));
    int rc = above ? places_add(places, *above ? above : "/", PLACE_EMPTY) : -ENOMEM;
    free(above);
    return rc ? rc : places_add(places, scratch, PLACE_WRITE);
}

int
places_of_command(enum confine_role role, const struct command_places *command, struct places *places)
{
    *places = (struct places){0};
    int rc = command->output ? places_add(places, command->output, PLACE_WRITE) : 0;
    if (rc == 0 && command->kept)
        rc = places_add(places, command->kept, PLACE_EMPTY);
    if (rc == 0)
        rc = places_add_scratch(places, command->scratch);
    for (size_t i = 0; rc == 0 && i < command->input_count; i++)
        rc = places_add(places, command->inputs[i], PLACE_READ);
    return places_finish(places, role, rc);
}

int
places_of_step(enum confine_role role, const struct step_places *step, struct places *places)
{
    *places = (struct places){0};
    int rc = places_add_scratch(places, step->scratch);
    if (!rc && step->series)
        rc = places_add(places, step->series, PLACE_READ);
    for (size_t i = 0; rc == 0 && i < step->attempt_count; i++)
        rc = places_add(places, step->attempts[i], PLACE_WRITE);
    return places_finish(places, role, rc);
}

bool
place_within(const char *path, const char *folder)
{
    const size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 &&
           (path[length] == '/' || !path[length] || (length && path[length - 1] == '/'));
}

/* Adds the rows of the system, except one that would show the root. */
static int
places_add_system(const struct program_places *program, struct places *places)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof program_rows / sizeof *program_rows; i++)
        if (!program->root || !place_within(program->root, program_rows[i].path))
            rc = places_add(places, program_rows[i].path, program_rows[i].rights);
    if (!rc && (program->own_shm || program->gpu))
        rc = places_add(places, "/dev/shm", PLACE_WRITE);
    if (!rc && program->gpu)
        rc = places_add(places, "/sys", PLACE_READ);
    if (!rc && program->gpu)
        rc = places_add(places, "/proc", PLACE_DEVICE); /* a driver names its threads there */
    return rc || !program->gpu ? rc : places_add_devices(places);
}

int
places_of_program(const struct program_places *program, const char **refused, struct places *places)
{
    *places = (struct places){0};
    int rc = places_add_system(program, places);
    for (size_t i = 0; rc == 0 && program->given[i]; i++) {
        *refused = program->given[i];
        if (program->root &&
            (place_within(program->given[i], program->root) || place_within(program->root, program->given[i])))
            rc = -EACCES;
        else
            rc = places_add(places, program->given[i], PLACE_RUN);
    }
    if (!rc)
        rc = places_add(places, program->in, PLACE_RUN);
    if (!rc)
        rc = places_add(places, program->out, PLACE_WRITE | PLACE_RUN);
    if (!rc)
        rc = places_add(places, program->temporary, PLACE_WRITE | PLACE_RUN);
    if (rc)
        places_free(places);
    return rc;
}

void
places_free(struct places *places)
{
    for (size_t i = 0; i < places->count; i++)
        free(places->items[i].path);
    free(places->items);
    *places = (struct places){0};
}
