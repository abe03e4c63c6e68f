/*
 * confine_places.h - the places that a child of each role needs while it works, and what it does there: a table, and
 * what the configuration names. confine.c opens them and lets go of all others.
 */
#ifndef NOCTULE_CONFINE_PLACES_H
#define NOCTULE_CONFINE_PLACES_H

#include "config/config.h"

#include <sys/types.h>

enum confine_role { /* OR-able in the table */
                    CONFINE_INTAKE = 1 << 0,
                    CONFINE_COURIER = 1 << 1,
                    CONFINE_WORKER = 1 << 2,     /* of the processors */
                    CONFINE_GPU_WORKER = 1 << 3, /* of a GPU */
                    CONFINE_PAGE = 1 << 4,
};

enum place_right {                        /* OR-able; of all that lies below, too */
                   PLACE_LIST = 1 << 0,   /* names in folders */
                   PLACE_READ = 1 << 1,   /* and what is in files */
                   PLACE_REMOVE = 1 << 2, /* files */
                   PLACE_WRITE =
                       1
                       << 3, /* files, folders and links are made, changed, moved and removed; read, too */
                   PLACE_DEVICE = 1 << 4, /* read, written and controlled */
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

/* 0 or -ENOMEM. */
int places_of(enum confine_role role, const struct conf *conf, struct places *places);
void places_free(struct places *places);

#endif
