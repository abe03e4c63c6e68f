/* option_compute.c - the options of processors, GPUs and Slurm. */
#include "config/options/option_sections.h"

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
        option_refuse(spot, "devices", "is not allowed with backend = \"cpu\"");
    for (size_t i = 0; i < compute->device_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcasecmp(compute->devices[i], compute->devices[j]) == 0) {
                option_refuse(spot, "devices", "\"%s\" is given twice: remove one", compute->devices[i]);
                break;
            }
}

static const struct option_row slurm_rows[] = {
    {ROW(conf_slurm, path, share), "", LIMITS(1, 4000),
     .help = "folder that this machine and all compute nodes share at this path, with the same "
             "account; holds jobs and results"},
    {ROW(conf_slurm, path, program), "\"/usr/bin/noctule\"", LIMITS(1, 4000),
     .help = "path of noctule on the compute nodes; must be the same version"},
    {ROW(conf_slurm, text, partition), "\"\"", LIMITS(0, 255), .help = "partition for sbatch; empty: Slurm's default"},
    {ROW(conf_slurm, text, gres), "\"\"", LIMITS(0, 255),
     .help = "generic resources for sbatch, such as \"gpu:1\"; empty: none"},
    {ROW(conf_slurm, integer, time_minutes), "60", LIMITS(2, 43200),
     .help = "max duration of a Slurm job; then Slurm ends it"},
    {ROW(conf_slurm, names, arguments), MANY(struct conf_slurm, argument_count), .fallback = "[ ]", LIMITS(0, 64),
     .help = "further arguments of sbatch, such as [ \"--account=radiology\", \"--mem=8G\" ]"},
    {ROW(conf_slurm, number, batch_seconds), "60.0", LIMITS(0, 3600),
     .help = "measured duration up to which short jobs share one Slurm job, and max sum of their "
             "durations; 0: one job per Slurm job"},
    {ROW(conf_slurm, integer, max_submitted), "2000", LIMITS(1, 9000),
     .help = "max number of Slurm jobs that wait or run; must be below MaxJobCount of slurm.conf"},
    {ROW(conf_slurm, number, poll_seconds), "5.0", LIMITS(0.05, 600),
     .help = "interval of polling Slurm's queue and results; after Slurm rejected a job, the first "
             "delay is this time, at most 5 s"},
    {ROW(conf_slurm, integer, backlog_jobs), "32", LIMITS(0, 10000),
     .help = "number of waiting jobs that stay on this machine, with executor = \"both\""},
};

static const struct option_section slurm_section = {SECTION(slurm_rows, conf_slurm)};

static const struct option_row compute_rows[] = {
    {ROW(conf_compute, choice, executor), "\"local\"", .choices = executor_choices,
     .help = "where jobs run: \"local\" on this machine, \"slurm\" on a cluster, \"both\": jobs "
             "beyond this machine's capacity go to Slurm"},
    {ROW(conf_compute, group, slurm), "{ }", .section = &slurm_section, .help = "submission of jobs to Slurm"},
    {ROW(conf_compute, word, backend), "\"auto\"", .choices = backend_choices,
     .help = "processor type: \"cuda\" for GPUs, \"cpu\", or \"auto\": GPUs if there are any; with "
             "auto, noctule run uses the CPU for jobs that end before a GPU is ready"},
    {ROW(conf_compute, names, devices), MANY(struct conf_compute, device_count), .fallback = "[ ]", LIMITS(0, 64),
     .form = &form_gpu, .help = "GPUs to use, by index or UUID as printed by nvidia-smi -L; empty: all"},
    {ROW(conf_compute, integer, threads), "0", LIMITS(0, 1024),
     .help = "CPU threads per worker, divided between its concurrent jobs; 0: the worker's share of the cores"},
    {ROW(conf_compute, integer, lanes), "2", LIMITS(1, 16),
     .help = "number of concurrent jobs per worker, so that one job reads or writes while another computes"},
    {ROW(conf_compute, number, keep_mib), "256.0", LIMITS(0, 65536),
     .help = "pinned memory per lane of a GPU worker, allocated at its start; memory beyond it is "
             "freed after 30 s without a job"},
    {ROW(conf_compute, integer, programs), "1", LIMITS(1, 16),
     .help = "max number of programs that run at the same time"},
};

const struct option_section option_compute = {SECTION(compute_rows, conf_compute), .check = check_compute};

bool
conf_uses_slurm(const struct conf *conf)
{
    bool uses = conf->compute.executor != CONF_EXECUTOR_LOCAL;
    for (size_t i = 0; i < conf->pipeline_count; i++)
        uses = uses || conf->pipelines[i].executor == CONF_ON_SLURM;
    return uses;
}

void
option_check_slurm(const struct conf *conf, const struct option_spot *spot)
{
    const struct conf_slurm *slurm = &conf->compute.slurm;
    if (LOST(spot, slurm->share) || LOST(spot, conf->pipelines))
        return;
    if (slurm->share) {
        /* The share may contain the root, for example if this machine exports it: then the nodes
         * read the images in place. */
        const char *share = conf->compute.slurm.share;
        const char *root = conf->root ? option_path_below(conf->root, share) : NULL;
        if (!root || !*root)
            option_check_apart_from_root(conf, share, "compute.slurm.share", spot);
    } else if (conf_uses_slurm(conf))
        option_refuse(spot, "compute.slurm.share",
                      "is missing, but compute.executor or a pipeline uses Slurm: name a folder "
                      "that the compute nodes share");
}
