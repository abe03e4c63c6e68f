#include "service/daemon/slurm/slurm_masks.h"

#include "base/durable.h"
#include "db/program_rows.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/program/program_order.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/daemon/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Moves NAME.<ending> of the results. Returns -EBADMSG if it does not exist. */
static int
slurm_mask_move(int results, const char *program, const char *file, const char *ending, int folder)
{
    char name[96];
    snprintf(name, sizeof name, "%s.%s", program, ending);
    if (renameat(results, name, folder, file) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    return faccessat(folder, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -EBADMSG;
}

/* Moves the files of a run into its folder, which is opened by `path`. */
static int
slurm_mask_move_all(const char *results, const char *program, const char *path)
{
    if (mkdir(path, 0750) != 0 && errno != EEXIST)
        return -errno;
    const int from = open(results, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    const int to = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = from < 0 || to < 0 ? -EBADMSG : slurm_mask_move(from, program, "mask", "mask", to);
    if (rc == 0)
        rc = slurm_mask_move(from, program, "outcome", "outcome", to);
    if (rc == 0 && slurm_mask_move(from, program, "output.txt", "output.txt", to) == -EBADMSG)
        rc = 0; /* it wrote no output */
    if (rc == 0)
        rc = durable_sync_folder(to, ".");
    if (rc == 0)
        rc = durable_sync_folder(to, "..");
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return rc;
}

static int
slurm_mask_finish(struct core *core, const struct queue_run *run, const char *path)
{
    struct program_outcome outcome;
    struct error error;
    char *file;
    int64_t released;
    if (asprintf(&file, "%s/outcome", path) < 0)
        return -ENOMEM;
    int rc = program_outcome_read(file, &outcome, &error);
    free(file);
    if (rc)
        return rc;
    if (outcome.end != PROGRAM_END_WELL || !digest_is_sha256(outcome.sha256) ||
        strcmp(outcome.identity, run->identity) != 0)
        return -EBADMSG;
    const struct queue_run_end end = QUEUE_RUN_END(&outcome);
    rc = queue_finish_run(core->queue, run->id, &end, clock_unix_ms(), &released);
    due_now(&core->jobs_due);
    return rc;
}

int
slurm_masks_take(struct core *core, int64_t job)
{
    struct queue_run *runs;
    size_t count;
    char *results = spool_output_folder(core->root, job);
    int rc = results ? queue_job_runs(core->queue, job, &runs, &count) : -ENOMEM;
    if (rc) {
        free(results);
        return rc;
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        char *path = NULL;
        if (runs[i].carrier != job || runs[i].state != QUEUE_RUN_RUNNING)
            continue;
        rc = asprintf(&path, "%s/" LAYOUT_PROGRAMS "/%" PRId64, core->root, runs[i].id) < 0
                 ? -ENOMEM
                 : slurm_mask_move_all(results, runs[i].program, path);
        if (rc == 0)
            rc = slurm_mask_finish(core, &runs[i], path);
        free(path);
    }
    queue_runs_free(runs, count);
    free(results);
    return rc;
}
