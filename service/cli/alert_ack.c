/*
 * alert_ack.c - `noctule ack`: sends acknowledgements of alerts to the daemon, which checks and
 * stores them.
 */
#include "service/cli/control_requests.h"

#include "db/iso_time.h"
#include "service/common/clock.h"

#include <limits.h>
#include <string.h>

struct ack {
    const char *until, *reason; /* NULL: not given */
    bool undo;
    int64_t until_ms; /* parsed from until; 0: no end */
};

static void
write_ack(struct proto_writer *writer, enum proto_type type, const char *alert, const void *options)
{
    const struct ack *ack = options;
    char login[256];
    const struct message_ack message = {.alert = alert,
                                        .until_ms = ack->until_ms,
                                        .undo = ack->undo,
                                        .reason = ack->reason ? ack->reason : "",
                                        .login = control_login(login, sizeof login)};
    message_write(writer, type, &message);
}

static int
ack_check(struct cli_call *call)
{
    struct ack *ack = call->options;
    const char *name = call->command->name;
    if (!ack->until)
        return EXIT_OK;
    if (ack->undo)
        return cli_usage_error(name, "--until and --undo exclude each other");
    if (cli_time_to_ms(ack->until, &ack->until_ms) != 0)
        return cli_usage_error(name, "\"%s\" is not a time", ack->until);
    return ack->until_ms > clock_unix_ms()
               ? EXIT_OK
               : cli_usage_error(name, "--until %s has passed", ack->until);
}

static int
ack_run(struct cli_call *call)
{
    static const struct cli_request request = {PROTO_ACK, "alert", write_ack, false};
    return control_request_all(call->context->conf->root, &request, call->arguments, call->count,
                               call->options);
}

const struct cli_command cli_ack = {
    .name = "ack",
    .help = "acknowledge alerts, so that status is not yellow for what is known",
    .usage = {"[--until WHEN] [--reason WORDS] ALERT...", "--undo [--reason WORDS] ALERT..."},
    .more = "The ids are in noctule status. An acknowledged alert stays in every list. It is an "
            "alert again when it becomes worse, occurs anew, or at --until.",
    .options =
        (const struct cli_option[]){
            {"until", 0, &cli_later, CLI_AT(struct ack, until),
             .help = "end of the acknowledgement: 2026-01-31, 12h or 3d from now; no end by "
                     "default"},
            {"reason", 0, &cli_text, CLI_AT(struct ack, reason),
             .help = "why, without names of patients"},
            {"undo", 0, &cli_flag, CLI_AT(struct ack, undo), .help = "end the acknowledgement now"},
            {0}},
    .size = sizeof(struct ack),
    .kind = &cli_alert,
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .needs = "one or more ids of alerts",
    .check = ack_check,
    .run = ack_run};
