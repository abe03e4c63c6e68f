/*
 * doctor.h - what `noctule doctor` looks at: a row for each check. A row's look runs once for each thing that the
 * configuration has of its kind, in a thread of its own beside all others, and is left behind when it does not end in
 * time: a share may hang.
 */
#ifndef NOCTULE_SERVICE_CLI_DOCTOR_DOCTOR_H
#define NOCTULE_SERVICE_CLI_DOCTOR_DOCTOR_H

#include "config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOCTOR_FINDINGS     32
#define DOCTOR_TEXT         1024
#define DOCTOR_SECONDS      3 /* that a look gives whom it asks; DOCTOR_DEADLINE bounds the look */
#define DOCTOR_DEADLINE     6
#define DOCTOR_NODE_SECONDS 60 /* for a node; DOCTOR_DEADLINE comes on top */

/* As the exit status has them. */
enum doctor_verdict { DOCTOR_OK, DOCTOR_ATTENTION, DOCTOR_BROKEN };

struct doctor {
    const char *config_path; /* NULL: it is not known which one (no_conf) */
    bool with_nodes;         /* Slurm is to be given a job */
    bool has_dictionary;     /* without it DICOM cannot be spoken */
    struct conf *conf;       /* NULL: it is wrong */
    struct conf_findings *findings;
    const char *no_conf;        /* why, where there are no findings */
    char not_for_service[1024]; /* why the service cannot load what this user can; "" */
    uid_t asked_by;
    char user[64];         /* the service's */
    bool has_user;         /* there is one */
    bool is_service;       /* rights are those of the service's user */
    char daemon_state[32]; /* "running", "starting" ... (cli_no_answer) */
    char *daemon_alerts;   /* lines of PING's answer; NULL: none */
    char daemon_why[1024]; /* why it did not answer */
    int daemon_pid;        /* 0: unknown */
};

struct examination {
    const struct doctor *doctor;
    const struct doctor_check *check;
    size_t index; /* of what the configuration has of its kind */

    struct {
        enum doctor_verdict verdict;
        char text[DOCTOR_TEXT];
    } findings[DOCTOR_FINDINGS];

    size_t count;
    char fine[DOCTOR_TEXT]; /* where nothing was found */
    bool unknown;           /* nothing was found, for nothing could be checked */
};

struct doctor_check {
    const char *name, *about;
    size_t (*count)(const struct conf *conf); /* NULL: it is one */
    void (*look)(struct examination *examination);
    bool without_conf, needs_dicom;
    bool on_nodes; /* only where that was asked for, and with its own deadline */
};

/* Says what is wrong, and what to do. Findings beyond DOCTOR_FINDINGS raise the last one's verdict. */
void doctor_find(struct examination *examination, enum doctor_verdict verdict, const char *format,
                 ...) __attribute__((format(printf, 3, 4)));
/* Sets the text of a check that had nothing to check. */
void doctor_unknown(struct examination *examination, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What is said where nothing was found. */
void doctor_fine(struct examination *examination, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Why GPUs that are asked for cannot be used, and what to do: by the driver's CUDA (0: there is none), and this build's
 * (0: likewise; kernels/gpu.h). */
void doctor_explain_no_gpu(int driver, int program, const char *user, char text[DOCTOR_TEXT]);
/* An errno of what could not be looked at: for want of rights where they are not the service's, else broken. */
void doctor_failed(struct examination *examination, int error, const char *what,
                   const char *remedy);

void look_at_configuration(struct examination *examination);
void look_at_root(struct examination *examination);
size_t count_inboxes(const struct conf *conf);
void look_at_inbox(struct examination *examination);
void look_at_watches(struct examination *examination);
void look_at_database(struct examination *examination);
void look_at_backup(struct examination *examination);
void look_at_daemon(struct examination *examination);
void look_at_alerts(struct examination *examination);
void look_at_clock(struct examination *examination);
void look_at_unit(struct examination *examination);
size_t count_ports(const struct conf *conf);
void look_at_port(struct examination *examination);
size_t count_tls(const struct conf *conf);
void look_at_tls(struct examination *examination);
size_t count_destinations(const struct conf *conf);
void look_at_destination(struct examination *examination);
size_t count_sources(const struct conf *conf);
void look_at_source(struct examination *examination);
void look_at_devices(struct examination *examination);
size_t count_clusters(const struct conf *conf);
void look_at_cluster(struct examination *examination);
void look_at_nodes(struct examination *examination);
void look_at_dictionary(struct examination *examination);
void look_at_limits(struct examination *examination);
void look_at_confinement(struct examination *examination);

#endif
