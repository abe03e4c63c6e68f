/*
 * slurm_role.c - the role that calls Slurm and accesses the folder shared with the nodes. Requests
 * of the daemon arrive over fd 3, pool threads handle them, and each reply is sent as a whole.
 *
 * The daemon must not block on a hanging share or on sbatch, and its files must not be writable by
 * others. This process may be killed at any time: the daemon then finds missing replies by polling
 * Slurm and searching manifests. It is not confined, because Slurm's commands load the site's
 * plugins and connect to munge and the controller as configured there. The daemon orders the
 * requests of one attempt: it sends the next after the reply to the last.
 */
#include "service/slurm/slurm_role.h"

#include "base/durable.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/common/role.h"
#include "service/common/slurm/slurm.h"
#include "service/common/slurm/slurm_folder.h"
#include "service/common/wire/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define ID_DIGITS 16

struct slurm_process {
    struct child child;
    uv_loop_t loop;
    struct slurm_site site;
    size_t under_way; /* requests */
};

/* ------------------------------------------------------------------------------ requests ---- */

typedef void slurm_work_call(struct slurm_request *request);

struct slurm_work {
    struct slurm_request request; /* must be first */
    uv_work_t work;
    struct slurm_process *process;
    slurm_work_call *call;
};

static void
slurm_work_run(uv_work_t *work)
{
    struct slurm_work *order = work->data;
    order->call(&order->request);
}

static void
slurm_work_ended(uv_work_t *work, int status)
{
    struct slurm_work *order = work->data;
    struct slurm_process *process = order->process;
    const struct slurm_request *request = &order->request;
    for (size_t i = 0; i < request->answer_count; i++) {
        if (status || request->out_of_memory)
            proto_release(&request->answers[i]);
        else
            child_send(&process->child, &request->answers[i]);
    }
    if (status || request->out_of_memory)
        child_fail(&process->child, "no memory for an answer");
    free(order->request.answers);
    free(order->request.memory);
    free(order);
    process->under_way--;
    if (process->child.draining && process->under_way == 0)
        uv_stop(&process->loop);
}

static void
slurm_work_begin(struct slurm_process *process, struct slurm_work *order, slurm_work_call *call)
{
    order->request.site = &process->site;
    order->process = process;
    order->call = call;
    order->work.data = order;
    process->under_way++;
    uv_queue_work(&process->loop, &order->work, slurm_work_run, slurm_work_ended); /* cannot fail */
}

static slurm_work_call *
slurm_work_call_of(enum proto_type type)
{
    switch ((int)type) {
    case PROTO_SUBMIT_TASK:
        return slurm_request_submit;
    case PROTO_POLL:
        return slurm_request_poll;
    case PROTO_COLLECT:
        return slurm_request_collect;
    case PROTO_DISMISS:
        return slurm_request_dismiss;
    case PROTO_CANCEL_TASK:
        return slurm_request_cancel;
    default:
        return NULL;
    }
}

static void
slurm_role_on_message(void *context, struct proto_reader *reader)
{
    struct slurm_process *process = context;
    slurm_work_call *call = slurm_work_call_of(reader->type);
    union message_any message;
    if (!call) {
        reader->error = -EBADMSG;
        return;
    }
    if (message_read(reader, reader->type, &message) || process->child.draining)
        return; /* the next process gets unanswered requests again */
    struct slurm_work *order = calloc(1, sizeof *order);
    void *memory = order ? message_keep(reader, reader->type, &message) : NULL;
    if (!memory) {
        free(order);
        child_fail(&process->child, "no memory for a request");
        return;
    }
    order->request.message = message;
    order->request.rows = *reader;
    order->request.memory = memory;
    slurm_work_begin(process, order, call);
}

static void
slurm_role_on_drain(void *context)
{
    struct slurm_process *process = context;
    atomic_store(&process->site.stop, true);
    if (process->under_way == 0)
        uv_stop(&process->loop);
}

static const struct child_role slurm_child_role = {
    .name = "cluster", .message = slurm_role_on_message, .drain = slurm_role_on_drain};

/* ---------------------------------------------------------------------------------- site ---- */

/* Reads the root's id, created once. It marks this root's jobs in Slurm: those of another daemon
 * must not be cancelled. */
static int
slurm_role_read_id(const char *root, char id[ID_DIGITS + 1])
{
    char *path, nonce[ATTEMPT_NONCE_SIZE];
    if (asprintf(&path, "%s/" LAYOUT_CLUSTER_ID, root) < 0)
        return -ENOMEM;
    int rc = slurm_nonce_make(nonce);
    if (!rc)
        rc = durable_write(AT_FDCWD, path, nonce, ID_DIGITS, 0600, DURABLE_NEW);
    if (!rc)
        rc = durable_sync_folder(AT_FDCWD, root);
    const int fd = rc && rc != -EEXIST ? rc : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        rc = rc && rc != -EEXIST ? rc : -errno;
    else
        rc = read(fd, id, ID_DIGITS) == ID_DIGITS ? 0 : -EBADMSG;
    if (fd >= 0)
        close(fd);
    free(path);
    id[ID_DIGITS] = '\0';
    return rc || strspn(id, "0123456789abcdef") == ID_DIGITS ? rc : -EBADMSG;
}

/* ---------------------------------------------------------------------------- the process ---- */

/* Serves until the daemon ends it. Then it exits without waiting for requests: their replies are
 * not needed, and a hanging share must not block it. */
static int
slurm_role_run(struct slurm_process *process)
{
    const struct child *child = &process->child;
    int rc = uv_loop_init(&process->loop);
    if (rc)
        return rc;
    rc = child_open(&process->child, &process->loop, &slurm_child_role, process);
    if (!rc) {
        struct slurm_work *order = calloc(1, sizeof *order);
        if (order)
            slurm_work_begin(process, order, slurm_request_list_folders);
        uv_run(&process->loop, UV_RUN_DEFAULT);
        if (child->hung_up || child->failed || process->under_way > 0)
            _exit(child_status(child));
        child_close(&process->child);
    }
    uv_run(&process->loop, UV_RUN_DEFAULT);
    uv_loop_close(&process->loop);
    return rc;
}

int
slurm_main(const struct role_args *args)
{
    struct slurm_process process = {0};
    struct error error = {0};
    char id[ID_DIGITS + 1];
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setenv("UV_THREADPOOL_SIZE", SLURM_THREADS, 0); /* read at the first work request */
    int rc = conf_load(args->config_file, &process.site.conf, &error);
    if (rc) {
        log_error("cluster.config", LOG_STR("error", error.message));
        return child_start_status(rc);
    }
    log_set_level(process.site.conf->log_level);
    struct slurm_site *site = &process.site;
    const char *share = site->conf->compute.slurm.share;
    rc = share ? slurm_role_read_id(site->conf->root, id) : -EINVAL;
    if (!rc) {
        snprintf(site->name, sizeof site->name, "noctule-%s", id);
        if (asprintf(&site->folder, "%s/%s", share, site->name) < 0)
            site->folder = NULL;
        if (asprintf(&site->script, "%s/" LAYOUT_SLURM_SCRIPT, site->conf->root) < 0)
            site->script = NULL;
        rc = site->folder && site->script ? slurm_write_script(site->script) : -ENOMEM;
    }
    if (rc)
        log_error("cluster.start", LOG_STR("error", strerror(-rc)));
    else
        rc = slurm_role_run(&process);
    free(process.site.folder);
    free(process.site.script);
    conf_free(process.site.conf);
    return rc ? child_start_status(rc) : child_status(&process.child);
}
