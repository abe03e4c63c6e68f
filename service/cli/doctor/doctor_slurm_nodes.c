/*
 * doctor_slurm_nodes.c - `doctor --nodes`: checks that a node and this machine see each other's
 * files in the shared folder. A Slurm job reads one file and writes another, as every attempt does.
 */
#include "service/cli/doctor/doctor.h"

#include "base/durable.h"
#include "service/common/clock.h"
#include "service/common/slurm/slurm.h"
#include "service/common/slurm/slurm_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOB_NAME "noctule-doctor"
#define FILE_MS  250  /* interval for the node's file, opened anew each time */
#define QUERY_MS 2000 /* interval for queries to Slurm */
#define FOUND    512

/* sbatch runs it as SCRIPT PROGRAM run-job FOLDER. Like a manifest, the file is written under a
 * temporary name and then renamed. */
static const char script[] = "#!/bin/sh\n"
                             "cd \"$3\" || exit 1\n"
                             "{ cat here && echo && echo \"$SLURMD_NODENAME\" && id -u && \"$1\" "
                             "--version; } >there.part || exit 1\n"
                             "sync there.part; mv there.part there\n";

/* A submitted Slurm job and its observed state. */
struct node_visit {
    struct examination *examination;
    const struct conf_slurm *conf;
    char nonce[ATTEMPT_NONCE_SIZE];
    char *folder;
    int fd; /* of the folder */
    int64_t slurm_id;
    bool known; /* the last query listed the job; the next members are from it */
    bool ended;
    char state[32], node[64], reason[64];
    char answer[FOUND]; /* by the node; "" before its file arrives */
};

/* --------------------------------------------------------------------------------- folder ---- */

/* Returns 0 or -errno. */
static int
visit_write(struct node_visit *visit)
{
    int rc = slurm_nonce_make(visit->nonce);
    if (rc)
        return rc;
    if (asprintf(&visit->folder, "%s/doctor-%s", visit->conf->share, visit->nonce) < 0) {
        visit->folder = NULL;
        return -ENOMEM;
    }
    if (mkdir(visit->folder, 0700) < 0)
        return -errno;
    visit->fd = open(visit->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (visit->fd < 0)
        return -errno;
    rc = durable_write(visit->fd, "here", visit->nonce, strlen(visit->nonce), 0600, DURABLE_NEW);
    if (!rc)
        rc = durable_write(visit->fd, "script", script, strlen(script), 0700, DURABLE_NEW);
    return rc;
}

/* Returns false if the file is missing or empty. */
static bool
visit_read(const struct node_visit *visit, const char *name, char text[FOUND])
{
    const int fd = openat(visit->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, FOUND - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* -------------------------------------------------------------------------------- Slurm ---- */

static int
visit_submit(struct node_visit *visit, struct error *error)
{
    char *output = NULL, *path = NULL;
    int rc = -ENOMEM;
    if (asprintf(&output, "%s/log", visit->folder) < 0)
        output = NULL;
    if (asprintf(&path, "%s/script", visit->folder) < 0)
        path = NULL;
    const char *const folder = visit->folder;
    const struct slurm_order order = {.name = JOB_NAME,
                                      .comment = visit->nonce,
                                      .exclude = "",
                                      .series = "",
                                      .output = output,
                                      .script = path,
                                      .folders = &folder,
                                      .folder_count = 1};
    if (output && path)
        rc = slurm_submit(visit->conf, &order, &visit->slurm_id, error);
    else
        error_set_system(error, rc, "name the files of a Slurm job");
    free(output);
    free(path);
    return rc;
}

static void
visit_on_job(void *context, const struct slurm_job *job)
{
    struct node_visit *visit = context;
    if (strcmp(job->comment, visit->nonce) != 0)
        return;
    visit->known = true;
    visit->ended = !slurm_is_alive(job->state);
    snprintf(visit->state, sizeof visit->state, "%s", job->state);
    snprintf(visit->node, sizeof visit->node, "%s", job->node);
    snprintf(visit->reason, sizeof visit->reason, "%s", job->reason);
}

/* Waits until the node's file arrives, the job fails, or the time is over. */
static void
visit_wait(struct node_visit *visit)
{
    const int64_t until_ms = clock_steady_ms() + INT64_C(1000) * DOCTOR_NODE_SECONDS;
    int64_t query_at_ms = 0;
    struct error error;
    for (int64_t now_ms = clock_steady_ms(); now_ms < until_ms; now_ms = clock_steady_ms()) {
        if (visit_read(visit, "there", visit->answer))
            return;
        if (visit->ended && strcmp(visit->state, "COMPLETED") != 0)
            return;
        if (now_ms >= query_at_ms) {
            /* an error is ignored: the next query follows */
            slurm_list(JOB_NAME, visit_on_job, visit, &error);
            query_at_ms = now_ms + QUERY_MS;
        }
        poll(NULL, 0, FILE_MS);
    }
}

/* -------------------------------------------------------------------------------- output ---- */

/* Returns the next line of the node's file. */
static const char *
visit_next_line(char **rest)
{
    const char *line = strsep(rest, "\n");
    return line ? line : "";
}

static void
visit_compare(struct node_visit *visit, int64_t took_ms)
{
    struct examination *examination = visit->examination;
    char *rest = visit->answer, ours[32];
    const char *nonce = visit_next_line(&rest), *node = visit_next_line(&rest), *user = visit_next_line(&rest),
               *version = visit_next_line(&rest);
    snprintf(ours, sizeof ours, "%u", (unsigned)geteuid());
    if (strcmp(nonce, visit->nonce) != 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "node %s sees different data in %s: it is another share, or its NFS cache is stale", node,
                    visit->conf->share);
    if (strcmp(user, ours) != 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "on node %s jobs run as user ID %s, here as %s: give the account the same ID on all machines", node,
                    user, ours);
    if (strcmp(version, "noctule " NOCTULE_VERSION) != 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "on node %s %s has version \"%s\", this machine has noctule " NOCTULE_VERSION
                    ": install the same version on the node",
                    node, visit->conf->program, version);
    doctor_fine(examination, "node %s and this machine read each other's files; the answer came %.1f s after sbatch",
                node, (double)took_ms / 1000);
}

static void
visit_report_missing(struct node_visit *visit)
{
    struct examination *examination = visit->examination;
    char log[FOUND];
    if (visit->ended && strcmp(visit->state, "COMPLETED") == 0) {
        doctor_find(examination, DOCTOR_BROKEN,
                    "Slurm job %" PRId64 " on %s wrote a file in %s that this machine does not see after %d s: mount "
                    "the same share on both, with less caching (acdirmax, lookupcache=positive)",
                    visit->slurm_id, visit->node, visit->conf->share, DOCTOR_NODE_SECONDS);
    } else if (visit->ended) {
        visit_read(visit, "log", log);
        doctor_find(examination, DOCTOR_BROKEN,
                    "Slurm job %" PRId64 " on %s ended as %s%s%s: check that %s is the same share "
                    "there, and that %s is installed",
                    visit->slurm_id, *visit->node ? visit->node : "no node", visit->state,
                    *log ? ", with the output: " : "", log, visit->conf->share, visit->conf->program);
    } else {
        doctor_find(examination, DOCTOR_ATTENTION,
                    "Slurm job %" PRId64
                    " did not end within %d s (%s%s%s) and was cancelled: try again when nodes are free",
                    visit->slurm_id, DOCTOR_NODE_SECONDS, visit->known ? visit->state : "not seen",
                    *visit->reason ? ", " : "", visit->reason);
    }
}

static void
visit_make(struct node_visit *visit)
{
    struct error error;
    const int64_t began_ms = clock_steady_ms();
    const int rc = visit_write(visit);
    if (rc) {
        doctor_failed(visit->examination, -rc, visit->conf->share, "allow the service's user to write there");
        return;
    }
    if (visit_submit(visit, &error)) {
        doctor_find(visit->examination, DOCTOR_BROKEN, "%s: %s", error.message,
                    error.code == CODE_SLURM_REFUSED ? "correct compute.slurm (partition, gres, arguments)"
                                                     : "check slurmctld and munge");
        return;
    }
    visit_wait(visit);
    if (*visit->answer) {
        visit_compare(visit, clock_steady_ms() - began_ms);
    } else {
        visit_report_missing(visit);
        slurm_cancel(visit->slurm_id, &error); /* if this fails, the job finds no folder */
    }
}

void
doctor_check_nodes(struct examination *examination)
{
    static const char *const names[] = {"here", "script", "there", "there.part", "log"};
    struct node_visit visit = {.examination = examination, .conf = &examination->doctor->conf->compute.slurm, .fd = -1};
    visit_make(&visit);
    for (size_t i = 0; visit.fd >= 0 && i < sizeof names / sizeof *names; i++)
        unlinkat(visit.fd, names[i], 0);
    if (visit.fd >= 0)
        close(visit.fd);
    if (visit.folder)
        rmdir(visit.folder);
    free(visit.folder);
}
