/* compute.c - the options of processors, GPUs and Slurm. */
#include "config/options/sections.h"

#include <string.h>
#include <strings.h>

static const char *const backend_choices[] = {"auto", "cuda", "cpu", NULL};
static const char *const executor_choices[] = {"local", "slurm", "both", NULL};

static void
check_compute(const void *object, const struct option_spot *spot)
{
    const struct conf_compute *compute = object;
    if (LOST(spot, compute->devices))
        return;
    if (compute->device_count > 0 && compute->backend && strcmp(compute->backend, "cpu") == 0)
        option_refuse(spot, "devices", "is not used with backend = \"cpu\"");
    for (size_t i = 0; i < compute->device_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(compute->devices[i], compute->devices[j]) == 0) {
                option_refuse(spot, "devices", "\"%s\" stands twice", compute->devices[i]);
                break;
            }
}

static const struct option_row slurm_rows[] = {
    {"share", &option_path, AT(struct conf_slurm, share), "", LIMITS(1, 4000),
     .help =
         "a folder that this machine and all compute nodes have under this path, for one account: "
         "jobs go there, and results come back"},
    {"program", &option_path, AT(struct conf_slurm, program), "\"/usr/bin/noctule\"",
     LIMITS(1, 4000), .help = "noctule on the compute nodes, of this very version"},
    {"partition", &option_text, AT(struct conf_slurm, partition), "\"\"", LIMITS(0, 255),
     .help = "as of sbatch; Slurm's default when empty"},
    {"gres", &option_text, AT(struct conf_slurm, gres), "\"\"", LIMITS(0, 255),
     .help = "what a Slurm job asks for, as of sbatch: \"gpu:1\"; nothing when empty"},
    {"time_minutes", &option_integer, AT(struct conf_slurm, time_minutes), "60", LIMITS(2, 43200),
     .help = "how long a Slurm job may take; then it is told to end"},
    {"arguments", &option_names, AT(struct conf_slurm, arguments),
     MANY(struct conf_slurm, argument_count), .fallback = "[ ]", LIMITS(0, 64),
     .help = "more arguments of sbatch: [ \"--account=radiology\", \"--mem=8G\" ]"},
    {"batch_seconds", &option_number, AT(struct conf_slurm, batch_seconds), "60.0", LIMITS(0, 3600),
     .help =
         "jobs that take less travel together, up to so much work by what was measured; 0 means "
         "each by itself"},
    {"max_submitted", &option_integer, AT(struct conf_slurm, max_submitted), "2000",
     LIMITS(1, 9000),
     .help = "Slurm jobs at a time that wait or run; below MaxJobCount of slurm.conf"},
    {"poll_seconds", &option_number, AT(struct conf_slurm, poll_seconds), "5.0", LIMITS(0.05, 600),
     .help = "between two polls of Slurm's queue and of results while jobs are in it; after "
             "Slurm refused a job, the first wait is 5 s or this time, if it is shorter"},
    {"backlog_jobs", &option_integer, AT(struct conf_slurm, backlog_jobs), "32", LIMITS(0, 10000),
     .help = "with executor = \"both\": so many of the jobs that wait are left to this machine"},
};

static const struct option_section slurm_section = {ROWS(slurm_rows),
                                                    .size = sizeof(struct conf_slurm)};

static const struct option_row compute_rows[] = {
    {"executor", &option_choice, AT(struct conf_compute, executor), "\"local\"",
     .choices = executor_choices,
     .help = "where jobs run: \"local\", on this machine; \"slurm\", on the nodes of a cluster; "
             "\"both\": what this machine has no room for goes to Slurm"},
    {"slurm", &option_group, AT(struct conf_compute, slurm), "{ }", .section = &slurm_section,
     .help = "the cluster: how jobs are handed to its scheduler"},
    {"backend", &option_word, AT(struct conf_compute, backend), "\"auto\"",
     .choices = backend_choices,
     .help = "where to compute: \"cuda\" on GPUs, \"cpu\", or \"auto\", GPUs where there are any; "
             "noctule run then takes the processors for jobs that end before a GPU is open"},
    {"devices", &option_names, AT(struct conf_compute, devices),
     MANY(struct conf_compute, device_count), .fallback = "[ ]", LIMITS(0, 64), .form = &form_gpu,
     .help = "the GPUs to compute on, by index or UUID as nvidia-smi -L prints them; all when none "
             "is named"},
    {"threads", &option_integer, AT(struct conf_compute, threads), "0", LIMITS(0, 1024),
     .help = "CPU threads of a job, which jobs that run at a time in one worker divide between "
             "them; 0 means the worker's share of the cores"},
    {"lanes", &option_integer, AT(struct conf_compute, lanes), "2", LIMITS(1, 16),
     .help = "jobs at a time: one reads or writes while another computes"},
    {"keep_mib", &option_number, AT(struct conf_compute, keep_mib), "256.0", LIMITS(0, 65536),
     .help = "pinned memory of each lane of a GPU, taken when its worker starts, and kept; what a "
             "job takes beyond it is given back after 30 s without one"},
};

const struct option_section option_compute = {
    ROWS(compute_rows), .size = sizeof(struct conf_compute), .check = check_compute};

bool
conf_uses_slurm(const struct conf *conf)
{
    bool uses = conf->compute.executor != CONF_EXECUTOR_LOCAL;
    for (size_t i = 0; i < conf->pipeline_count; i++)
        uses = uses || conf->pipelines[i].executor == CONF_ON_SLURM;
    return uses;
}

/* The share may contain the root, for example if this machine exports it: then the nodes read the
 * images in place. */
static void
check_share_apart(const struct conf *conf, const struct option_spot *spot)
{
    const char *share = conf->compute.slurm.share;
    const char *root = conf->root ? option_path_below(conf->root, share) : NULL;
    if (!root || !*root)
        check_apart_from_root(conf, share, "compute.slurm.share", spot);
}

void
check_slurm(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_slurm *slurm = &conf->compute.slurm;
    if (LOST(spot, slurm->share) || LOST(spot, conf->pipelines))
        return;
    if (slurm->share)
        check_share_apart(conf, spot);
    else if (conf_uses_slurm(conf))
        option_refuse(
            spot, "compute.slurm.share",
            "is missing: compute.executor, or that of a pipeline, hands jobs to Slurm, and "
            "they go through a folder that the compute nodes have, too");
}
