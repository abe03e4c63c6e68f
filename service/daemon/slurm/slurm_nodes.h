/*
 * slurm_nodes.h - which nodes lose jobs: one that lost several in a row gets none for an hour. Nothing of it outlives the
 * daemon: a new one gives each node another chance. Pure but for memory; times are of any clock, in milliseconds.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SLURM_SLURM_NODES_H
#define NOCTULE_SERVICE_DAEMON_SLURM_SLURM_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NODES_LOST_MOST 3
#define NODES_REST_MS   3600000

struct nodes_row {
    char name[64];
    int lost;          /* in a row */
    uint64_t until_ms; /* excluded; 0: it is not */
};

struct nodes {
    struct nodes_row *rows;
    size_t count, room;
};

/* True: it is excluded from now on. */
bool nodes_lost(struct nodes *nodes, const char *name, uint64_t now_ms);
void nodes_well(struct nodes *nodes, const char *name);
/* As sbatch takes them, "a,b": free it. NULL: no memory. */
char *nodes_excluded(struct nodes *nodes, uint64_t now_ms);
void nodes_free(struct nodes *nodes);

#endif
