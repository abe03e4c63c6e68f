/* confine_places.h - the paths that a child of each role needs for its work, with its rights there,
 * from a table and from the configuration. confine.c opens them and denies all others. */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_PLACES_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_PLACES_H

#include "config/config.h"

#include <sys/types.h>

enum confine_role { /* OR-able in the table */
                    CONFINE_INTAKE = 1 << 0,
                    CONFINE_COURIER = 1 << 1,
                    CONFINE_WORKER = 1 << 2,     /* on the CPU */
                    CONFINE_GPU_WORKER = 1 << 3, /* on a GPU */
                    CONFINE_PAGE = 1 << 4,
                    CONFINE_STEP = 1 << 5,     /* of a job on another machine (service/cli/slurm) */
                    CONFINE_GPU_STEP = 1 << 6, /* on another machine with a GPU */
                    CONFINE_PROGRAM_ROLE = 1 << 7,
                    CONFINE_PROGRAM_STEP = 1 << 8, /* reads or writes images for a program (broker.h) */
                    /* A program of the site, without a network or with that of the host. Boxed: bubblewrap hides the
                     * files of the machine from it, so that it may have local sockets. */
                    CONFINE_PROGRAM = 1 << 9,
                    CONFINE_PROGRAM_NET = 1 << 10,
                    CONFINE_BOXED = 1 << 11,
                    CONFINE_BOXED_NET = 1 << 12,
};

enum place_right {                        /* OR-able; also valid for everything below */
                   PLACE_LIST = 1 << 0,   /* list folders */
                   PLACE_READ = 1 << 1,   /* list folders and read files */
                   PLACE_REMOVE = 1 << 2, /* remove files */
                   /* Create, change, move and remove files, folders and links; read, too. */
                   PLACE_WRITE = 1 << 3,
                   PLACE_DEVICE = 1 << 4, /* read, write and ioctl */
                   PLACE_EMPTY = 1 << 5,  /* remove empty folders in it */
                   PLACE_RUN = 1 << 6,    /* read and execute */
};

struct place {
    char *path; /* absolute */
    unsigned rights;
    bool make;       /* a folder that the service creates if it is missing */
    bool configured; /* from the configuration: it may hang, and may be replaced later */
    /* Identity when the process was confined; 0: it did not exist. */
    dev_t device;
    ino_t inode;
};

struct places {
    struct place *items;
    size_t count, room;
};

/* The paths of a step, which has no configuration. All are absolute folders. */
struct step_places {
    const char *series;  /* contains images that were not copied; NULL: all were copied */
    const char *scratch; /* its own scratch folder, or NULL */
    char *const *attempts;
    size_t attempt_count;
};

/* The folders of a command that reads files itself (noctule run, explain). Paths may be relative. */
struct command_places {
    char *const *inputs; /* read */
    size_t input_count;
    const char *output;  /* written; NULL: no output */
    const char *kept;    /* its empty folders can be removed, those above the output, or NULL */
    const char *scratch; /* as in struct step_places; absolute */
};

/* The paths of a program of the site. */
struct program_places {
    const char *root;                 /* folder of the service, which stays hidden; NULL: none */
    const char *in, *out, *temporary; /* its folders; it may write the last two */
    const char *shared;               /* its /dev/shm, if it has a mount namespace */
    const char *const *given;         /* that it may read and execute, NULL at the end */
    bool gpu;
    bool own_shm; /* its /dev/shm is not that of the machine */
};

/* Returns whether `path` is the folder or lies below it. */
bool place_within(const char *path, const char *folder);

/* Returns whether a GPU driver has created its devices on this machine. */
bool places_have_gpus(void);

/* Collect the paths of a role. Return 0 or -ENOMEM. */
int places_of_step(enum confine_role role, const struct step_places *step, struct places *places);
int places_of_command(enum confine_role role, const struct command_places *command, struct places *places);
int places_of(enum confine_role role, const struct conf *conf, struct places *places);
/* Likewise for a program. -EACCES if a given path contains or lies below the root; *refused is this path. */
int places_of_program(const struct program_places *program, const char **refused, struct places *places);
void places_free(struct places *places);

#endif
