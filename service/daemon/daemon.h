/* daemon.h - the daemon: the role that owns the queue and makes all decisions, and its small parts. */
#ifndef NOCTULE_SERVICE_DAEMON_DAEMON_H
#define NOCTULE_SERVICE_DAEMON_DAEMON_H

#include "service/common/wire/proto.h"
#include "service/daemon/control.h"
#include "service/daemon/core.h"

#include <stdbool.h>
#include <stdint.h>

struct daemon_options {
    const char *config_file;
    const char *root;  /* replaces the configured root; NULL: keep it */
    bool new_database; /* create one in place of a lost database */
    bool new_key;      /* accept another key of pseudonyms, or create it in place of a lost one */
};

/* Runs until a signal ends it. Returns the exit status: 0 after a clean stop, EXIT_CONFIG, EXIT_DATABASE, EXIT_LOST,
 * EX_TEMPFAIL (75) if another daemon uses the root, EX_CANTCREAT (73) if the root cannot be used, EX_OSERR (71) if the
 * system rejects another call. */
int daemon_main(const struct daemon_options *options);

/* --------------------------------------------------------------------------------- disk.c ---- */

/* Checks the free space, and pauses or resumes reception and jobs. */
void disk_watch(struct core *core);

/* Makes blocks of pattern histograms if due (similar_blocks.c). Must be called each second. */
void pattern_blocks_tick(struct core *core);

/* ------------------------------------------------------------------------------ orphans.c ---- */

/* Returns 0 or the -errno of the database. Blocks. A later report of the same file by the receiver changes no row. */
int orphans_adopt(struct core *core);

/* --------------------------------------------------------------------- command_requests.c ---- */

/* Handles a request and sends the reply when the change is on disk. A reply to the web UI (control NULL) is a DECIDED with
 * `client` as its token. */
void request_handle(struct core *core, struct control *control, int64_t client, const struct control_request *request);

/* Answers reload requests, once the ports are open as configured or one has failed to open. */
void requests_end_reload(struct core *core);

/* ------------------------------------------------------------------------ web_decisions.c ---- */

/* Reads DECIDE and handles it as the request of a command, UPLOAD (jobs/uploads.h), or LOOKED and stores it. */
void web_decisions_frame(struct core *core, struct proto_reader *reader);

/* -------------------------------------------------------------------------- reviews.c ---- */

/* Accepts a result under review. Sets the text for the person. Returns 0 or -errno. */
int reviews_accept(struct core *core, int64_t job, const char *by, char *text, size_t size);
/* Returns -EINVAL with a text if the pipeline of a job under review is not configured, so its destinations are
 * unknown. */
int reviews_check_pipeline(struct core *core, int64_t job, char *text, size_t size);
/* Carries out the decisions of the web UI that can no longer be undone. Called once per second. */
void reviews_tick(struct core *core);

/* -------------------------------------------------------------------- request_audit.c ---- */

/* Adds the audit row of a request `by` this person. Does nothing for requests that are no decisions. */
int request_audit(struct core *core, const struct control_request *request, const char *by);

/* ----------------------------------------------------------------------- systemd_notify.c ---- */

/* Sends a state of sd_notify(3): "READY=1", "STOPPING=1", "WATCHDOG=1". */
void notify(const char *state);
void notify_reloading(void); /* until READY */

/* Returns the interval at which WATCHDOG must be sent, in milliseconds; 0: no watchdog. */
uint64_t notify_watchdog_ms(void);

/* ----------------------------------------------------------------------- caller_reports.c ---- */

/* Reads CALLERS. A broken frame sets the reader's error. */
void callers_frame(struct core *core, struct proto_reader *reader);

/* Checks again which callers the configuration in force admits. Returns 0 or -errno of the queue. */
int callers_set(struct core *core);

#endif
