/*
 * doctor.c - `noctule doctor`: checks an installation and prints remedies. Root checks with the
 * rights of the service's user, because the service has no other rights.
 */
#include "service/cli/doctor/doctor.h"

#include "base/terminal.h"
#include "db/iso_time.h"
#include "db/report.h"
#include "dicom/dicom.h"
#include "service/cli/cli.h"
#include "service/common/daemon_line.h"
#include "service/common/json.h"

#include <errno.h>
#include <pthread.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEXT_COLUMN 26 /* after name and verdict */
#define MIN_WIDTH   30 /* below this width lines are not broken */

static const struct doctor_check checks[] = {
    {"configuration", "errors of the file, and its permissions", .check = doctor_check_configuration,
     .without_conf = true},
    {"root", "folder, permissions, free space, file systems", .check = doctor_check_root},
    {"inbox", "readable, and writable if files are moved or deleted", .count_at = offsetof(struct conf, inbox_count),
     .check = doctor_check_inbox},
    {"watches", "number of inbox folders against the limit of inotify", .check = doctor_check_watches},
    {"database", "version, integrity, size of its log", .check = doctor_check_database},
    {"backup", "age of the newest backup", .check = doctor_check_backup},
    {"daemon", "runs and answers", .check = doctor_check_daemon},
    {"alerts", "alerts of noctule status", .check = doctor_check_alerts},
    {"port", "used by noctuled, or free", .count = doctor_count_ports, .check = doctor_check_port},
    {"tls", "certificate and key: readable, matching, valid", .count = doctor_count_tls, .check = doctor_check_tls,
     .needs_dicom = true},
    {"destination", "answers a C-ECHO or STOW-RS request, or is writable",
     .count_at = offsetof(struct conf, destination_count), .check = doctor_check_destination, .needs_dicom = true},
    {"source", "answers a C-ECHO", .count_at = offsetof(struct conf, pull.source_count), .check = doctor_check_source,
     .needs_dicom = true},
    {"devices", "GPUs, driver and memory against the configuration", .check = doctor_check_devices},
    {"program", "command executable, weights readable, sandbox possible",
     .count_at = offsetof(struct conf, program_count), .check = doctor_check_program},
    {"slurm", "answers, accepts jobs, and its shared folder is writable", .count = doctor_count_slurm,
     .check = doctor_check_slurm},
    {"nodes", "with --nodes: a Slurm node and this machine read each other's files", .count = doctor_count_slurm,
     .check = doctor_check_nodes, .on_nodes = true},
    {"dictionary", "DCMTK's data dictionary", .check = doctor_check_dictionary, .without_conf = true},
    {"clock", "not behind the database, and synchronised", .check = doctor_check_clock},
    {"limits", "open files, memory of the control group", .check = doctor_check_limits},
    {"confinement", "seccomp and Landlock", .check = doctor_check_confinement, .without_conf = true},
    {"unit", "the systemd unit, if installed", .check = doctor_check_unit},
};

#define CHECKS (sizeof checks / sizeof *checks)

static const struct {
    const char *word;
    enum cli_style style;
} verdicts[] = {[DOCTOR_OK] = {"ok", CLI_GOOD},
                [DOCTOR_ATTENTION] = {"attention", CLI_DOUBTFUL},
                [DOCTOR_BROKEN] = {"broken", CLI_BAD}};

/* ---------------------------------------------------------------------------- findings ---- */

__attribute__((format(printf, 2, 0))) static void
doctor_write(char text[DOCTOR_TEXT], const char *format, va_list values)
{
    vsnprintf(text, DOCTOR_TEXT, format, values);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ')
            *at = ' ';
    }
}

void
doctor_find(struct examination *examination, enum doctor_verdict verdict, const char *format, ...)
{
    va_list values;
    if (examination->count == DOCTOR_FINDINGS) {
        if (verdict > examination->findings[DOCTOR_FINDINGS - 1].verdict)
            examination->findings[DOCTOR_FINDINGS - 1].verdict = verdict;
        return;
    }
    va_start(values, format);
    doctor_write(examination->findings[examination->count].text, format, values);
    va_end(values);
    examination->findings[examination->count++].verdict = verdict;
}

void
doctor_fine(struct examination *examination, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    doctor_write(examination->fine, format, values);
    va_end(values);
}

void
doctor_unknown(struct examination *examination, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    doctor_write(examination->fine, format, values);
    va_end(values);
    examination->unknown = true;
}

void
doctor_failed(struct examination *examination, int error, const char *what, const char *remedy)
{
    const struct doctor *doctor = examination->doctor;
    if ((error == EACCES || error == EPERM) && !doctor->is_service)
        doctor_find(examination, DOCTOR_ATTENTION, "no permission to check %s: run doctor as root or as %s", what,
                    doctor->user);
    else
        doctor_find(examination, DOCTOR_BROKEN, "%s%s%s: %s: %s", what, doctor->is_service ? ", as " : "",
                    doctor->is_service ? doctor->user : "", strerror(error), remedy);
}

static enum doctor_verdict
examination_verdict(const struct examination *examination)
{
    enum doctor_verdict worst = DOCTOR_OK;
    for (size_t i = 0; i < examination->count; i++)
        worst = examination->findings[i].verdict > worst ? examination->findings[i].verdict : worst;
    return worst;
}

/* ------------------------------------------------------------------------------ checks ---- */

/* A running check. The thread or the main thread frees it, whichever is last. */
struct doctor_visit {
    struct examination examination;
    pthread_t thread;
    bool started;
    atomic_bool left;
};

static void *
visit_main(void *argument)
{
    struct doctor_visit *visit = argument;
    const struct doctor_check *check = visit->examination.check;
    if (check->needs_dicom && !visit->examination.doctor->has_dictionary)
        doctor_find(&visit->examination, DOCTOR_ATTENTION, "not checked: DCMTK's dictionary is missing");
    else
        check->check(&visit->examination);
    if (atomic_exchange(&visit->left, true))
        free(visit);
    return NULL;
}

/* Returns true and the findings in *found if the check ended. If it did not end in time, *found has
 * that as a finding. */
static bool
doctor_visit_end(struct doctor_visit *visit, const struct timespec *began, struct examination *found)
{
    const int seconds = DOCTOR_DEADLINE + (visit->examination.check->on_nodes ? DOCTOR_NODE_SECONDS : 0);
    const struct timespec until = {began->tv_sec + seconds, began->tv_nsec};
    *found = (struct examination){
        .doctor = visit->examination.doctor, .check = visit->examination.check, .index = visit->examination.index};
    if (!visit->started) {
        doctor_find(found, DOCTOR_ATTENTION, "not checked: cannot start a thread; try again");
        free(visit);
        return true;
    }
    const bool ended = pthread_clockjoin_np(visit->thread, NULL, CLOCK_MONOTONIC, &until) == 0;
    if (!ended)
        pthread_detach(visit->thread);
    if (ended)
        *found = visit->examination;
    else
        doctor_find(found, DOCTOR_BROKEN, "no answer within %d seconds: check the network share or server that it uses",
                    seconds);
    if (atomic_exchange(&visit->left, true))
        free(visit);
    return ended;
}

static size_t
doctor_count(const struct doctor *doctor, const struct doctor_check *check)
{
    if ((!doctor->conf && !check->without_conf) || (check->on_nodes && !doctor->with_nodes))
        return 0;
    if (check->count)
        return check->count(doctor->conf);
    return check->count_at ? *(const size_t *)((const char *)doctor->conf + check->count_at) : 1;
}

/* Runs all checks in parallel. If *hung is set, some checks still run and use the doctor's data. */
static int
doctor_run_checks(const struct doctor *doctor, struct examination **found, size_t *count, bool *hung)
{
    size_t total = 0, begun = 0;
    for (size_t i = 0; i < CHECKS; i++)
        total += doctor_count(doctor, &checks[i]);
    struct doctor_visit **running = calloc(total, sizeof(struct doctor_visit *));
    *found = calloc(total, sizeof **found);
    for (size_t i = 0; running && *found && i < CHECKS; i++) {
        for (size_t k = 0; k < doctor_count(doctor, &checks[i]); k++) {
            struct doctor_visit *visit = running[begun++] = calloc(1, sizeof *visit);
            if (!visit)
                continue;
            visit->examination = (struct examination){.doctor = doctor, .check = &checks[i], .index = k};
            visit->started = pthread_create(&visit->thread, NULL, visit_main, visit) == 0;
        }
    }
    struct timespec began;
    clock_gettime(CLOCK_MONOTONIC, &began);
    bool memory = running && *found;
    for (size_t i = 0; i < begun; i++) {
        memory &= running[i] != NULL;
        *hung |= running[i] && !doctor_visit_end(running[i], &began, &(*found)[i]);
    }
    free(running);
    *count = total;
    return memory ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------------------ output ---- */

/* Prints a text with its times as local ones, in lines of the terminal. Other outputs get one
 * line. */
static void
doctor_print_text(const char *original)
{
    char *localised = iso_time_localise(original);
    const char *text = localised ? localised : original;
    const int room = terminal_columns(stdout) - TEXT_COLUMN;
    int at = 0;
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (at > 0 && room >= MIN_WIDTH && at + 1 + word > room) {
            printf("\n%*s", TEXT_COLUMN, "");
            at = 0;
        }
        at += printf("%s%.*s", at > 0 ? " " : "", word, text);
        text += word + (text[word] == ' ');
    }
    putchar('\n');
    free(localised);
}

/* If word is NULL, prints the word of the verdict. */
static void
doctor_print_line(const char *name, enum doctor_verdict verdict, const char *word, const char *text)
{
    printf("%s%-13s%s  %s%-9s%s  ", cli_style(CLI_HEADING, stdout), name, cli_style(CLI_PLAIN, stdout),
           cli_style(word ? CLI_PLAIN : verdicts[verdict].style, stdout), word ? word : verdicts[verdict].word,
           cli_style(CLI_PLAIN, stdout));
    doctor_print_text(text);
}

static void
doctor_print(const struct doctor *doctor, const struct examination *found, size_t count)
{
    size_t of[sizeof verdicts / sizeof *verdicts] = {0};
    for (size_t i = 0; i < count; i++) {
        of[examination_verdict(&found[i])] += !found[i].unknown;
        if (found[i].count == 0)
            doctor_print_line(found[i].check->name, DOCTOR_OK, found[i].unknown ? "unknown" : NULL, found[i].fine);
        for (size_t k = 0; k < found[i].count; k++)
            doctor_print_line(k ? "" : found[i].check->name, found[i].findings[k].verdict, NULL,
                              found[i].findings[k].text);
    }
    if (!doctor->conf)
        puts("\nThe other checks need a valid configuration.");
    if (!doctor->is_service && doctor->caller != 0)
        printf("\nChecked with the permissions of this user, not of %s: run doctor as root to "
               "check those of the service.\n",
               doctor->user);
    printf("\n%zu broken, %zu need attention, %zu ok\n", of[DOCTOR_BROKEN], of[DOCTOR_ATTENTION], of[DOCTOR_OK]);
}

static void
doctor_print_json(const struct doctor *doctor, const struct examination *found, size_t count, enum doctor_verdict worst)
{
    struct json json = {.out = stdout};
    json_begin_object(&json, NULL);
    json_string(&json, "verdict", verdicts[worst].word);
    json_string(&json, "service_user", doctor->user);
    json_boolean(&json, "with_its_rights", doctor->is_service);
    json_begin_array(&json, "checks");
    for (size_t i = 0; i < count; i++) {
        json_begin_object(&json, NULL);
        json_string(&json, "check", found[i].check->name);
        json_string(&json, "about", found[i].check->about);
        json_string(&json, "verdict", verdicts[examination_verdict(&found[i])].word);
        json_begin_array(&json, "findings");
        for (size_t k = 0; k < found[i].count; k++) {
            json_begin_object(&json, NULL);
            json_string(&json, "verdict", verdicts[found[i].findings[k].verdict].word);
            json_string(&json, "text", found[i].findings[k].text);
            json_end_object(&json);
        }
        json_end_array(&json);
        if (found[i].count == 0)
            json_string(&json, "text", found[i].fine);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_end_object(&json);
}

/* ------------------------------------------------------------------------------- rights ---- */

/* Must run before other threads start. Slurm identifies users by the real user ID, so the real and
 * the effective ID change. The saved ID stays for doctor_check_backup only. If the owner of the
 * root folder has no name, there is no service user. */
static int
doctor_take_rights(struct doctor *doctor, const char *root)
{
    const struct passwd *user;
    doctor->caller = getuid();
    const int rc = cli_take_rights(doctor->conf, &user);
    snprintf(doctor->user, sizeof doctor->user, "%s", user ? user->pw_name : DAEMON_USER);
    if (rc < 0)
        return rc;
    doctor->has_user = user != NULL;
    doctor->is_service = user && geteuid() == user->pw_uid;
    /* The service must be able to read the file. A file of conf.d may be readable for root only. */
    if (rc > 0 && doctor->conf) {
        struct conf *conf = NULL;
        struct error error;
        if (conf_load_with_root(doctor->config_path, root, &conf, &error) < 0)
            snprintf(doctor->not_for_service, sizeof doctor->not_for_service, "%s", error.message);
        conf_free(conf);
    }
    return 0;
}

/* ------------------------------------------------------------------------------ command ---- */

struct doctor_options {
    bool json, nodes;
};

static void
doctor_ping_daemon(struct doctor *doctor)
{
    char *message;
    const char *root = doctor->conf->root;
    const int rc = cli_ping_daemon(root, DOCTOR_SECONDS, &message, &doctor->daemon_alerts);
    const char *state = rc == 0 ? "running" : "starting";
    if (rc != 0 && rc != -EINPROGRESS)
        state = cli_no_answer(root, DOCTOR_SECONDS, rc, doctor->daemon_why, sizeof doctor->daemon_why);
    snprintf(doctor->daemon_state, sizeof doctor->daemon_state, "%s", state);
    doctor->daemon_pid = cli_find_daemon(root);
    free(message);
}

static int
doctor_print_result(const struct doctor *doctor, bool as_json, bool *hung)
{
    struct examination *found = NULL;
    size_t count = 0;
    enum doctor_verdict worst = DOCTOR_OK;
    if (doctor_run_checks(doctor, &found, &count, hung) < 0) {
        cli_print_error("out of memory");
        worst = DOCTOR_BROKEN;
    } else {
        for (size_t i = 0; i < count; i++)
            worst = examination_verdict(&found[i]) > worst ? examination_verdict(&found[i]) : worst;
        if (as_json)
            doctor_print_json(doctor, found, count, worst);
        else
            doctor_print(doctor, found, count);
    }
    free(found);
    return worst;
}

static int
doctor_run(struct cli_call *call)
{
    const struct doctor_options *options = call->options;
    struct conf_findings findings = {0};
    struct error error = {0};
    struct doctor doctor = {.with_nodes = options->nodes, .findings = &findings};
    bool hung = false;
    int status = DOCTOR_BROKEN;
    const bool chosen = cli_choose_conf(call->context, &error) == 0;
    doctor.config_path = call->context->config_path;
    if (chosen)
        conf_load_all(doctor.config_path, call->context->root, &doctor.conf, &findings, &error);
    doctor.no_conf = error.message;
    const int taken = doctor_take_rights(&doctor, call->context->root);
    if (taken < 0) {
        cli_print_error("cannot switch to user %s: %s", doctor.user, strerror(-taken));
    } else {
        doctor.has_dictionary = dicom_has_dictionary();
        if (doctor.has_dictionary)
            dicom_init();
        if (doctor.conf)
            doctor_ping_daemon(&doctor);
        if (doctor.conf && doctor.conf->program_count > 0)
            sandbox_probe(&doctor.sandbox); /* forks, so that no other thread may run yet */
        status = doctor_print_result(&doctor, options->json, &hung);
    }
    if (hung) /* hung checks still use this memory */
        _exit(fflush(stdout) == 0 ? status : DOCTOR_BROKEN);
    free(doctor.daemon_alerts);
    conf_findings_free(&findings);
    conf_free(doctor.conf);
    return status;
}

const struct cli_command cli_doctor = {
    .name = "doctor",
    .help = "check the installation, and print faults with remedies",
    .usage = {"[--nodes] [--json]"},
    .more = "Exit status: 0 if all is ok, 1 if a check needs attention, 2 if a check is broken. As "
            "root, it checks with the permissions of the service's user, the owner of the root folder.",
    .options = (const struct cli_option[]){{"nodes", 0, &cli_flag, CLI_AT(struct doctor_options, nodes),
                                            .help = "also run a Slurm job that tests the shared folder on "
                                                    "a node; takes up to a minute"},
                                           CLI_JSON(struct doctor_options),
                                           {0}},
    .size = sizeof(struct doctor_options),
    .without_conf = true,
    .run = doctor_run};
