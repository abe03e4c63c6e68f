/*
 * doctor.h - the checks of `noctule doctor`, one row each. A check runs once for each configured
 * item of its kind, in a thread of its own. The doctor abandons a check after its time limit,
 * because a network share may hang.
 */
#ifndef NOCTULE_SERVICE_CLI_DOCTOR_DOCTOR_H
#define NOCTULE_SERVICE_CLI_DOCTOR_DOCTOR_H

#include "config/config.h"
#include "service/common/program/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DOCTOR_FINDINGS     32
#define DOCTOR_TEXT         1024
#define DOCTOR_SECONDS      3 /* time limit for a server to answer */
#define DOCTOR_DEADLINE     6
#define DOCTOR_NODE_SECONDS 60 /* for a node, in addition to DOCTOR_DEADLINE */

/* The values are the exit status. */
enum doctor_verdict { DOCTOR_OK, DOCTOR_ATTENTION, DOCTOR_BROKEN };

struct doctor {
    const char *config_path; /* NULL: unknown (no_conf) */
    bool with_nodes;         /* submit a job to Slurm */
    bool has_dictionary;     /* DICOM checks need DCMTK's dictionary */
    struct conf *conf;       /* NULL: it has errors */
    struct conf_findings *findings;
    const char *no_conf; /* reason without a configuration and without findings */
    /* error of the service's user, if only this user can load the file; else "" */
    char not_for_service[1024];
    uid_t caller;
    char user[64];                /* the service's user */
    bool has_user;                /* that user exists */
    bool is_service;              /* the checks run with that user's rights */
    char daemon_state[32];        /* "running", "starting", or a state of cli_no_answer */
    char *daemon_alerts;          /* lines of the PING answer, or NULL */
    char daemon_why[1024];        /* reason if it did not answer, else "" */
    int daemon_pid;               /* 0 if unknown */
    struct sandbox_probe sandbox; /* only with programs */
};

struct examination {
    const struct doctor *doctor;
    const struct doctor_check *check;
    size_t index; /* among the configured items of this kind */

    struct {
        enum doctor_verdict verdict;
        char text[DOCTOR_TEXT];
    } findings[DOCTOR_FINDINGS];

    size_t count;
    char fine[DOCTOR_TEXT]; /* text without findings */
    bool unknown;           /* no finding, because the check was not possible */
};

struct doctor_check {
    const char *name, *about;
    size_t (*count)(const struct conf *conf); /* number of items */
    size_t count_at;                          /* or its offset in struct conf; 0: one item */
    void (*check)(struct examination *examination);
    bool without_conf, needs_dicom;
    bool on_nodes; /* only with --nodes, and with its own time limit */
};

/* Adds a finding: the fault and the remedy. Findings beyond DOCTOR_FINDINGS only raise the verdict
 * of the last one. */
void doctor_find(struct examination *examination, enum doctor_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the text of a check that had no data to check. */
void doctor_unknown(struct examination *examination, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sets the text of a check without findings. */
void doctor_fine(struct examination *examination, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Explains why configured GPUs cannot be used, with a remedy. `driver` is the CUDA version of the
 * driver and `program` that of this build (kernels/gpu.h); 0 means none. Returns the text in
 * `text`. */
void doctor_explain_no_gpu(int driver, int program, const char *user, char text[DOCTOR_TEXT]);
/* Explains why a program with `gpu` cannot run here, with a remedy; `gpus`: those of this machine. Returns DOCTOR_OK
 * without a text if it can. */
enum doctor_verdict doctor_explain_program_gpu(const struct conf *conf, const struct conf_program *program, int gpus,
                                               char text[DOCTOR_TEXT]);
/* Adds a finding for an errno: attention if this user lacks rights that the service may have, else
 * broken. */
void doctor_failed(struct examination *examination, int error, const char *what, const char *remedy);

void doctor_check_configuration(struct examination *examination);
void doctor_check_root(struct examination *examination);
void doctor_check_inbox(struct examination *examination);
void doctor_check_watches(struct examination *examination);
void doctor_check_database(struct examination *examination);
void doctor_check_backup(struct examination *examination);
void doctor_check_daemon(struct examination *examination);
void doctor_check_alerts(struct examination *examination);
void doctor_check_clock(struct examination *examination);
void doctor_check_unit(struct examination *examination);
size_t doctor_count_ports(const struct conf *conf);
void doctor_check_port(struct examination *examination);
size_t doctor_count_tls(const struct conf *conf);
void doctor_check_tls(struct examination *examination);
void doctor_check_destination(struct examination *examination);
void doctor_check_source(struct examination *examination);
void doctor_check_program(struct examination *examination);
void doctor_check_devices(struct examination *examination);
size_t doctor_count_slurm(const struct conf *conf);
void doctor_check_slurm(struct examination *examination);
void doctor_check_nodes(struct examination *examination);
void doctor_check_dictionary(struct examination *examination);
void doctor_check_limits(struct examination *examination);
void doctor_check_confinement(struct examination *examination);

#endif
