/* fake_gpus.c - see fake_gpus.h. */
#include "service/worker/fake_gpus.h"

#ifdef NOCTULE_CRASH_POINTS

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_gpu {
    char *file;
    atomic_int jobs;
};

static const char *
folder(void)
{
    const char *named = getenv("NOCTULE_FAKE_GPUS");
    return named && *named ? named : NULL;
}

bool
fake_gpus_in_use(void)
{
    return folder() != NULL;
}

static int
is_gpu(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* A line of its file; false when there is none. */
static bool
read_line(const char *path, int number, char *line, int size)
{
    FILE *file = fopen(path, "r");
    bool read = file != NULL;
    *line = '\0';
    for (int i = 0; i <= number && read; i++)
        read = fgets(line, size, file) != NULL || i == 0;
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return read;
}

static void
describe(const char *name, int index, struct kernels_gpu *gpu)
{
    char path[512], state[32];
    snprintf(path, sizeof path, "%s/%s", folder(), name);
    *gpu = (struct kernels_gpu){.index = index, .name = "made up", .memory_bytes = 1 << 30};
    snprintf(gpu->uuid, sizeof gpu->uuid, "%.47s", name);
    read_line(path, 1, gpu->pci, sizeof gpu->pci);
    if (read_line(path, 0, state, sizeof state) && strcmp(state, "deadly") == 0)
        raise(SIGKILL);
}

int
fake_gpus_list(struct kernels_gpu *gpus, int capacity)
{
    struct dirent **entries;
    int count = scandir(folder(), &entries, is_gpu, alphasort);
    if (count < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        if (i < capacity)
            describe(entries[i]->d_name, i, &gpus[i]);
        free(entries[i]);
    }
    free(entries);
    return count;
}

int
fake_gpu_open(const char *uuid, struct fake_gpu **out, struct error *error)
{
    char state[32];
    struct fake_gpu *gpu = calloc(1, sizeof *gpu);
    int rc = -ENOMEM;
    if (gpu && asprintf(&gpu->file, "%s/%s", folder(), uuid) >= 0)
        rc = !read_line(gpu->file, 0, state, sizeof state) ? -ENODEV
             : strncmp(state, "broken", 6) == 0            ? -EIO
                                                           : 0;
    if (rc) {
        fake_gpu_close(gpu);
        return error_set(error, rc, CODE_COMPUTE_DEVICE_LOST, "the made-up GPU %s: %s", uuid,
                         strerror(-rc));
    }
    *out = gpu;
    return 0;
}

bool
fake_gpu_fails(struct fake_gpu *gpu)
{
    char state[32];
    int at;
    int job = atomic_fetch_add(&gpu->jobs, 1) + 1;
    return !read_line(gpu->file, 0, state, sizeof state) ||
           (sscanf(state, "lost %d", &at) == 1 && job >= at);
}

void
fake_gpu_close(struct fake_gpu *gpu)
{
    if (gpu)
        free(gpu->file);
    free(gpu);
}

#endif
