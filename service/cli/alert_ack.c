/*
 * alert_ack.c - `noctule ack`: sends acknowledgements of alerts to the daemon, which checks and
 * stores them.
 */
#include "service/cli/control_requests.h"

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
        return cli_usage_error(name, "--until and --undo cannot be combined");
    if (cli_time_to_ms(ack->until, &ack->until_ms) != 0)
        return cli_usage_error(name, "\"%s\" is not a time: use 2026-01-31, 12h or 3d", ack->until);
    return ack->until_ms > clock_unix_ms() ? EXIT_OK : cli_usage_error(name, "--until %s is in the past", ack->until);
}

const struct cli_command cli_ack = {
    .name = "ack",
    .help = "acknowledge alerts: they no longer count in status --check and report",
    .usage = {"[--until WHEN] [--reason WORDS] ALERT...", "--undo [--reason WORDS] ALERT..."},
    .more = "noctule status shows the ids. Acknowledged alerts stay in the lists. They count again "
            "if they get worse, occur again, or after --until.",
    .options =
        (const struct cli_option[]){
            {"until", 0, &cli_later, CLI_AT(struct ack, until),
             .help = "time when it ends: 2026-01-31, or 12h or 3d from now; default: no end"},
            {"reason", 0, &cli_text, CLI_AT(struct ack, reason), .help = "text stored with it; must not name patients"},
            {"undo", 0, &cli_flag, CLI_AT(struct ack, undo), .help = "end the acknowledgement now"},
            {0}},
    .size = sizeof(struct ack),
    .kind = &cli_alert,
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .needs = "one or more alert ids",
    .check = ack_check,
    .run = control_run,
    .request = &(const struct cli_request){PROTO_ACK, "alert", write_ack, false}};
