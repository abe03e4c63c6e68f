#include "service/pipeline/image_file.h"

#include "base/error.h"
#include "base/text.h"
#include "dicom/value/uid.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/volume/mask_file.h"
#include "service/common/volume/volume_grid.h"
#include "service/pipeline/volume_source.h"

#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const image_endings[] = {".nii", ".nii.gz", ".hdr", ".nrrd", ".nhdr"};

bool
image_file_is_named(const char *name)
{
    bool is_named = false;
    for (size_t i = 0; i < sizeof image_endings / sizeof image_endings[0]; i++)
        is_named |= text_ends_in(name, image_endings[i]);
    return is_named;
}

bool
image_file_is(const struct dicom_instance *instance)
{
    return !instance->transfer_syntax_uid[0];
}

/* Replaces a code about the output of a program, which is another file, and names the file. */
static int
image_name_error(const char *path, int rc, struct error *error)
{
    char message[sizeof error->message];
    if (rc == 0 || error->code == CODE_OUT_OF_MEMORY || error->code == CODE_FILE_UNREADABLE ||
        error->code == CODE_IMAGE_FILE_VALUES)
        return rc;
    memcpy(message, error->message, sizeof message);
    return error_set_files(error, rc, CODE_IMAGE_FILE_UNREADABLE, path, NULL, "%s", message);
}

/* Opens the folder of a file, in which its voxels may be in another file. */
static int
image_open_folder(const char *path, struct error *error)
{
    char *folder = strdup(path);
    if (!folder)
        return error_set_system(error, -ENOMEM, "open the folder of an image");
    const int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -errno;
    free(folder);
    return fd >= 0 ? fd
                   : error_set_files(error, rc, CODE_FILE_UNREADABLE, path, NULL,
                                     "the folder of an image cannot be opened: %s", strerror(-rc));
}

static int
image_read_header(const char *path, struct volume_header *header, struct error *error)
{
    const enum volume_format format =
        text_ends_in(path, ".nrrd") || text_ends_in(path, ".nhdr") ? VOLUME_NRRD : VOLUME_NIFTI;
    const int folder = image_open_folder(path, error);
    if (folder < 0)
        return folder;
    const int rc = volume_read_header(folder, text_base_name(path), format, header, error);
    close(folder);
    return image_name_error(path, rc, error);
}

static int
image_read_voxels(const char *path, const struct volume_header *header, volume_take *take,
                  volume_take_block *take_block, void *context, struct error *error)
{
    const int folder = image_open_folder(path, error);
    if (folder < 0)
        return folder;
    const int rc = take ? volume_read(folder, text_base_name(path), header, take, context, error)
                        : volume_read_blocks(folder, text_base_name(path), header, take_block, context, error);
    close(folder);
    return image_name_error(path, rc, error);
}

/* -------------------------------------------------------------------------------- values ---- */

/* Returns whether the stored values of the file are those of the instance. */
static bool
image_keeps_values(enum volume_type type)
{
    return type == VOLUME_UINT8 || type == VOLUME_INT8 || type == VOLUME_UINT16 || type == VOLUME_INT16;
}

struct image_values {
    const char *path;
    double lowest, highest;
    bool whole, has_none;
};

static int
image_take_range(void *context, int64_t first, const double *block, int64_t count, struct error *error)
{
    struct image_values *values = context;
    for (int64_t i = 0; i < count; i++) {
        const double value = block[i];
        values->has_none = values->has_none || isnan(value);
        if (isinf(value))
            return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_VALUES, values->path, NULL,
                                   "voxel %" PRId64 " of the file is not a finite number", first + i);
        values->whole = values->whole && value == rint(value);
        values->lowest = value < values->lowest ? value : values->lowest;
        values->highest = value > values->highest ? value : values->highest;
    }
    return 0;
}

/* Whether the values of a file are reals, and some of them NAN. */
struct image_reals {
    bool any, has_none;
};

/* Chooses the type of the stored values, and their rescale. */
static int
image_choose_pixel(const char *path, const struct volume_header *header, enum image_pixel *pixel,
                   struct image_rescale *rescale, struct image_reals *reals, struct error *error)
{
    struct image_values values = {path, INFINITY, -INFINITY, true, false};
    *reals = (struct image_reals){false, false};
    *rescale = (struct image_rescale){header->slope, header->intercept};
    *pixel = header->type == VOLUME_UINT8 ? IMAGE_UINT8 : header->type == VOLUME_UINT16 ? IMAGE_UINT16 : IMAGE_INT16;
    if (image_keeps_values(header->type))
        return 0;
    const int rc = image_read_voxels(path, header, NULL, image_take_range, &values, error);
    if (rc)
        return rc;
    *pixel = values.lowest < 0 ? IMAGE_INT16 : IMAGE_UINT16;
    const struct image_range range = image_pixel_range(*pixel);
    *rescale = (struct image_rescale){1, 0};
    if (values.whole && !values.has_none && values.lowest >= range.lo && values.highest <= range.hi)
        return 0;
    *pixel = IMAGE_UINT16;
    *reals = (struct image_reals){true, values.has_none};
    *rescale = (struct image_rescale){(values.highest - values.lowest) / UINT16_MAX, values.lowest};
    if (isfinite(rescale->slope) && rescale->slope >= DBL_MIN)
        return 0;
    return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_VALUES, path, NULL,
                           "the values of the file range from %.9g to %.9g, which is too large or too small a range",
                           values.lowest, values.highest);
}

/* Returns the use of values beyond the segments by a group of texture; NULL: none. */
static const char *
image_needs_others(const struct texture_options *options)
{
    return options->regions & CONF_VOLUME ? "the volume is measured"
           : options->resample            ? "it is resampled"
           : options->filter              ? "it is filtered"
           : options->normalise           ? "it is normalised"
           : options->voxelwise           ? "maps of features use neighbours of a region"
           : options->response            ? "responses have the whole volume"
                                          : NULL;
}

int
image_file_keep_reals(const struct conf_pipeline *pipeline, struct grid *grid, struct error *error)
{
    const char *path = grid->source_instances[0]->path, *why = grid->straight ? "it is tilted or uneven" : NULL;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        why = pipeline->segments[i].method != CONF_PROGRAM ? "a segment is found by its values"
              : pipeline->segments[i].quantities           ? "quantities are measured on stored values"
                                                           : why;
    for (size_t g = 0; g < pipeline->texture_count; g++)
        why = !grid_is_real(&pipeline->texture[g], grid) ? "texture is measured on stored values" : why;
    if (why)
        return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_VALUES, path, NULL,
                               "the image needs whole numbers of 16 bits, because %s", why);
    for (size_t g = 0; g < pipeline->texture_count && grid->source_instances[0]->has_none && !why; g++)
        why = image_needs_others(&pipeline->texture[g]);
    if (why)
        return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_VALUES, path, NULL,
                               "voxels of the image are not a finite number, and %s", why);
    return grid_reserve_reals(grid) ? error_set_system(error, -ENOMEM, "hold the values of an image") : 0;
}

int
image_file_check_region(const struct grid *grid, const uint64_t *bits, const char *label, struct error *error)
{
    const int64_t columns = grid->stack->columns, rows = grid->stack->rows;
    for (int64_t i = 0; i < columns * rows * grid->stack->plane_count; i++)
        if (isnan(grid->reals[i]) && image_has(bits, columns, i / columns, i % columns))
            return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_VALUES, grid->source_instances[0]->path, NULL,
                                   "voxel %" PRId64 ", %" PRId64 ", %" PRId64 " of \"%s\" is not a finite number",
                                   i % columns, i / columns % rows,
                                   (int64_t)grid->stack->planes[i / columns / rows].frame, label);
    return 0;
}

/* -------------------------------------------------------------------------------- header ---- */

static void
image_fill_frame(const struct volume_header *header, struct image_rescale rescale, int64_t z, struct dicom_frame *frame)
{
    const double *to_mm = header->grid.to_mm;
    double length[2] = {0, 0};
    for (int axis = 0; axis < 2; axis++)
        length[axis] =
            sqrt(to_mm[axis] * to_mm[axis] + to_mm[4 + axis] * to_mm[4 + axis] + to_mm[8 + axis] * to_mm[8 + axis]);
    for (int row = 0; row < 3; row++) {
        frame->position[row] = to_mm[4 * row + 3] + (double)z * to_mm[4 * row + 2];
        for (int axis = 0; axis < 2; axis++)
            frame->orientation[3 * axis + row] = to_mm[4 * row + axis] / length[axis];
    }
    frame->pixel_spacing[0] = length[1];
    frame->pixel_spacing[1] = length[0];
    frame->has_position = frame->has_orientation = frame->has_spacing = frame->has_rescale = true;
    frame->slope = rescale.slope;
    frame->intercept = rescale.intercept;
}

/* Checks the axes as the reader of DICOM does. */
static int
image_check_grid(const char *path, const struct volume_header *header, struct error *error)
{
    const int64_t *size = header->grid.size;
    struct dicom_frame frame = {0};
    image_fill_frame(header, (struct image_rescale){1, 0}, 0, &frame);
    const double *row = frame.orientation, *column = row + 3;
    if (size[0] > UINT16_MAX || size[1] > UINT16_MAX || size[2] > UINT16_MAX)
        return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_UNREADABLE, path, NULL,
                               "the file has more than %d voxels along an axis", UINT16_MAX);
    if (fabs(row[0] * column[0] + row[1] * column[1] + row[2] * column[2]) > 1e-3)
        return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_UNREADABLE, path, NULL,
                               "rows and columns of the file are not at right angles");
    return 0;
}

static int
image_fill_instance(const char *path, int32_t number, const struct volume_header *header, enum image_pixel pixel,
                    struct image_rescale rescale, struct dicom_instance *instance)
{
    const int64_t frames = header->grid.size[2];
    char of[24];
    snprintf(of, sizeof of, "%" PRId32, number);
    const char *const series[] = {"image file", path, of, NULL}, *const image[] = {"image", path, of, NULL};
    instance->path = strdup(path);
    instance->frames = calloc((size_t)frames, sizeof *instance->frames);
    if (!instance->path || !instance->frames)
        return -ENOMEM;
    for (int64_t z = 0; z < frames; z++)
        image_fill_frame(header, rescale, z, &instance->frames[z]);
    snprintf(instance->modality, sizeof instance->modality, "OT");
    snprintf(instance->series_description, sizeof instance->series_description, "%s", text_base_name(path));
    text_utf8_mend_end(instance->series_description);
    instance->series_number = number;
    instance->instance_number = 1;
    instance->columns = (int32_t)header->grid.size[0];
    instance->rows = (int32_t)header->grid.size[1];
    instance->frame_count = (int32_t)frames;
    instance->multi_frame = true;
    instance->pixel = pixel;
    instance->bits_allocated = instance->bits_stored = pixel == IMAGE_UINT8 ? 8 : 16;
    instance->high_bit = instance->bits_stored - 1;
    instance->is_signed = pixel == IMAGE_INT16;
    instance->pixel_offset = -1;
    const int rc = uid_from_texts(instance->series_uid, series);
    memcpy(instance->study_uid, instance->series_uid, sizeof instance->study_uid);
    memcpy(instance->frame_of_reference_uid, instance->series_uid, sizeof instance->frame_of_reference_uid);
    return rc ? rc : uid_from_texts(instance->sop_instance_uid, image);
}

int
image_file_peek(const char *path, int32_t number, struct dicom_instance **instance, struct error *error)
{
    struct volume_header header;
    struct image_rescale rescale;
    enum image_pixel pixel;
    struct image_reals reals;
    *instance = NULL;
    int rc = image_read_header(path, &header, error);
    if (rc == 0)
        rc = image_check_grid(path, &header, error);
    if (rc == 0)
        rc = image_choose_pixel(path, &header, &pixel, &rescale, &reals, error);
    if (rc)
        return rc;
    struct dicom_instance *made = calloc(1, sizeof *made);
    if (!made || image_fill_instance(path, number, &header, pixel, rescale, made)) {
        dicom_instance_free(made);
        return error_set_system(error, -ENOMEM, "read the header of an image");
    }
    made->has_reals = reals.any;
    made->has_none = reals.has_none;
    *instance = made;
    return 0;
}

int
image_file_digest(const char *path, char digest[DICOM_UID_SIZE], struct error *error)
{
    struct digest of;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rc = fd < 0 ? -errno : digest_file(fd, -1, &of, NULL);
    if (fd >= 0)
        close(fd);
    if (rc == 0)
        rc = uid_from_texts(digest, (const char *const[]){"image file", of.sha256, NULL});
    return rc ? error_set_system(error, rc, "read an image") : 0;
}

/* -------------------------------------------------------------------------------- voxels ---- */

struct image_decoding {
    void *voxels;
    enum image_pixel pixel;
    int64_t plane_voxels;
    int32_t *plane_of; /* of each slice of the file; -1: not in the stack */
    double *reals;     /* NULL: the image has none */
    bool has_none;     /* reals may be NAN: the lowest value is stored */
    struct image_rescale rescale;
};

/* Returns the value, which is within the range of 16 bits, rounded as rint() does. */
static double
image_nearest(double value)
{
    return value + 0x1.8p52 - 0x1.8p52;
}

/* Stores values from a voxel of the stack on. The file may have changed since its range was found: returns whether no value was
 * cut off. */
static bool
image_store(const struct image_decoding *decoding, int64_t first, const double *values, int64_t count)
{
    const struct image_range range = image_pixel_range(decoding->pixel);
    const double lo = range.lo, hi = range.hi;
    uint8_t *const bytes = (uint8_t *)decoding->voxels + first;
    uint16_t *const words = (uint16_t *)decoding->voxels + first;
    int others = 0; /* values that are cut off: no branches, so that loops take vectors */
    if (decoding->reals) {
        memcpy(decoding->reals + first, values, (size_t)count * sizeof *values);
        for (int64_t i = 0; i < count; i++) {
            const double value = image_nearest((values[i] - decoding->rescale.intercept) / decoding->rescale.slope);
            const int32_t whole = (int32_t)(value > lo ? value < hi ? value : hi : lo);
            others |= (whole != value) & !(decoding->has_none & (value != value));
            words[i] = (uint16_t)whole;
        }
        return others == 0;
    }
    for (int64_t i = 0; i < count && decoding->pixel != IMAGE_UINT8; i++) {
        const int32_t whole = (int32_t)(values[i] > lo ? values[i] < hi ? values[i] : hi : lo);
        others |= whole != values[i];
        words[i] = (uint16_t)whole;
    }
    for (int64_t i = 0; i < count && decoding->pixel == IMAGE_UINT8; i++) {
        const int32_t whole = (int32_t)(values[i] > lo ? values[i] < hi ? values[i] : hi : lo);
        others |= whole != values[i];
        bytes[i] = (uint8_t)whole;
    }
    return others == 0;
}

static int
image_take_voxels(void *context, int64_t first, const double *values, int64_t count, struct error *error)
{
    struct image_decoding *decoding = context;
    for (int64_t run; count > 0; first += run, values += run, count -= run) {
        const int64_t slice = first / decoding->plane_voxels, end = (slice + 1) * decoding->plane_voxels;
        const int64_t shift = (decoding->plane_of[slice] - slice) * decoding->plane_voxels;
        run = count < end - first ? count : end - first;
        if (decoding->plane_of[slice] >= 0 && !image_store(decoding, first + shift, values, run))
            return error_set(error, -EIO, CODE_FILE_UNREADABLE, "the image changed while it was read");
    }
    return 0;
}

int
image_file_decode(const struct decode_request *request, struct error *error)
{
    const struct geometry_stack *stack = request->stack;
    const struct dicom_instance *instance = request->instances[stack->planes[0].instance];
    struct image_decoding decoding = {.voxels = request->voxels,
                                      .pixel = stack->pixel,
                                      .plane_voxels = (int64_t)stack->columns * stack->rows,
                                      .reals = request->reals,
                                      .has_none = instance->has_none,
                                      .rescale = {instance->frames[0].slope, instance->frames[0].intercept},
                                      .plane_of = calloc((size_t)instance->frame_count, sizeof *decoding.plane_of)};
    struct volume_header header;
    if (!decoding.plane_of)
        return error_set_system(error, -ENOMEM, "decode an image");
    for (int32_t i = 0; i < instance->frame_count; i++)
        decoding.plane_of[i] = -1;
    for (int32_t z = 0; z < stack->plane_count; z++)
        decoding.plane_of[stack->planes[z].frame] = z;
    int rc = image_read_header(instance->path, &header, error);
    const int64_t *size = header.grid.size;
    if (rc == 0 && (size[0] != instance->columns || size[1] != instance->rows || size[2] != instance->frame_count))
        rc = error_set(error, -EIO, CODE_FILE_UNREADABLE, "the image changed while it was read");
    if (rc == 0 && image_keeps_values(header.type)) {
        header.slope = 1;
        header.intercept = 0;
    }
    if (rc == 0)
        rc = image_read_voxels(instance->path, &header, NULL, image_take_voxels, &decoding, error);
    free(decoding.plane_of);
    return rc ? rc : kernels_volume_ready(request->lane, 0, stack->plane_count, error);
}

/* ---------------------------------------------------------------------------------- mask ---- */

struct image_mask_reading {
    const int64_t *size; /* of the file */
    struct volume_walk walk;
    int label;
    uint16_t *map;
    int64_t voxels;
};

static int
image_take_label(void *context, int64_t first, double value, int64_t count, struct error *error)
{
    struct image_mask_reading *reading = context;
    const int64_t columns = reading->size[0], rows = reading->size[1], *stride = reading->walk.stride;
    (void)error;
    for (int64_t i = first; value == reading->label && i < first + count; i++)
        reading->map[reading->walk.first + i % columns * stride[0] + i / columns % rows * stride[1] +
                     i / columns / rows * stride[2]] = 1;
    reading->voxels += value == reading->label ? count : 0;
    return 0;
}

int
image_file_write_mask(const char *path, int label, const struct grid *grid, int folder, const char *name,
                      char sha256[65], struct error *error)
{
    const struct volume_grid box = volume_source_box(grid);
    struct volume_header header;
    struct image_mask_reading reading = {.size = header.grid.size, .label = label};
    struct mask_label_list labels = {0};
    char why[160], unused[160];
    int64_t size;
    int rc = image_read_header(path, &header, error);
    if (rc)
        return rc;
    if (!volume_grid_same(&header.grid, &box, &reading.walk, why))
        return error_set_files(error, -EINVAL, CODE_IMAGE_FILE_GRID, path, NULL,
                               "the mask is not on the grid of its image: %s", why);
    /* Voxels come in the order of the file: the walk must lead from them to the grid of the image. */
    volume_grid_same(&box, &header.grid, &reading.walk, unused);
    reading.map = calloc((size_t)(box.size[0] * box.size[1] * box.size[2]), sizeof *reading.map);
    rc = reading.map ? image_read_voxels(path, &header, image_take_label, NULL, &reading, error)
                     : error_set_system(error, -ENOMEM, "hold a mask");
    if (rc == 0 && reading.voxels == 0)
        rc = error_set_files(error, -EINVAL, CODE_IMAGE_FILE_NO_LABEL, path, NULL, "no voxel of the mask is %d", label);
    if (rc == 0)
        rc = mask_file_write(folder, name, &box, 1, reading.map, &size, sha256, &labels, error);
    free(labels.items);
    free(reading.map);
    return rc;
}
