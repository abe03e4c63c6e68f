/*
 * program_input.c - writes the input of a program: the volume that jobs compute on, as real-world values, or the
 * instances of the stack.
 */
#include "service/pipeline/program/program_source.h"

#include "base/durable.h"
#include "base/error.h"
#include "service/common/file_ops.h"
#include "service/common/program/program_words.h"
#include "service/pipeline/decode.h"
#include "service/pipeline/real_volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------ the volume -- */

/* Begins the volume of the files in the lane, and decodes it. */
static int
input_decode(struct program_source *source, struct kernels_lane *lane, int threads, const void **voxels,
             struct error *error)
{
    const struct geometry_stack *stack = source->volume.stack;
    struct grid *grid = &source->volume.grid;
    const struct image_extent extent = {stack->columns, stack->rows, stack->plane_count};
    const struct kernels_demand demand = {.of = {[KERNELS_RESAMPLE] = grid->straight ? &grid->demand : NULL}};
    struct decode_request request = {.instances = source->headers.instances,
                                     .stack = stack,
                                     .lane = lane,
                                     .threads = threads,
                                     .channel = (enum dicom_channel)source->pipeline->colour};
    int rc = kernels_volume_begin(lane, extent, stack->pixel, &demand, &request.voxels, error);
    if (rc == 0)
        rc = decode_stack(&request, error);
    if (rc == 0 && grid->straight)
        rc = grid_resample(grid, lane, request.voxels, 0, error);
    *voxels = grid->straight ? grid->voxels : request.voxels;
    return rc;
}

static int
input_write_decoded(const struct grid *grid, const void *voxels, const struct conf_program *program, int folder,
                    struct error *error)
{
    struct real_volume volume = real_volume_of(grid, voxels);
    char *name = program_file_name(program->input_file);
    const int rc = name ? volume_write(folder, name, program->input == CONF_NRRD ? VOLUME_NRRD : VOLUME_NIFTI,
                                       &volume.box, volume.type, volume.fill, &volume, error)
                        : error_set_system(error, -ENOMEM, "name the input");
    free(name);
    return rc;
}

static int
input_write_volume(struct program_source *source, const struct conf_program *program, int threads, int folder,
                   struct error *error)
{
    const struct kernels_device_options options = {.backend = "cpu", .threads = threads};
    struct kernels_device *device;
    struct kernels_lane *lane;
    const void *voxels;
    int rc = kernels_device_open(&options, &device, error);
    if (rc)
        return rc;
    rc = kernels_lane_open(device, &lane, error);
    if (rc == 0) {
        rc = input_decode(source, lane, threads, &voxels, error);
        if (rc == 0)
            rc = input_write_decoded(&source->volume.grid, voxels, program, folder, error);
        kernels_lane_close(lane);
    }
    kernels_device_close(device);
    return rc;
}

/* --------------------------------------------------------------------------- the instances -- */

static int
input_copy(const char *path, int folder, const char *name)
{
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const int to = from < 0 ? -1 : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    bool read_failed;
    int rc = to < 0 ? -errno : file_copy(from, to, &read_failed);
    if (to >= 0 && close(to) && rc == 0)
        rc = -errno;
    if (from >= 0)
        close(from);
    return rc;
}

/* Copies the instances of the stack in the order of its slices. A link would let a container change the originals. */
static int
input_copy_instances(const struct program_source *source, int folder, struct error *error)
{
    const struct geometry_stack *stack = source->volume.stack;
    char name[32];
    int count = 0, rc = 0;
    bool *copied = calloc(source->headers.count, sizeof *copied);
    if (!copied)
        return error_set_system(error, -ENOMEM, "copy the instances");
    for (int32_t z = 0; z < stack->plane_count && rc == 0; z++) {
        const int32_t instance = stack->planes[z].instance;
        if (copied[instance])
            continue;
        copied[instance] = true;
        snprintf(name, sizeof name, "%06d.dcm", ++count);
        rc = input_copy(source->headers.instances[instance]->path, folder, name);
        if (rc)
            error_set_system(error, rc, "copy the instances of the series for a program");
    }
    free(copied);
    return rc;
}

/* Writes the file that modules of mercure read. */
static int
input_write_task(int folder, struct error *error)
{
    static const char task[] = "{\"id\":\"case\",\"process\":{\"settings\":{}}}\n";
    const int fd = openat(folder, "task.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
    int rc = fd < 0 ? -errno : durable_write_all(fd, task, sizeof task - 1);
    if (fd >= 0 && close(fd) && rc == 0)
        rc = -errno;
    return rc ? error_set_system(error, rc, "write task.json") : 0;
}

int
program_write_input(const struct program_order *order, const struct conf_program *program, int work,
                    struct error *error)
{
    struct program_source source;
    int rc = mkdirat(work, "in", 0750) == 0 || errno == EEXIST ? 0 : -errno;
    const int folder = rc ? -1 : openat(work, "in", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return error_set_system(error, rc ? rc : -errno, "make the input folder of a program");
    rc = program_source_open(order, &source, error);
    if (rc == 0 && program->input == CONF_DICOM)
        rc = input_copy_instances(&source, folder, error);
    else if (rc == 0)
        rc = input_write_volume(&source, program, order->threads, folder, error);
    if (rc == 0 && program->task_file)
        rc = input_write_task(folder, error);
    program_source_close(&source);
    close(folder);
    return rc;
}
