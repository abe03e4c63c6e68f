/* doctor_slurm.c - checks Slurm's commands and settings, and the folder shared with its nodes. */
#include "service/cli/doctor/doctor.h"
#include "service/common/slurm/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIN_JOB_AGE 600 /* seconds; Slurm must remember ended jobs until the daemon queries them */

size_t
doctor_count_slurm(const struct conf *conf)
{
    return conf_uses_slurm(conf);
}

/* Writes, syncs and renames a file as every attempt does. Returns 0 or an errno. */
static int
share_try(int folder)
{
    static const char from[] = ".noctule-doctor.part", to[] = ".noctule-doctor";
    const int fd = openat(folder, from, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int error = write(fd, "noctule", 7) == 7 && fsync(fd) == 0 ? 0 : errno ? errno : EIO;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && (renameat(folder, from, folder, to) != 0 || fsync(folder) != 0))
        error = errno;
    unlinkat(folder, from, 0);
    unlinkat(folder, to, 0);
    return error;
}

static void
slurm_check_settings(struct examination *examination, const struct conf_slurm *slurm)
{
    struct error error;
    int64_t age = 0, jobs = 0;
    if (slurm_settings(&age, &jobs, &error)) {
        doctor_find(examination, DOCTOR_BROKEN, "%s: %s", error.message,
                    "check slurmctld and munge; install slurm-client if the command is missing");
        return;
    }
    if (age < MIN_JOB_AGE)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "MinJobAge of slurm.conf is %lld s, so Slurm forgets jobs that end while "
                    "noctuled is down: set it to %d or more",
                    (long long)age, MIN_JOB_AGE);
    if (jobs <= slurm->max_submitted)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "compute.slurm.max_submitted (%d) must be below MaxJobCount of slurm.conf "
                    "(%lld): change one of them",
                    slurm->max_submitted, (long long)jobs);
}

void
doctor_check_slurm(struct examination *examination)
{
    const struct conf_slurm *slurm = &examination->doctor->conf->compute.slurm;
    struct stat status;
    struct error error;
    const int folder = open(slurm->share, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int failed = folder < 0 || fstat(folder, &status) != 0 ? errno : share_try(folder);
    if (failed)
        doctor_failed(examination, failed, slurm->share,
                      "mount the folder shared with the compute nodes, and allow the service's user to write");
    else if (status.st_mode & 0022)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "other users can write %s and replace results of nodes: chmod go-w it", slurm->share);
    if (folder >= 0)
        close(folder);
    slurm_check_settings(examination, slurm);
    if (examination->count == 0 && slurm_try(slurm, &error))
        doctor_find(examination, DOCTOR_BROKEN, "%s: %s", error.message,
                    error.code == CODE_SLURM_REFUSED ? "correct compute.slurm (partition, gres, arguments)"
                                                     : "check slurmctld and munge");
    doctor_fine(examination, "Slurm accepts jobs, and %s is writable", slurm->share);
}
