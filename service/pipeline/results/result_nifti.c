/*
 * result_nifti.c - the result "nifti": volume.nii.gz, labels.nii.gz and labels.json, as rows (row.h).
 *
 * Volume and labels are on the grid of the masks, with the same affine. Values are real-world values. A label is the
 * number that its segment has in a SEG.
 */
#include "service/pipeline/results/row.h"

#include "base/durable.h"
#include "base/error.h"
#include "base/text.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_grid.h"
#include "service/common/volume/volume_stream.h"
#include "service/pipeline/measure/measure.h"
#include "service/pipeline/real_volume.h"
#include "service/pipeline/volume_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t
nifti_wanted(const struct results *results)
{
    return (results->request->pipeline->results & CONF_RESULT_NIFTI) != 0;
}

/* ----------------------------------------------------------------------------- reading back -- */

/* Skips the header, and compares all voxels. Returns 1 if they are the same, 0 if not, or -errno. */
static int
nifti_compare(struct volume_stream *stream, const struct volume_header *header, const struct nifti_file *file,
              struct error *error)
{
    const size_t size = (size_t)(file->box->size[0] * file->box->size[1]) * volume_type_size(file->type);
    uint8_t *expected = malloc(size), *found = malloc(size);
    int rc = expected && found ? volume_stream_begin(stream, header->stream_offset, header->gzip, error)
                               : error_set_system(error, -ENOMEM, "read back a volume");
    int64_t skip = header->data_offset;
    while (rc == 0 && skip > 0) {
        const size_t count = (size_t)skip < size ? (size_t)skip : size;
        const ssize_t got = volume_stream_read(stream, found, count, error);
        rc = got < 0 ? (int)got : got == 0 ? -EBADMSG : 0;
        skip -= got;
    }
    bool same = true;
    for (int64_t z = 0; rc == 0 && same && z < file->box->size[2]; z++) {
        const ssize_t got = volume_stream_read(stream, found, size, error);
        file->fill(file->context, z, expected);
        rc = got < 0 ? (int)got : 0;
        same = got == (ssize_t)size && memcmp(expected, found, size) == 0;
    }
    if (rc == 0 && same)
        same = volume_stream_read(stream, found, 1, error) == 0;
    free(expected);
    free(found);
    return rc ? rc : same;
}

/* Compares a file with its content; `hidden` is its name in the folder while it is written. */
static int
nifti_verify(const struct nifti_file *file, int folder, const char *hidden, const char *name, struct error *error)
{
    const int64_t *size = file->box->size;
    struct volume_header header;
    struct volume_stream *stream;
    struct volume_walk walk = {0};
    struct error cause;
    char why[160] = "";
    int rc = volume_read_header(folder, hidden, VOLUME_NIFTI, &header, &cause);
    if (rc)
        return error_set(error, rc == -ENOMEM ? rc : -EBADMSG, CODE_NIFTI_MISMATCH, "%s cannot be read back: %s", name,
                         cause.message);
    const bool same_grid = volume_grid_same(&header.grid, file->box, &walk, why) && walk.first == 0 &&
                           walk.stride[0] == 1 && walk.stride[1] == size[0] && walk.stride[2] == size[0] * size[1];
    if (!same_grid || header.type != file->type || header.slope != 1 || header.intercept != 0)
        return error_set(error, -EBADMSG, CODE_NIFTI_MISMATCH, "%s has another grid or type of values than written. %s",
                         name, why);
    rc = volume_stream_open(folder, hidden, &stream, &cause);
    if (rc == 0) {
        rc = nifti_compare(stream, &header, file, &cause);
        volume_stream_close(stream);
    }
    if (rc == 1)
        return 0;
    return error_set(error, rc == -ENOMEM ? rc : -EBADMSG, CODE_NIFTI_MISMATCH, "%s has other voxels than written%s%s",
                     name, rc ? ": " : "", rc ? cause.message : "");
}

/* Writes the file, or reads it back. */
int
result_nifti_make(const struct results *results, const struct nifti_file *content, const struct result_file *file)
{
    struct error *error = &results->report->error;
    if (!file->path)
        return volume_write_to(file->fd, VOLUME_NIFTI, VOLUME_GZIP, content->box, content->type, content->fill,
                               content->context, results->request->threads, error);
    const char *hidden = text_base_name(file->path);
    char *path = strndup(file->path, (size_t)(hidden - file->path));
    const int folder = path ? open(path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    const int rc = folder >= 0 ? nifti_verify(content, folder, hidden, file->name, error)
                               : error_set_system(error, path ? -errno : -ENOMEM, "read back a volume");
    if (folder >= 0)
        close(folder);
    free(path);
    return rc;
}

/* ------------------------------------------------------------------------------- the volume -- */

int
nifti_make_volume(const struct results *results, struct result_file *file)
{
    struct real_volume volume = real_volume_of(results->request->grid, results->request->voxels);
    return result_nifti_make(results, &(struct nifti_file){&volume.box, volume.type, volume.fill, &volume}, file);
}

/* ------------------------------------------------------------------------------- the labels -- */

struct nifti_labels {
    const struct results *results;
    struct volume_grid box;
    enum volume_type type; /* uint8 if it has room for all numbers, else uint16 */
    /* the first voxel in two segments */
    size_t first, second; /* numbers; 0: no such voxel */
    int64_t at[3];
};

/* Puts the number of a segment into a voxel, and returns the number before. */
static size_t
nifti_put_label(enum volume_type type, void *values, int64_t at, size_t number)
{
    uint8_t *const bytes = values;
    uint16_t *const words = values;
    const size_t before = type == VOLUME_UINT8 ? bytes[at] : words[at];
    if (type == VOLUME_UINT8)
        bytes[at] = (uint8_t)number;
    else
        words[at] = (uint16_t)number;
    return before;
}

static void
labels_fill(void *context, int64_t z, void *values)
{
    struct nifti_labels *labels = context;
    const int64_t columns = labels->box.size[0], rows = labels->box.size[1];
    memset(values, 0, (size_t)(columns * rows) * volume_type_size(labels->type));
    for (size_t number = 1; number <= labels->results->segment_count; number++) {
        const struct image_mask *mask = labels->results->preview_segments[number - 1].mask;
        for (int64_t word = 0; word < rows * mask->words_per_row; word++) {
            uint64_t bits = mask->bits[z * rows * mask->words_per_row + word];
            const int64_t y = word / mask->words_per_row;
            for (; bits != 0; bits &= bits - 1) {
                const int64_t x = word % mask->words_per_row * 64 + __builtin_ctzll(bits);
                const size_t before = nifti_put_label(labels->type, values, y * columns + x, number);
                if (before != 0 && labels->first == 0) {
                    labels->first = before;
                    labels->second = number;
                    memcpy(labels->at, (const int64_t[3]){x, y, z}, sizeof labels->at);
                }
            }
        }
    }
}

int
nifti_make_labels(const struct results *results, struct result_file *file)
{
    struct nifti_labels labels = {.results = results,
                                  .box = volume_source_box(results->request->grid),
                                  .type = results->segment_count <= UINT8_MAX ? VOLUME_UINT8 : VOLUME_UINT16};
    const int rc =
        result_nifti_make(results, &(struct nifti_file){&labels.box, labels.type, labels_fill, &labels}, file);
    if (rc || labels.first == 0 || results->request->pipeline->overlap == CONF_OVERLAP_LAST)
        return rc;
    return error_set(&results->report->error, -EINVAL, CODE_SEGMENTS_OVERLAP,
                     "Voxel (%" PRId64 ", %" PRId64 ", %" PRId64
                     ") is in the segments \"%s\" and \"%s\", and a label map has one label per voxel. Set overlap = "
                     "\"last\", change the segments, or write \"seg\".",
                     labels.at[0], labels.at[1], labels.at[2], results->segments[labels.first - 1].label,
                     results->segments[labels.second - 1].label);
}

/* --------------------------------------------------------------------------------- the list -- */

static void
list_put(const struct results *results, struct json *json)
{
    const struct results_request *request = results->request;
    json_begin_object(json, NULL);
    json_string(json, "unit", value_unit_of(request->headers->instances, request->stack));
    json_begin_array(json, "labels");
    for (size_t i = 0; i < results->segment_count; i++) {
        const struct seg_segment *segment = &results->segments[i];
        json_begin_object(json, NULL);
        json_integer(json, "number", (int64_t)i + 1);
        json_string(json, "name", segment->label);
        record_put_code(json, "category", &segment->category);
        record_put_code(json, "type", &segment->type);
        record_put_code(json, "modifier", &segment->modifier);
        record_put_code(json, "region", &segment->region);
        json_begin_row(json, "rgb");
        for (int c = 0; c < 3; c++)
            json_integer(json, NULL, (int64_t)lround(255 * segment->color_rgb[c]));
        json_end_row(json);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

int
nifti_make_list(const struct results *results, struct result_file *file)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc == 0) {
        struct json json = {.out = text.out};
        list_put(results, &json);
        rc = text_close(&text);
    }
    if (rc == 0)
        rc = durable_write_all(file->fd, text.bytes, text.size);
    free(text.bytes);
    return rc ? results_file_error(results->report, rc, "write", file->name) : 0;
}
