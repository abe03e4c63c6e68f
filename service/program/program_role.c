/*
 * program_role.c - the role that runs programs of the site: orders arrive over fd 3, the broker executes them, and their
 * outcomes are sent back over fd 3.
 *
 * The broker is forked first, since this process may start no other one once it is confined. When the pipe ends, the
 * broker ends every process below it, because this daemon or the next will run the order again.
 */
#include "service/common/role.h"

#include "base/test_hook.h"
#include "dicom/dicom.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"
#include "service/common/log.h"
#include "service/common/program/broker.h"
#include "service/common/wire/child.h"
#include "service/pipeline/program/program_steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_MS 60000 /* between two checks of the programs' files */

struct program_role {
    struct child child;
    uv_loop_t loop;
    uv_poll_t answers;
    uv_timer_t check;
    struct broker *broker;
    char *config; /* in force, as text */
    int64_t run;  /* being executed; 0: none */
    bool draining, checking, check_again;
    bool lost;                    /* the broker died */
    struct proto_writer programs; /* PROGRAMS of the check that is running */
};

/* ------------------------------------------------------------------------------ requests ---- */

/* A broker that died costs the run its attempt: the daemon sees this process end. */
static void
role_expect(struct program_role *role, int rc)
{
    if (rc == 0 || role->lost)
        return;
    role->lost = true;
    child_note_failure(&role->child, rc);
    uv_stop(&role->loop);
}

/* Checks the programs of the configuration, after a check that is running. */
static void
role_check(struct program_role *role)
{
    role->check_again = role->checking;
    if (role->checking)
        return;
    role->checking = true;
    message_write_programs(&role->programs, NULL);
    role_expect(role, broker_send(role->broker, BROKER_CHECK, 0, role->config));
}

static void
role_on_check(uv_timer_t *timer)
{
    struct program_role *role = timer->data;
    if (role->run == 0)
        role_check(role);
}

static void
role_on_order(void *context, struct proto_reader *reader)
{
    struct program_role *role = context;
    struct message_program_stop stop;
    struct message_program_cool cool;
    struct message_program_run run;
    if (reader->type == PROTO_PROGRAM_RUN && role->run == 0 && message_read_program_run(reader, &run) == 0) {
        role->run = run.run;
        role_expect(role, broker_send(role->broker, BROKER_RUN, run.run, run.order));
    } else if (reader->type == PROTO_PROGRAM_STOP && message_read_program_stop(reader, &stop) == 0) {
        role_expect(role, broker_send(role->broker, BROKER_STOP, stop.run, ""));
    } else if (reader->type == PROTO_PROGRAM_COOL && message_read_program_cool(reader, &cool) == 0) {
        role_expect(role, broker_send(role->broker, BROKER_COOL, 0, cool.program));
    } else {
        reader->error = -EBADMSG;
    }
}

static int
role_on_reload(void *context, struct conf *conf, struct error *error)
{
    struct program_role *role = context;
    char *text = conf_to_text(conf);
    conf_free(conf);
    if (!text)
        return error_set_system(error, -ENOMEM, "read the configuration");
    free(role->config);
    role->config = text;
    role_check(role);
    return 0;
}

static void
role_on_drain(void *context)
{
    struct program_role *role = context;
    role->draining = true;
    if (role->run == 0)
        uv_stop(&role->loop);
}

static const struct child_role program_child = {.name = "program",
                                                .confined = CONFINE_PROGRAM_ROLE,
                                                .message = role_on_order,
                                                .reload = role_on_reload,
                                                .drain = role_on_drain};

/* ------------------------------------------------------------------------------- answers ---- */

static void
role_send_ended(struct program_role *role, const struct broker_answer *answer)
{
    const struct program_outcome *outcome = &answer->outcome;
    const struct message_program_ended message = {.run = answer->run,
                                                  .end = outcome->end,
                                                  .code = outcome->error.code,
                                                  .message = outcome->error.message,
                                                  .identity = outcome->identity,
                                                  .program_sha256 = outcome->program_sha256,
                                                  .weights_sha256 = outcome->weights_sha256,
                                                  .sha256 = outcome->sha256,
                                                  .sandbox = outcome->sandbox,
                                                  .size = outcome->size,
                                                  .labels = outcome->labels,
                                                  .labelled = outcome->labelled,
                                                  /* -1: not measured, since it ended too soon */
                                                  .peak_bytes = outcome->peak_bytes > 0 ? outcome->peak_bytes : -1,
                                                  .starts = outcome->starts,
                                                  .write_seconds = outcome->write_seconds,
                                                  .program_seconds = outcome->program_seconds,
                                                  .read_seconds = outcome->read_seconds};
    struct proto_writer writer;
    crash_point("role_before_ended");
    message_write_program_ended(&writer, &message);
    child_send(&role->child, &writer);
    log_info("program.ended", LOG_INT("run", answer->run), LOG_STR("code", code_name(outcome->error.code)),
             LOG_STR("sandbox", outcome->sandbox), LOG_NUM("seconds", outcome->program_seconds));
    role->run = 0;
    if (role->draining)
        uv_stop(&role->loop);
    else if (outcome->error.code == CODE_PROGRAM_CHANGED || outcome->error.code == CODE_PROGRAM_UNAVAILABLE)
        role_check(role);
}

/* Adds a program to PROGRAMS. The answer without a name ends the check. */
static void
role_take_checked(struct program_role *role, const struct program_checked *checked)
{
    const struct message_checked_program row = {.name = checked->name,
                                                .identity = checked->identity,
                                                .program_sha256 = checked->program_sha256,
                                                .weights_sha256 = checked->weights_sha256,
                                                .weights_bytes = checked->weights_bytes,
                                                .sandbox = checked->sandbox,
                                                .code = checked->error.code,
                                                .message = checked->error.message};
    if (checked->name[0]) {
        message_add_checked_program(&role->programs, &row);
        return;
    }
    child_send(&role->child, &role->programs);
    role->checking = false;
    if (role->check_again)
        role_check(role);
}

static void
role_take(struct program_role *role, const struct broker_answer *answer)
{
    struct proto_writer writer;
    switch (answer->event) {
    case BROKER_NONE:
        break;
    case BROKER_STAGE:
        message_write_program_stage(&writer,
                                    &(struct message_program_stage){.run = answer->run, .stage = answer->stage});
        child_send(&role->child, &writer);
        break;
    case BROKER_ENDED:
        role_send_ended(role, answer);
        break;
    case BROKER_CHECKED:
        role_take_checked(role, &answer->checked);
        break;
    case BROKER_COLD:
        message_write_program_cold(&writer, &(struct message_program_cold){.program = answer->checked.name});
        child_send(&role->child, &writer);
        break;
    }
}

static void
role_on_answer(uv_poll_t *poll, int status, int events)
{
    struct program_role *role = poll->data;
    struct broker_answer answer;
    (void)events;
    const int rc = status < 0 ? status : broker_receive(role->broker, &answer);
    role_expect(role, rc);
    if (rc == 0)
        role_take(role, &answer);
}

/* --------------------------------------------------------------------------- the process ---- */

static int
role_serve_daemon(struct program_role *role)
{
    int rc = call_filter_install(CONFINE_PROGRAM_ROLE);
    if (!rc)
        rc = child_open(&role->child, &role->loop, &program_child, role);
    if (rc)
        return rc;
    uv_timer_init(&role->loop, &role->check); /* cannot fail */
    rc = uv_poll_init(&role->loop, &role->answers, broker_fd(role->broker));
    role->check.data = role->answers.data = role;
    if (!rc) {
        uv_timer_start(&role->check, role_on_check, CHECK_MS, CHECK_MS);
        uv_poll_start(&role->answers, UV_READABLE, role_on_answer);
        role_check(role);
        uv_run(&role->loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&role->answers, NULL);
    }
    uv_close((uv_handle_t *)&role->check, NULL);
    child_close(&role->child);
    uv_run(&role->loop, UV_RUN_DEFAULT);
    return rc;
}

int
program_main(const struct role_args *args)
{
    struct program_role role = {.broker = NULL};
    struct conf *conf = NULL;
    struct error error;
    int rc = conf_load(args->config_file, &conf, &error);
    if (rc) {
        log_error("program.config", LOG_STR("error", error.message));
        return child_start_status(rc);
    }
    log_set_level(conf->log_level);
    dicom_init(); /* before the broker: its steps must not open the dictionary */
    role.config = conf_to_text(conf);
    rc = role.config ? broker_open(&program_steps, conf->root, &role.broker) : -ENOMEM;
    if (!rc)
        rc = confine_self(CONFINE_PROGRAM_ROLE, conf);
    if (!rc && (rc = uv_loop_init(&role.loop)) == 0) {
        rc = role_serve_daemon(&role);
        uv_loop_close(&role.loop);
    }
    broker_close(role.broker);
    free(role.config);
    conf_free(conf);
    if (rc)
        log_error("program.start", LOG_STR("error", strerror(-rc)));
    return rc ? child_start_status(rc) : child_status(&role.child);
}
