#include "service/cli/slurm/slurm_step.h"

#include "base/test_hook.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/parallel.h"
#include "service/common/slurm/slurm_manifest.h"
#include "service/pipeline/pipeline_report.h"
#include "service/pipeline/program/program_steps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define STEP_GRACE_SECONDS 10 /* from the deadline to the forced end of the process */

/* An attempt in progress. */
struct step_attempt {
    struct job_step *step;
    struct slurm_folder *folder;
    struct pipeline_report report;
};

/* ----------------------------------------------------------------------------- deadline ---- */

static atomic_bool job_stop; /* stops the running job */
static atomic_bool job_overdue;

void
slurm_step_interrupt(void)
{
    atomic_store(&job_stop, true);
}

/* If the job does not stop after the first alarm, the second one ends the process without a
 * manifest, as in a worker. */
static void
step_on_alarm(int number)
{
    (void)number;
    if (atomic_exchange(&job_overdue, true))
        _exit(EXIT_FAILURE);
    atomic_store(&job_stop, true);
}

/* Begins the time limit of a part of the attempt; 0: none. */
static void
step_set_deadline(double seconds)
{
    const double at = fmin(fmax(seconds, 1e-6), 1e9), whole = floor(at);
    const struct itimerval timer = {
        .it_interval = {.tv_sec = STEP_GRACE_SECONDS},
        .it_value = {.tv_sec = (time_t)whole, .tv_usec = (suseconds_t)((at - whole) * 1e6)}};
    setitimer(ITIMER_REAL, seconds > 0 ? &timer : &(struct itimerval){0}, NULL);
}

/* ------------------------------------------------------------------------------- device ---- */

static void
step_close_device(struct job_step *step)
{
    job_lane_close(step->lane);
    job_device_close(step->device);
    step->lane = NULL;
    step->device = NULL;
}

/* Opens the device, unless an earlier attempt failed. */
static int
step_open_device(struct job_step *step, const struct message_attempt *request, struct error *error)
{
    if (step->device_lost) {
        *error = step->device_error;
        return -ENODEV;
    }
    if (step->lane && strcmp(step->backend, request->backend) == 0 && step->opened.threads == (int)request->threads &&
        step->memory_bytes == request->memory_bytes)
        return 0;
    step_close_device(step);
    snprintf(step->backend, sizeof step->backend, "%s", request->backend);
    step->opened = (struct kernels_device_options){.backend = step->backend, .threads = (int)request->threads};
    step->memory_bytes = request->memory_bytes;
    int rc = job_device_open(&step->opened, request->memory_bytes, &step->device, error);
    if (rc == 0)
        rc = job_lane_open(step->device, &step->lane, error);
    if (rc == 0 && !step->calls_filtered) { /* a driver is open by now */
        rc = call_filter_install(step->role);
        step->calls_filtered = rc == 0;
        if (rc)
            error_set_system(error, rc, "give up system calls");
    }
    if (rc) {
        step->device_lost = true;
        step->device_error = *error;
    }
    return rc;
}

/* -------------------------------------------------------------------------- computation ---- */

/* Replaces the report by a failure. */
static void
step_fail(struct step_attempt *attempt, enum proto_verdict verdict, const struct error *error)
{
    pipeline_report_clear(&attempt->report);
    attempt->report = (struct pipeline_report){.verdict = verdict, .error = *error};
}

/* Makes the masks that the job lacks. A program has time limits of its own. Returns false if the attempt has failed. */
static bool
step_make_masks(struct step_attempt *attempt)
{
    struct job_step *step = attempt->step;
    struct error error, named;
    if (!step->masks.broker)
        return true; /* the pipeline refuses a mask without a path */
    if (step->lane)
        job_lane_rest(step->lane, true); /* a program may need the memory of the GPU */
    step_set_deadline(0);
    const int threads = (int)attempt->folder->head.threads;
    step->masks.threads = threads ? threads : parallel_processors();
    const int rc = masks_make(&step->masks, attempt->folder->spec, &error);
    step_set_deadline(attempt->folder->head.deadline_seconds);
    if (rc == 0)
        return true;
    error_set(&named, rc, error.code, "on node %s: %s", step->node, error.message);
    step_fail(attempt, masks_verdict(rc, &error), &named);
    return false;
}

static void
step_compute(struct step_attempt *attempt)
{
    struct job_step *step = attempt->step;
    struct error error;
    const struct pipeline_watch watch = {.stop = &job_stop};
    if (!step->scratch.path) {
        step_fail(attempt, PROTO_VERDICT_RETRY, &step->scratch_error);
        return;
    }
    if (!step_make_masks(attempt))
        return;
    if (step_open_device(step, &attempt->folder->head, &error) != 0) {
        step_fail(attempt, PROTO_VERDICT_STOPPED, &error);
        return;
    }
    struct job_spec spec = *attempt->folder->spec;
    spec.folder = step->scratch.results;
    job_lane_run(step->lane, &spec, NULL, &watch, &attempt->report);
    if (attempt->report.verdict == PROTO_VERDICT_DONE &&
        masks_keep(&step->masks, &spec, step->scratch.results, true, &error) != 0)
        step_fail(attempt, PROTO_VERDICT_RETRY, &error);
    if (attempt->report.device_lost) {
        step->device_lost = true;
        step->device_error = attempt->report.error;
    }
}

/* Runs an attempt. Returns false if a signal ended it, so that no manifest is written. */
static bool
step_attempt_run(struct step_attempt *attempt)
{
    struct job_step *step = attempt->step;
    struct error error;
    atomic_store(&job_stop, false);
    atomic_store(&job_overdue, false);
    if (atomic_load(step->terminated)) {
        error_set(&error, -ECANCELED, CODE_STOPPED, "the job was returned before it began");
        step_fail(attempt, PROTO_VERDICT_STOPPED, &error);
        return true;
    }
    if (slurm_folder_read(attempt->folder, &error) != 0) {
        step_fail(attempt, PROTO_VERDICT_RETRY, &error);
        return true;
    }
    const struct sigaction action = {.sa_handler = step_on_alarm, .sa_flags = SA_RESTART};
    const double deadline = attempt->folder->head.deadline_seconds;
    sigaction(SIGALRM, &action, NULL);
    step_set_deadline(deadline);
    crash_point("step_before_check");
    /* Inputs that changed since their arrival or the start of the attempt must not be computed. */
    const int threads = (int)attempt->folder->head.threads;
    const int rc = slurm_folder_check(attempt->folder, threads ? threads : parallel_processors(), &job_stop, &error);
    if (rc)
        step_fail(attempt, rc == -ECANCELED ? PROTO_VERDICT_STOPPED : PROTO_VERDICT_RETRY, &error);
    else
        step_compute(attempt);
    step_set_deadline(0);
    if (attempt->report.verdict != PROTO_VERDICT_STOPPED || step->device_lost)
        return true;
    if (atomic_load(&job_overdue) && !atomic_load(step->terminated)) {
        error_set(&error, -ETIMEDOUT, CODE_DEADLINE_EXCEEDED,
                  "attempt %" PRId64 " took longer than its deadline (%g s)", attempt->folder->id.number, deadline);
        step_fail(attempt, PROTO_VERDICT_RETRY, &error);
    }
    return !atomic_load(step->terminated);
}

/* ------------------------------------------------------------------------------- output ---- */

static bool
step_take_frame(void *context, struct proto_writer *frame)
{
    sealed_add(context, frame);
    return true;
}

static int
step_publish(struct step_attempt *attempt, const struct manifest_run *run, struct error *error)
{
    struct job_step *step = attempt->step;
    struct sealed_writer writer;
    manifest_begin(&writer, attempt->folder, run, step->node, step->device ? job_device_description(step->device) : "");
    report_write(attempt->folder->id.job, &attempt->report, step_take_frame, &writer);
    return manifest_publish(&writer, attempt->folder, error);
}

/* Copies the results and publishes the manifest. A copy error is published as a failure of the
 * attempt. Copied results stay even if publishing fails, because a manifest may exist after a
 * network error. */
static int
step_publish_results(struct step_attempt *attempt, struct error *error)
{
    struct manifest_run run;
    int rc = manifest_run_take(attempt->folder, attempt->step->scratch.results, &run, error);
    if (rc && rc != -ESTALE) {
        step_fail(attempt, PROTO_VERDICT_RETRY, error);
        rc = step_publish(attempt, NULL, error);
    } else if (rc == 0) {
        rc = step_publish(attempt, &run, error);
    }
    manifest_run_free(&run);
    return rc;
}

enum step_end
slurm_step_run(struct job_step *step, const char *path, struct error *error)
{
    struct step_attempt attempt = {.step = step};
    enum step_end end = STEP_LEFT;
    *error = (struct error){0};
    if (slurm_folder_open(path, &attempt.folder, error) != 0)
        return STEP_LEFT;
    if (manifest_exists(attempt.folder))
        end = STEP_PUBLISHED;
    else if (slurm_folder_is_void(attempt.folder))
        end = STEP_VOID;
    else if (!step_attempt_run(&attempt))
        *error = attempt.report.error;
    else {
        const int rc = attempt.report.verdict == PROTO_VERDICT_DONE ? step_publish_results(&attempt, error)
                                                                    : step_publish(&attempt, NULL, error);
        if (rc == 0)
            *error = attempt.report.error;
        end = rc == 0 || rc == -EEXIST ? STEP_PUBLISHED : rc == -ESTALE ? STEP_VOID : STEP_LEFT;
    }
    scratch_clear(&step->scratch);
    if (attempt.folder->spec)
        masks_forget(&step->masks, attempt.folder->spec->masks, attempt.folder->spec->mask_count);
    pipeline_report_clear(&attempt.report);
    slurm_folder_close(attempt.folder);
    return end;
}

/* ------------------------------------------------------------------- opening and closing ---- */

int
slurm_step_open(struct job_step *step, const struct step_task *task, const atomic_bool *terminated)
{
    *step = (struct job_step){.terminated = terminated, .role = places_have_gpus() ? CONFINE_GPU_STEP : CONFINE_STEP};
    const int rc = task->programs ? broker_open(&program_steps, NULL, &step->masks.broker) : 0;
    if (rc)
        return rc;
    const char *named = getenv("SLURMD_NODENAME"); /* the name that sbatch can exclude */
    if (named && *named)
        snprintf(step->node, sizeof step->node, "%s", named);
    else if (gethostname(step->node, sizeof step->node - 1) != 0)
        snprintf(step->node, sizeof step->node, "unknown");
    scratch_open(&step->scratch, task->where, &step->scratch_error); /* manifests then contain the reason */
    /* The first GPU that Slurm gave to the step. Without its option gres, all GPUs of the node are visible. */
    const char *gpus = getenv("CUDA_VISIBLE_DEVICES");
    gpus = gpus ? gpus : "0";
    if (step->role == CONFINE_GPU_STEP)
        snprintf(step->masks.gpu, sizeof step->masks.gpu, "%.*s", (int)strcspn(gpus, ","), gpus);
    step->masks.folder = step->scratch.programs;
    step->masks.stop = &job_stop;
    const struct step_places places = {.series = task->series,
                                       .scratch = step->scratch.path,
                                       .attempts = task->folders,
                                       .attempt_count = task->folder_count};
    return confine_step(step->role, &places);
}

void
slurm_step_close(struct job_step *step)
{
    step_close_device(step);
    if (step->masks.broker)
        broker_close(step->masks.broker);
    scratch_close(&step->scratch);
}
