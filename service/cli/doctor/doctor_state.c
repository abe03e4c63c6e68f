/* doctor_state.c - checks the database, the daemon, alerts, the clock and the systemd unit. */
#include "db/iso_time.h"
#include "db/report.h"
#include "service/cli/alert_print.h"
#include "service/cli/cli.h"
#include "service/cli/doctor/doctor.h"
#include "service/common/clock.h"
#include "service/common/layout.h"
#include "service/common/slurm/slurm_program.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#define LARGE_WAL_MIB  256
#define CLOCK_SLACK_MS (INT64_C(5) * 60 * 1000)

/* ---------------------------------------------------------------------------- database ---- */

static void
database_whole(struct examination *examination, struct report *report, const char *path)
{
    struct report_health health;
    struct error error;
    if (report_examine(report, DOCTOR_SECONDS, &health, &error) < 0)
        doctor_find(examination, DOCTOR_BROKEN, "cannot read %s: %s", path, error.message);
    else if (health.damage[0])
        doctor_find(examination, DOCTOR_BROKEN, "%s is damaged (%s): stop the service, and restore a backup", path,
                    health.damage);
    else if (!health.is_checked)
        doctor_fine(examination, "%s is readable; it is too large to check in %d seconds", path, DOCTOR_SECONDS);
    else
        doctor_fine(examination, "%s is intact", path);
}

void
doctor_check_database(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    char path[PATH_MAX], log[PATH_MAX + 8];
    struct report *report;
    struct error error;
    struct stat status;
    snprintf(path, sizeof path, "%s/" LAYOUT_DATABASE, doctor->conf->root);
    snprintf(log, sizeof log, "%s-wal", path);
    const int rc = cli_try_report(doctor->conf, &report, &error);
    if (rc == -ENOENT) {
        doctor_fine(examination, "the first start creates %s", path);
        return;
    }
    if (rc == -EACCES) {
        doctor_failed(examination, EACCES, path, "chown it to the service's user");
        return;
    }
    if (rc < 0) {
        doctor_find(examination, DOCTOR_BROKEN, "%s%s", error.message,
                    rc == -EUCLEAN || rc == -EBADMSG || rc == -EIO ? ": stop the service, and restore a backup" : "");
        return;
    }
    database_whole(examination, report, path);
    report_close(report);
    if (stat(log, &status) == 0 && status.st_size > (off_t)LARGE_WAL_MIB << 20)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "%s has %lld MiB, because a program holds a long query open: end that program", log,
                    (long long)(status.st_size >> 20));
}

/* ------------------------------------------------------------------------------ daemon ---- */

void
doctor_check_daemon(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    const bool answers = !doctor->daemon_why[0];
    if (strcmp(doctor->daemon_state, "unknown") == 0)
        doctor_find(examination, DOCTOR_ATTENTION, "%s", doctor->daemon_why);
    else if (!answers)
        doctor_find(examination, DOCTOR_BROKEN, "%s: %s", doctor->daemon_why,
                    strcmp(doctor->daemon_state, "not running") == 0 ? "systemctl start noctule"
                                                                     : "see its log (journalctl -u noctule)");
    const bool has_alerts = doctor->daemon_alerts && *doctor->daemon_alerts; /* the alerts contain the reason */
    if (strcmp(doctor->daemon_state, "starting") == 0 && !has_alerts)
        doctor_find(examination, DOCTOR_ATTENTION, "noctuled does not receive files yet: try again in a minute");
    doctor_fine(examination, "noctuled runs (process %d) and answers", doctor->daemon_pid);
}

/* ------------------------------------------------------------------------------ alerts ---- */

/* A daemon that does not answer is a finding of doctor_check_daemon. */
void
doctor_check_alerts(struct examination *examination)
{
    static const enum doctor_verdict verdicts[] = {DOCTOR_OK, DOCTOR_ATTENTION, DOCTOR_BROKEN};
    const struct doctor *doctor = examination->doctor;
    struct alerts alerts = {0};
    struct report *report = NULL;
    struct error error;
    if (doctor->daemon_alerts)
        alerts_from_lines(&alerts, doctor->daemon_alerts);
    const int opened = cli_try_report(doctor->conf, &report, &error);
    const int rc = alerts_collect(&alerts, doctor->conf, opened ? NULL : report, clock_unix_ms(), &error);
    for (size_t i = 0; i < alerts.count; i++) {
        const struct alert *alert = &alerts.items[i];
        char since[CLI_SINCE];
        if (alert->severity == ALERT_WAITS)
            continue;
        char *remedy = cli_alert_remedy(alert);
        doctor_find(examination, alert->ack.by ? DOCTOR_OK : verdicts[alert->severity], "%s%s: %s", alert->text,
                    cli_alert_since(alert, since), remedy ? remedy : alert->id);
        free(remedy);
    }
    if (rc)
        doctor_find(examination, DOCTOR_BROKEN, "%s", error.message);
    doctor_fine(examination, opened ? "cannot read the alerts of the database" : "no alerts");
    if (!opened)
        report_close(report);
    alerts_clear(&alerts);
}

/* ------------------------------------------------------------------------------- clock ---- */

void
doctor_check_clock(struct examination *examination)
{
    const int64_t now_ms = clock_unix_ms();
    struct timex kernel = {.modes = 0};
    struct report *report = NULL;
    struct report_life life = {0};
    struct error error;
    char last[ISO_TIME_SIZE] = "", now[ISO_TIME_SIZE] = "";
    if (cli_try_report(examination->doctor->conf, &report, &error) == 0 &&
        report_last_life(report, &life, &error) == 0 && life.last_ms > now_ms + CLOCK_SLACK_MS &&
        iso_time_from_ms(life.last_ms, last) == 0 && iso_time_from_ms(now_ms, now) == 0)
        doctor_find(examination, DOCTOR_BROKEN,
                    "the clock has %s, but the database has a record from %s: set the clock", now, last);
    report_close(report);
    const int state = adjtimex(&kernel);
    if (state < 0)
        doctor_fine(examination, "the clock is not behind the database; its synchronisation is unknown here");
    else if (state == TIME_ERROR || kernel.status & STA_UNSYNC)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the clock is not synchronised: set up NTP (timedatectl set-ntp true)");
    else
        doctor_fine(examination, "the clock is synchronised");
}

/* -------------------------------------------------------------------------------- unit ---- */

struct unit_file {
    char load[32], active[32], file[32], user[64];
    char writable[4096], drop_ins[4096];
};

/* Copies the value of the line KEY=VALUE, if there is one. */
static void
unit_take(const char *text, const char *key, char *value, size_t size)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, key, strlen(key)) == 0)
            snprintf(value, size, "%.*s", (int)(strcspn(line, "\n") - strlen(key)), line + strlen(key));
}

/* Reads the unit from systemctl. Returns false if it is not installed or systemctl fails. */
static bool
unit_read(struct unit_file *unit)
{
    static const char *const command[] = {
        "systemctl",       "show", "-p", "LoadState,ActiveState,UnitFileState,User,ReadWritePaths,DropInPaths",
        "noctule.service", NULL};
    struct program_output output;
    struct error error;
    if (program_run(command, DOCTOR_SECONDS, &output, &error))
        return false;
    unit_take(output.text, "LoadState=", unit->load, sizeof unit->load);
    unit_take(output.text, "ActiveState=", unit->active, sizeof unit->active);
    unit_take(output.text, "UnitFileState=", unit->file, sizeof unit->file);
    unit_take(output.text, "User=", unit->user, sizeof unit->user);
    unit_take(output.text, "ReadWritePaths=", unit->writable, sizeof unit->writable);
    unit_take(output.text, "DropInPaths=", unit->drop_ins, sizeof unit->drop_ins);
    free(output.text);
    return output.status == 0 && strcmp(unit->load, "loaded") == 0;
}

/* Checks that a path is inside a writable path of the unit. */
static void
unit_expect_write(struct examination *examination, const struct unit_file *unit, const char *path)
{
    char paths[sizeof unit->writable], *rest = NULL;
    snprintf(paths, sizeof paths, "%s", unit->writable);
    for (const char *one = strtok_r(paths, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        one += strspn(one, "-+");
        const size_t length = strlen(one);
        if (strncmp(path, one, length) == 0 && (path[length] == '/' || path[length] == '\0'))
            return;
    }
    doctor_find(examination, DOCTOR_BROKEN,
                "the systemd unit denies writes to %s: systemctl edit noctule, [Service] ReadWritePaths=%s", path,
                path);
}

void
doctor_check_unit(struct examination *examination)
{
    const struct conf *conf = examination->doctor->conf;
    struct unit_file unit = {0};
    if (!unit_read(&unit)) {
        doctor_fine(examination, "the unit noctule.service is not installed");
        return;
    }
    unit_expect_write(examination, &unit, conf->root);
    for (size_t i = 0; i < conf->inbox_count; i++) {
        if (conf->inboxes[i].after != CONF_KEEP)
            unit_expect_write(examination, &unit, conf->inboxes[i].path);
        if (conf->inboxes[i].after == CONF_MOVE)
            unit_expect_write(examination, &unit, conf->inboxes[i].move_to);
    }
    for (size_t i = 0; i < conf->destination_count; i++)
        if (conf->destinations[i].folder)
            unit_expect_write(examination, &unit, conf->destinations[i].folder);
    if (conf->program_count > 0 && !strstr(unit.drop_ins, "/programs.conf"))
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the systemd unit denies programs of the site namespaces and writable code: install the drop-in "
                    "programs.conf (docs/operations.md)");
    if (strcmp(unit.active, "failed") == 0)
        doctor_find(examination, DOCTOR_BROKEN, "noctule.service has failed: see journalctl -u noctule");
    if (strcmp(unit.file, "disabled") == 0)
        doctor_find(examination, DOCTOR_ATTENTION, "noctule.service does not start at boot: systemctl enable noctule");
    if (*unit.user && strcmp(unit.user, examination->doctor->user) != 0)
        doctor_find(examination, DOCTOR_BROKEN, "the unit runs as %s, but %s belongs to %s: chown -R %s %s", unit.user,
                    conf->root, examination->doctor->user, unit.user, conf->root);
    doctor_fine(examination, "noctule.service is %s", unit.active);
}
