/*
 * pause.c - pause, resume and drain: no job starts, while series are received and results
 * delivered. They hold or release all jobs. drain also waits until no job runs.
 */
#include "service/cli/control_requests.h"

#include "db/report.h"
#include "service/common/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define DRAIN_MILLIS 300

struct pause {
    const char *reason;
    int64_t seconds; /* of drain; 0: no limit */
};

static void
write_pause(struct proto_writer *writer, enum proto_type type, const char *argument, const void *options)
{
    const struct pause *pause = options;
    char login[256];
    (void)argument;
    const struct message_hold message = {.kind = "jobs",
                                         .name = "",
                                         .reason = pause->reason ? pause->reason : "",
                                         .login = control_login(login, sizeof(login))};
    message_write(writer, type, &message); /* RELEASE has the same fields */
}

/* Runs `pause`, `resume`, and the pause of `drain`. */
static int
pause_run(struct cli_call *call)
{
    const struct cli_request request = {call->command == &cli_resume ? PROTO_RELEASE : PROTO_HOLD, "jobs", write_pause,
                                        false};
    return control_request_all(call->context->conf->root, &request, (char *[]){NULL}, 1, call->options);
}

/* ------------------------------------------------------------------------------- drain ------ */

/* Prints the number of running jobs whenever it changes. */
static int
drain_print_jobs(struct report *report, int64_t *printed_jobs, struct report_pause *pause)
{
    struct error error;
    if (report_pause(report, pause, &error) < 0) {
        cli_print_error("%s", error.message);
        return EXIT_DATABASE;
    }
    if (pause->jobs_running != *printed_jobs && pause->jobs_running > 0) {
        printf("%" PRId64 " job%s\n", pause->jobs_running, pause->jobs_running == 1 ? " runs" : "s run");
        fflush(stdout);
    }
    *printed_jobs = pause->jobs_running;
    return EXIT_OK;
}

/* Checks whether to wait for the last job. Returns EXIT_OK to wait, else the exit code after an
 * error message. */
static int
drain_check(const struct cli_call *call, const struct report_pause *pause, double until)
{
    const struct pause *options = call->options;
    if (!pause->is_paused) {
        cli_print_error("drain ended: another user resumed the jobs");
        return EXIT_PARTIAL;
    }
    if (!cli_find_daemon(call->context->conf->root)) {
        cli_print_error("noctuled has ended; its running jobs wait for the next start, and jobs stay paused");
        return EXIT_NO_DAEMON;
    }
    if (options->seconds > 0 && clock_seconds() > until) {
        cli_print_error("%" PRId64 " jobs still run after %" PRId64 " seconds; jobs stay paused", pause->jobs_running,
                        options->seconds);
        return EXIT_PARTIAL;
    }
    return EXIT_OK;
}

static int
drain_wait(const struct cli_call *call, struct report *report, struct report_pause *pause)
{
    const struct pause *options = call->options;
    const double until = clock_seconds() + (double)options->seconds;
    int64_t printed_jobs = -1;
    int rc = drain_print_jobs(report, &printed_jobs, pause);
    while (rc == EXIT_OK && pause->jobs_running > 0) {
        rc = drain_check(call, pause, until);
        if (rc == EXIT_OK) {
            nanosleep(&(struct timespec){.tv_nsec = DRAIN_MILLIS * 1000000L}, NULL);
            rc = drain_print_jobs(report, &printed_jobs, pause);
        }
    }
    if (rc == EXIT_OK)
        printf("no job runs; %" PRId64 " wait%s for noctule resume\n", pause->jobs_waiting,
               pause->jobs_waiting == 1 ? "s" : "");
    return rc;
}

static int
drain_run(struct cli_call *call)
{
    struct report *report;
    struct report_pause pause;
    int64_t printed_jobs = 0;
    int rc = cli_open_report(call->context->conf, &report);
    if (rc != EXIT_OK)
        return rc;
    rc = drain_print_jobs(report, &printed_jobs, &pause);
    if (rc == EXIT_OK && !pause.is_paused)
        rc = pause_run(call);
    if (rc == EXIT_OK)
        rc = drain_wait(call, report, &pause);
    report_close(report);
    return rc;
}

#define PAUSE_REASON                                                                                                   \
    {                                                                                                                  \
        "reason", 0, &cli_text, CLI_AT(struct pause, reason), .help = "text shown in noctule status"                   \
    }

const struct cli_command cli_pause = {.name = "pause",
                                      .help = "stop starting jobs; reception and delivery continue",
                                      .usage = {"[--reason WORDS]"},
                                      .options = (const struct cli_option[]){PAUSE_REASON, {0}},
                                      .size = sizeof(struct pause),
                                      .run = pause_run};

const struct cli_command cli_resume = {
    .name = "resume", .help = "start jobs again after pause or drain", .size = sizeof(struct pause), .run = pause_run};

const struct cli_command cli_drain = {
    .name = "drain",
    .help = "pause, and wait until no job runs",
    .usage = {"[--reason WORDS] [--wait SECONDS]"},
    .options = (const struct cli_option[]){PAUSE_REASON,
                                           {"wait", 0, &cli_count, CLI_AT(struct pause, seconds),
                                            .help = "max seconds to wait; default: no limit"},
                                           {0}},
    .size = sizeof(struct pause),
    .run = drain_run};
