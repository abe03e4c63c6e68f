/*
 * confine_places.h - the places that a child of each role needs while it works, and what it does there: a table, and
 * what the configuration names. confine.c opens them and lets go of all others.
 */
#ifndef NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_PLACES_H
#define NOCTULE_SERVICE_COMMON_CONFINE_CONFINE_PLACES_H

#include "config/config.h"

#include <sys/types.h>

enum confine_role { /* OR-able in the table */
                    CONFINE_INTAKE = 1 << 0,
                    CONFINE_COURIER = 1 << 1,
                    CONFINE_WORKER = 1 << 2,     /* of the processors */
                    CONFINE_GPU_WORKER = 1 << 3, /* of a GPU */
                    CONFINE_PAGE = 1 << 4,
                    CONFINE_STEP = 1 << 5,     /* of a job, on another machine (service/cli/step) */
                    CONFINE_GPU_STEP = 1 << 6, /* where that machine has a GPU */
};

enum place_right {                        /* OR-able; of all that lies below, too */
                   PLACE_LIST = 1 << 0,   /* names in folders */
                   PLACE_READ = 1 << 1,   /* and what is in files */
                   PLACE_REMOVE = 1 << 2, /* files */
                   PLACE_WRITE =
                       1
                       << 3, /* files, folders and links are made, changed, moved and removed; read, too */
                   PLACE_DEVICE = 1 << 4, /* read, written and controlled */
                   PLACE_EMPTY = 1 << 5,  /* folders in it that are empty are removed */
};

struct place {
    char *path; /* absolute */
    unsigned rights;
    bool make;       /* a folder that the service makes when it is missing */
    bool configured; /* by people: it may hang, and be another from one day to the next */
    /* What lay there when the process was confined; 0: nothing. */
    dev_t device;
    ino_t inode;
};

struct places {
    struct place *items;
    size_t count, room;
};

/* What a step is started with: no configuration is there. Folders, by absolute paths. */
struct step_places {
    const char *series;  /* images that were not copied lie below it; NULL: all were */
    const char *scratch; /* its own; NULL: there is none */
    char *const *attempts;
    size_t attempt_count;
};

/* Of a command that reads files by itself (noctule run, explain): folders, by any paths. */
struct command_places {
    char *const *inputs; /* read */
    size_t input_count;
    const char *output; /* written; NULL: nothing is */
    const char *kept;   /* empty folders in it can be removed, those above the output; NULL: none */
};

/* A driver of GPUs has made its devices here. */
bool places_have_gpus(void);

/* 0 or -ENOMEM. */
int places_of_step(enum confine_role role, const struct step_places *step, struct places *places);
int places_of_command(enum confine_role role, const struct command_places *command,
                      struct places *places);
int places_of(enum confine_role role, const struct conf *conf, struct places *places);
void places_free(struct places *places);

#endif
