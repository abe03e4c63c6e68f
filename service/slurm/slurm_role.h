/*
 * slurm_role.h - shared by the parts of the Slurm role: slurm_role.c (the loop and the pipe) and
 * slurm_requests.c (the requests, in pool threads).
 */
#ifndef NOCTULE_SERVICE_SLURM_SLURM_ROLE_H
#define NOCTULE_SERVICE_SLURM_SLURM_ROLE_H

#include "config/config.h"
#include "service/common/wire/messages.h"

#include <stdatomic.h>

/* Shared by all threads and, except for `stop`, never changed. */
struct slurm_site {
    struct conf *conf;
    char *folder; /* of the attempts: <share>/noctule-<id> */
    char *script;
    char name[48];    /* of all Slurm jobs: noctule-<id> */
    atomic_bool stop; /* ends long operations */
};

/* A request of the daemon, and the frames of the reply. */
struct slurm_request {
    const struct slurm_site *site;
    union message_any message;
    struct proto_reader rows;
    void *memory; /* holds the strings of both */
    struct proto_writer *answers;
    size_t answer_count, room;
    bool out_of_memory; /* a frame was lost */
    bool programs;      /* an attempt to be submitted runs programs of the site */
};

/* Handle one request each, in a pool thread. They block on the share and on Slurm. */
void slurm_request_submit(struct slurm_request *request);
void slurm_request_poll(struct slurm_request *request);
void slurm_request_collect(struct slurm_request *request);
void slurm_request_dismiss(struct slurm_request *request);
void slurm_request_cancel(struct slurm_request *request);
/* Lists the folders that exist at the start. */
void slurm_request_list_folders(struct slurm_request *request);

#endif
