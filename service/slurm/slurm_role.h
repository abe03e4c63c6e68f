/*
 * slurm_role.h - what the parts of the role share that knows Slurm and the shared folder: slurm_role.c (the loop, and
 * what comes over the pipe), slurm_requests.c (what a pool thread does about it).
 */
#ifndef NOCTULE_SERVICE_SLURM_SLURM_ROLE_H
#define NOCTULE_SERVICE_SLURM_SLURM_ROLE_H

#include "config/config.h"
#include "service/common/wire/messages.h"

#include <stdatomic.h>

/* Read by all threads, and never changed. */
struct site {
    struct conf *conf;
    char *folder; /* of the attempts: <share>/noctule-<id> */
    char *script;
    char name[48];    /* of all Slurm jobs: noctule-<id> */
    atomic_bool stop; /* but this: what takes long ends */
};

/* What the daemon asked for, and the frames that answer it. */
struct site_request {
    const struct site *site;
    union message_any told;
    struct proto_reader rows;
    void *memory; /* what both point into */
    struct proto_writer *answers;
    size_t answer_count, room;
    bool out_of_memory; /* for one of them */
};

/* The next frame of the answer, to be written; it is sent with the others when the thread is done. */
struct proto_writer *site_answer(struct site_request *request);

/* By a pool thread: they block, on the share and on Slurm. */
void site_submit(struct site_request *request);
void site_poll(struct site_request *request);
void site_collect(struct site_request *request);
void site_dismiss(struct site_request *request);
void site_cancel(struct site_request *request);
/* The folders that are there at the start. */
void site_list_folders(struct site_request *request);

#endif
