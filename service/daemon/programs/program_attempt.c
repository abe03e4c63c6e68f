#include "service/daemon/programs/program_attempt.h"

#include "base/test_hook.h"
#include "service/common/clock.h"
#include "service/common/file_ops.h"
#include "service/common/layout.h"
#include "service/common/log.h"
#include "service/daemon/attempt.h"
#include "service/daemon/programs/program_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
program_place_name(const struct program_place *place)
{
    static const char *const names[] = {[CONF_GPU_NONE] = "", [CONF_GPU_SHARED] = "shared", [CONF_GPU_WHOLE] = "whole"};
    return place->as == PROGRAM_AS_CPU ? "cpu" : names[place->gpu];
}

struct program_attempt *
program_attempt_new(struct attempts *attempts, struct queue_run *run)
{
    struct program_attempt *attempt = calloc(1, sizeof *attempt);
    if (!attempt)
        return NULL;
    attempt_add(attempts, &attempt->base, run->id);
    attempt->run = *run;
    attempt->run.attempts++;
    *run = (struct queue_run){0};
    return attempt;
}

static void
program_attempt_free(struct attempt *base)
{
    struct program_attempt *attempt = (struct program_attempt *)base;
    queue_run_clear(&attempt->run);
    free(attempt->frame);
    free(attempt);
}

char *
program_attempt_path(const struct program_attempt *attempt, enum program_file file)
{
    static const char *const endings[] = {[PROGRAM_WORK] = "", [PROGRAM_ORDER] = ".order"};
    const char *root = attempt->base.all->core->root;
    char *path;
    const int length = file == PROGRAM_RESULT
                           ? asprintf(&path, "%s/" LAYOUT_PROGRAMS "/%" PRId64, root, attempt->base.id)
                           : asprintf(&path, "%s/" LAYOUT_PROGRAMS "/%" PRId64 ".%d%s", root, attempt->base.id,
                                      attempt->run.attempts, endings[file]);
    return length < 0 ? NULL : path;
}

void
program_attempt_remove(const struct program_attempt *attempt, enum program_file file)
{
    char *path = program_attempt_path(attempt, file);
    const int rc = path ? file_remove(AT_FDCWD, path, NULL) : -ENOMEM;
    if (rc)
        log_warn("program.leftover", LOG_INT("run", attempt->base.id), LOG_STR("error", strerror(-rc)));
    free(path);
}

/* -------------------------------------------------------------------------------- end ------ */

void
program_attempt_end(struct program_attempt *attempt, enum program_attempt_end end, enum code code, const char *format,
                    ...)
{
    static const char *const names[] = {"WELL", "ILL", "RETURNED", "OUTDATED"};
    va_list arguments;
    va_start(arguments, format);
    const int length =
        snprintf(attempt->message, sizeof attempt->message, "run %" PRId64 " of %s, attempt %d: ", attempt->base.id,
                 attempt->run.program, attempt->run.attempts);
    if (length > 0 && (size_t)length < sizeof attempt->message)
        vsnprintf(attempt->message + length, sizeof attempt->message - (size_t)length, format, arguments);
    va_end(arguments);
    attempt->outcome.code = code;
    attempt->outcome.message = attempt->message;
    attempt->outcome.peak_bytes = -1;
    attempt->end = end;
    attempt_end(&attempt->base);
    log_write(end == PROGRAM_ATTEMPT_ILL ? LOG_WARN : LOG_INFO, "program.ended",
              LOG_FIELDS(LOG_INT("run", attempt->base.id), LOG_STR("program", attempt->run.program),
                         LOG_INT("attempt", attempt->run.attempts), LOG_STR("end", names[end]),
                         LOG_STR("code", code_name(attempt->outcome.code)),
                         LOG_NUM("seconds", attempt->outcome.program_seconds), LOG_STR("message", attempt->message)));
    due_now(&attempt->base.all->core->programs_due);
}

static enum program_attempt_end
program_attempt_end_of(const struct program_attempt *attempt, const struct message_program_ended *message)
{
    switch (message->end) {
    case PROGRAM_END_WELL:
        return PROGRAM_ATTEMPT_WELL;
    case PROGRAM_END_STOPPED:
        return attempt->unwanted ? PROGRAM_ATTEMPT_OUTDATED : PROGRAM_ATTEMPT_RETURNED;
    default:
        return message->code == CODE_PROGRAM_CHANGED ? PROGRAM_ATTEMPT_OUTDATED : PROGRAM_ATTEMPT_ILL;
    }
}

int
program_attempt_read(struct program_attempt *attempt, struct proto_reader *reader,
                     struct message_program_ended *message)
{
    if (message->end < PROGRAM_END_WELL || message->end > PROGRAM_END_STOPPED || message->starts < 0 ||
        message->starts > 1 || (message->end == PROGRAM_END_WELL && !*message->sha256) ||
        (message->end == PROGRAM_END_ILL && message->code == CODE_NONE))
        return -EBADMSG;
    attempt->frame = message_keep_program_ended(reader, message);
    if (!attempt->frame)
        return -ENOMEM;
    attempt->outcome = QUEUE_RUN_END(message);
    program_attempt_end(attempt, program_attempt_end_of(attempt, message), message->code, "%s", message->message);
    attempt->outcome.peak_bytes = message->peak_bytes;
    return 0;
}

/* ------------------------------------------------------------------------------ records ---- */

static int
program_attempt_write_ill(const struct program_attempt *attempt)
{
    const struct core *core = attempt->base.all->core;
    const struct conf_jobs *settings = &core->conf->jobs;
    const struct queue_run_end *outcome = &attempt->outcome;
    const int64_t now_ms = clock_unix_ms(), run = attempt->base.id;
    const struct program_place *place = &attempt->place;
    const enum program_as next = program_next_place(place->gpu, attempt->has_cpu_command, place->as);
    int64_t failed;
    if (outcome->code == CODE_PROGRAM_GPU_OUT_OF_MEMORY && next != place->as) {
        const struct program_place other = {.as = next, .gpu = CONF_GPU_WHOLE};
        return queue_delay_run(core->queue, run, now_ms, program_place_name(&other), false, outcome, now_ms);
    }
    const enum code code = outcome->code;
    const bool repeats = code == CODE_CRASHED || (code_passing(code) && code != CODE_PROGRAM_GPU_OUT_OF_MEMORY);
    if (!repeats || attempt->run.attempts >= attempt->max_attempts)
        return queue_fail_run(core->queue, run, outcome, now_ms, &failed);
    const int64_t wait_ms =
        backoff_ms(settings->retry_seconds, settings->retry_max_seconds, attempt->run.attempts, run);
    return queue_delay_run(core->queue, run, now_ms + wait_ms, attempt->run.ran_as, true, outcome, now_ms);
}

static int
program_attempt_write(struct attempt *base)
{
    const struct program_attempt *attempt = (const struct program_attempt *)base;
    struct core *core = base->all->core;
    int64_t released;
    int rc = -EINVAL;
    switch (attempt->end) {
    case PROGRAM_ATTEMPT_WELL:
        rc = queue_finish_run(core->queue, base->id, &attempt->outcome, clock_unix_ms(), &released);
        break;
    case PROGRAM_ATTEMPT_ILL:
        rc = program_attempt_write_ill(attempt);
        break;
    case PROGRAM_ATTEMPT_RETURNED:
        rc = queue_return_run(core->queue, base->id, attempt->message, clock_unix_ms());
        break;
    case PROGRAM_ATTEMPT_OUTDATED:
        rc = programs_replan(core, base->id, attempt->run.program, attempt->message);
        break;
    }
    if (!rc)
        crash_point("daemon_before_finish_run");
    return rc;
}

static int
program_attempt_fail(struct attempt *base, enum code code, const char *message)
{
    int64_t failed;
    const struct queue_run_end end = {.code = code, .message = message, .sha256 = "", .sandbox = "", .peak_bytes = -1};
    return queue_fail_run(base->all->core->queue, base->id, &end, clock_unix_ms(), &failed);
}

static void
program_attempt_recorded(struct attempt *base)
{
    const struct program_attempt *attempt = (const struct program_attempt *)base;
    struct core *core = base->all->core;
    program_attempt_remove(attempt, PROGRAM_ORDER);
    program_attempt_remove(attempt, PROGRAM_WORK); /* remains if its process died */
    if (base->superseded && attempt->end == PROGRAM_ATTEMPT_WELL)
        program_attempt_remove(attempt, PROGRAM_RESULT);
    due_now(&core->programs_due);
    due_now(&core->jobs_due);
}

const struct attempt_type program_attempt_type = {
    .subject = "run",
    .child = "program",
    .action = "record how a run of a program ended",
    .write = program_attempt_write,
    .fail = program_attempt_fail,
    .recorded = program_attempt_recorded,
    .free = program_attempt_free,
};
