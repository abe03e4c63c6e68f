/* doctor_machine.c - checks GPUs, DCMTK's dictionary, limits and confinement. */
#include "kernels/gpu.h"
#include "service/cli/doctor/doctor.h"
#include "service/common/confine/call_filter.h"
#include "service/common/confine/confine.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MAX_GPUS             64
#define FILES_OF_PROCESS     1024 /* of a process, in addition to its associations */
#define FILES_PER_PEER       4
#define MIN_GPU_MIB          2048
#define LANDLOCK_WITH_RENAME 2

/* ----------------------------------------------------------------------------- devices ---- */

/* Returns the highest CUDA version of the driver, 1000 per major version, or 0 without a driver. */
static int
devices_driver(void)
{
    int version = 0;
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*const get_version)(int *) = driver ? (int (*)(int *))dlsym(driver, "cuDriverGetVersion") : NULL;
    return get_version && get_version(&version) == 0 ? version : 0;
}

#define OR_CPU "or set compute.backend = \"cpu\""

void
doctor_explain_no_gpu(int driver, int program, const char *user, char text[DOCTOR_TEXT])
{
    char refusal[256];
    if (program == 0) {
        snprintf(text, DOCTOR_TEXT,
                 "GPUs are configured, but this build has no CUDA: install the build with "
                 "CUDA, " OR_CPU);
    } else if (driver == 0) {
        snprintf(text, DOCTOR_TEXT,
                 "GPUs are configured, but the NVIDIA driver (libcuda.so.1) is missing: install a "
                 "driver for CUDA %d, " OR_CPU,
                 program / 1000);
    } else if (!kernels_driver_serves(driver, program)) {
        kernels_driver_refusal(driver, program, refusal, sizeof refusal);
        snprintf(text, DOCTOR_TEXT, "%s; install it, " OR_CPU " (nvidia-smi shows the installed driver)", refusal);
    } else {
        snprintf(text, DOCTOR_TEXT,
                 "the driver for CUDA up to %d.%d suits this program (%d.%d), but no GPU can be used: check that user "
                 "%s can open /dev/nvidia*, that the unit has the drop-in gpu.conf, and see nvidia-smi",
                 driver / 1000, driver % 1000 / 10, program / 1000, program % 1000 / 10, user);
    }
}

static void
devices_lack(struct examination *examination, enum doctor_verdict verdict, int driver)
{
    char text[DOCTOR_TEXT];
    doctor_explain_no_gpu(driver, kernels_cuda_version(), examination->doctor->user, text);
    doctor_find(examination, verdict, "%s", text);
}

static void
devices_seen(struct examination *examination, const struct kernels_gpu *gpus, int count, int driver)
{
    const int program = kernels_cuda_version();
    const struct conf_compute *compute = &examination->doctor->conf->compute;
    for (size_t i = 0; i < compute->device_count; i++) {
        const char *wanted = compute->devices[i];
        char *end;
        const long index = strtol(wanted, &end, 10);
        bool found = false;
        for (int k = 0; k < count; k++)
            found |= strcmp(gpus[k].uuid, wanted) == 0 || (!*end && end != wanted && gpus[k].index == index);
        if (!found)
            doctor_find(examination, DOCTOR_BROKEN,
                        "compute.devices has %s, which is not one of the %d GPUs: correct it "
                        "(nvidia-smi -L lists them)",
                        wanted, count);
    }
    for (int i = 0; i < count; i++)
        if (gpus[i].memory_bytes < (int64_t)MIN_GPU_MIB << 20)
            doctor_find(examination, DOCTOR_ATTENTION, "%s has % " PRId64 " MiB: large series are processed on the CPU",
                        gpus[i].name, gpus[i].memory_bytes >> 20);
    doctor_fine(examination,
                "%d GPU%s: %s, %" PRId64 " GiB; the driver supports CUDA up to %d.%d, this program uses %d.%d", count,
                count == 1 ? "" : "s, the first", gpus[0].name, gpus[0].memory_bytes >> 30, driver / 1000,
                driver % 1000 / 10, program / 1000, program % 1000 / 10);
}

void
doctor_check_devices(struct examination *examination)
{
    const struct conf_compute *compute = &examination->doctor->conf->compute;
    struct kernels_gpu gpus[MAX_GPUS];
    if (strcmp(compute->backend, "cpu") == 0) {
        doctor_fine(examination, "jobs run on the CPU, as configured");
        return;
    }
    const int gpu_count = kernels_gpus(gpus, MAX_GPUS);
    const int driver = devices_driver();
    if (gpu_count > 0)
        devices_seen(examination, gpus, gpu_count < MAX_GPUS ? gpu_count : MAX_GPUS, driver);
    else if (strcmp(compute->backend, "cuda") == 0 || compute->device_count > 0)
        devices_lack(examination, DOCTOR_BROKEN, driver);
    else if (driver > 0)
        devices_lack(examination, DOCTOR_ATTENTION, driver);
    else
        doctor_fine(examination, "no GPU found; jobs run on the CPU");
}

/* -------------------------------------------------------------------------- dictionary ---- */

void
doctor_check_dictionary(struct examination *examination)
{
    const char *path = getenv("DCMDICTPATH");
    if (!examination->doctor->has_dictionary)
        doctor_find(examination, DOCTOR_BROKEN,
                    "cannot read DCMTK's data dictionary (dicom.dic%s%s), which noctuled needs: "
                    "reinstall DCMTK, or correct DCMDICTPATH",
                    path ? "; DCMDICTPATH is " : "", path ? path : "");
    doctor_fine(examination, "DCMTK's data dictionary is loaded");
}

/* ------------------------------------------------------------------------------ limits ---- */

/* Returns the hard limit of open files: of the running daemon, else of this process. */
static int64_t
limits_files(int daemon)
{
    char path[64], line[256];
    long long hard = -1;
    struct rlimit own;
    snprintf(path, sizeof path, "/proc/%d/limits", daemon);
    FILE *file = daemon > 0 ? fopen(path, "re") : NULL;
    while (file && hard < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "Max open files %*s %lld", &hard) != 1)
            hard = -1;
    if (file)
        fclose(file);
    if (hard < 0 && getrlimit(RLIMIT_NOFILE, &own) == 0)
        hard = own.rlim_max > INT64_MAX ? INT64_MAX : (long long)own.rlim_max;
    return hard;
}

static double
limits_read_mib(const char *group, const char *name)
{
    char path[PATH_MAX + 64];
    long long bytes = -1;
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/%s", group, name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%lld", &bytes) != 1)
        bytes = -1;
    if (file)
        fclose(file);
    return bytes < 0 ? -1 : (double)bytes / (1 << 20);
}

/* Returns the smallest memory limit of the daemon's control groups and the machine. */
static double
limits_memory_mib(int daemon)
{
    char path[64], line[PATH_MAX];
    double min_mib = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
    snprintf(path, sizeof path, daemon > 0 ? "/proc/%d/cgroup" : "/proc/self/cgroup", daemon);
    FILE *file = fopen(path, "re");
    char *group = NULL;
    while (file && !group && fgets(line, sizeof line, file))
        if (strncmp(line, "0::", 3) == 0)
            group = line + 3;
    if (file)
        fclose(file);
    if (group)
        group[strcspn(group, "\n")] = '\0';
    while (group) {
        const double allowed = limits_read_mib(group, "memory.max");
        min_mib = allowed >= 0 && allowed < min_mib ? allowed : min_mib;
        char *const slash = strrchr(group, '/');
        if (!slash || !*group)
            break;
        *slash = '\0';
    }
    return min_mib;
}

void
doctor_check_limits(struct examination *examination)
{
    const struct doctor *doctor = examination->doctor;
    const struct conf *conf = doctor->conf;
    const int64_t files = limits_files(doctor->daemon_pid);
    const int64_t wanted = FILES_OF_PROCESS + FILES_PER_PEER * (int64_t)conf->dicom.max_associations;
    const double memory = limits_memory_mib(doctor->daemon_pid);
    const double wanted_mib = conf->jobs.memory_mib * conf->compute.lanes;
    if (files >= 0 && files < wanted)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "%" PRId64 " open files are allowed, but %d associations may need %" PRId64
                    ": raise LimitNOFILE= of the unit, or ulimit -Hn",
                    files, conf->dicom.max_associations, wanted);
    if (wanted_mib > memory)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "jobs may use %.0f MiB (jobs.memory_mib times compute.lanes), but only %.0f "
                    "MiB are available: lower these options, or raise MemoryMax= of the unit",
                    wanted_mib, memory);
    doctor_fine(examination, "%" PRId64 " open files, %.1f GiB of memory", files, memory / 1024);
}

/* ------------------------------------------------------------------------- confinement ---- */

void
doctor_check_confinement(struct examination *examination)
{
    const long landlock = confine_landlock();
    if (landlock < LANDLOCK_WITH_RENAME)
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the kernel has %s Landlock, so child processes can access all files of the "
                    "service's user: boot with lsm=landlock,... or a kernel from 5.19 on",
                    landlock ? "an early" : "no");
    if (!call_filter_possible())
        doctor_find(examination, DOCTOR_ATTENTION,
                    "the kernel has no seccomp, so child processes can use all system calls: use a "
                    "kernel with CONFIG_SECCOMP_FILTER");
    doctor_fine(examination, "seccomp, and Landlock version %ld", landlock);
}
