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

struct gateway {
    struct child child;
    uv_loop_t loop;
    struct site site;
    size_t under_way; /* requests */
};

/* ------------------------------------------------------------------------------ requests ---- */

typedef void gateway_do(struct site_request *request);

struct gateway_work {
    struct site_request request; /* must be first */
    uv_work_t work;
    struct gateway *gateway;
    gateway_do *call;
};

static void
gateway_on_thread(uv_work_t *work)
{
    struct gateway_work *order = work->data;
    order->call(&order->request);
}

static void
gateway_free_work(struct gateway_work *order)
{
    free(order->request.answers);
    free(order->request.memory);
    free(order);
}

static void
gateway_after(uv_work_t *work, int status)
{
    struct gateway_work *order = work->data;
    struct gateway *gateway = order->gateway;
    const struct site_request *request = &order->request;
    for (size_t i = 0; i < request->answer_count; i++) {
        if (status || request->out_of_memory)
            proto_release(&request->answers[i]);
        else
            child_send(&gateway->child, &request->answers[i]);
    }
    if (status || request->out_of_memory)
        child_fail(&gateway->child, "no memory for an answer");
    gateway_free_work(order);
    gateway->under_way--;
    if (gateway->child.draining && gateway->under_way == 0)
        uv_stop(&gateway->loop);
}

static void
gateway_begin(struct gateway *gateway, struct gateway_work *order, gateway_do *call)
{
    order->request.site = &gateway->site;
    order->gateway = gateway;
    order->call = call;
    order->work.data = order;
    gateway->under_way++;
    uv_queue_work(&gateway->loop, &order->work, gateway_on_thread, gateway_after); /* cannot fail */
}

static gateway_do *
gateway_call_of(enum proto_type type)
{
    switch ((int)type) {
    case PROTO_SUBMIT_TASK:
        return site_submit;
    case PROTO_POLL:
        return site_poll;
    case PROTO_COLLECT:
        return site_collect;
    case PROTO_DISMISS:
        return site_dismiss;
    case PROTO_CANCEL_TASK:
        return site_cancel;
    default:
        return NULL;
    }
}

static void
gateway_on_message(void *context, struct proto_reader *reader)
{
    struct gateway *gateway = context;
    gateway_do *call = gateway_call_of(reader->type);
    union message_any told;
    if (!call) {
        reader->error = -EBADMSG;
        return;
    }
    if (message_read(reader, reader->type, &told) || gateway->child.draining)
        return; /* the next process gets unanswered requests again */
    struct gateway_work *order = calloc(1, sizeof *order);
    void *memory = order ? message_keep(reader, reader->type, &told) : NULL;
    if (!memory) {
        free(order);
        child_fail(&gateway->child, "no memory for a request");
        return;
    }
    order->request.told = told;
    order->request.rows = *reader;
    order->request.memory = memory;
    gateway_begin(gateway, order, call);
}

static void
gateway_on_drain(void *context)
{
    struct gateway *gateway = context;
    atomic_store(&gateway->site.stop, true);
    if (gateway->under_way == 0)
        uv_stop(&gateway->loop);
}

static const struct child_role cluster_role = {
    .name = "cluster", .message = gateway_on_message, .drain = gateway_on_drain};

/* ---------------------------------------------------------------------------------- site ---- */

/* Reads the root's id, created once. It marks this root's jobs in Slurm: those of another daemon
 * must not be cancelled. */
static int
gateway_read_id(const char *root, char id[ID_DIGITS + 1])
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

static int
gateway_open_site(struct site *site)
{
    char id[ID_DIGITS + 1];
    int rc = site->conf->compute.slurm.share ? gateway_read_id(site->conf->root, id) : -EINVAL;
    if (rc)
        return rc;
    snprintf(site->name, sizeof site->name, "noctule-%s", id);
    if (asprintf(&site->folder, "%s/%s", site->conf->compute.slurm.share, site->name) < 0) {
        site->folder = NULL;
        return -ENOMEM;
    }
    if (asprintf(&site->script, "%s/" LAYOUT_SLURM_SCRIPT, site->conf->root) < 0) {
        site->script = NULL;
        return -ENOMEM;
    }
    return slurm_write_script(site->script);
}

/* ---------------------------------------------------------------------------- the process ---- */

/* Serves until the daemon ends it. Then it exits without waiting for requests: their replies are
 * not needed, and a hanging share must not block it. */
static void
gateway_serve(struct gateway *gateway)
{
    const struct child *child = &gateway->child;
    struct gateway_work *order = calloc(1, sizeof *order);
    if (order)
        gateway_begin(gateway, order, site_list_folders);
    uv_run(&gateway->loop, UV_RUN_DEFAULT);
    if (child->hung_up || child->failed || gateway->under_way > 0)
        _exit(child_status(child));
    child_close(&gateway->child);
}

static int
gateway_run(struct gateway *gateway)
{
    int rc = uv_loop_init(&gateway->loop);
    if (rc)
        return rc;
    rc = child_open(&gateway->child, &gateway->loop, &cluster_role, gateway);
    if (!rc)
        gateway_serve(gateway);
    uv_run(&gateway->loop, UV_RUN_DEFAULT);
    uv_loop_close(&gateway->loop);
    return rc;
}

int
cluster_main(const struct role_args *args)
{
    struct gateway gateway = {0};
    struct error error = {0};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setenv("UV_THREADPOOL_SIZE", SLURM_THREADS, 0); /* read at the first work request */
    int rc = conf_load(args->config_file, &gateway.site.conf, &error);
    if (rc) {
        log_error("cluster.config", LOG_STR("error", error.message));
        return child_start_status(rc);
    }
    log_set_level(gateway.site.conf->log_level);
    rc = gateway_open_site(&gateway.site);
    if (rc)
        log_error("cluster.start", LOG_STR("error", strerror(-rc)));
    else
        rc = gateway_run(&gateway);
    free(gateway.site.folder);
    free(gateway.site.script);
    conf_free(gateway.site.conf);
    return rc ? child_start_status(rc) : child_status(&gateway.child);
}
