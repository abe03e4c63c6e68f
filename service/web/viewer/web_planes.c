#include "service/web/viewer/web_planes.h"

#include "base/limits.h"
#include "service/common/json.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLANE_HEAD = 72 };

struct plane_address {
    int64_t job;
    enum slices_view view; /* SLICES_VIEWS: none, the description of the file */
    int64_t at;
    bool is_png;
};

/* Reads a decimal number without leading zeros. Returns its end, or NULL. */
static const char *
plane_take_number(const char *text, int64_t *number)
{
    const size_t length = strspn(text, "0123456789");
    if (length == 0 || length > 9 || (text[0] == '0' && length > 1))
        return NULL;
    *number = strtoll(text, NULL, 10);
    return text + length;
}

static bool
plane_parse(const char *path, struct plane_address *address)
{
    static const char planes[] = "/planes";
    if (strncmp(path, WEB_PLANES_PATH, strlen(WEB_PLANES_PATH)) != 0)
        return false;
    const char *at = plane_take_number(path + strlen(WEB_PLANES_PATH), &address->job);
    if (!at || strncmp(at, planes, strlen(planes)) != 0)
        return false;
    at += strlen(planes);
    address->view = SLICES_VIEWS;
    if (!*at)
        return true;
    if (*at++ != '/')
        return false;
    for (enum slices_view view = 0; view < SLICES_VIEWS && address->view == SLICES_VIEWS; view++) {
        const size_t length = strlen(slices_view_keys[view]);
        if (strncmp(at, slices_view_keys[view], length) == 0 && at[length] == '/') {
            address->view = view;
            at = plane_take_number(at + length + 1, &address->at);
        }
    }
    address->is_png = at && strcmp(at, ".png") == 0;
    return address->view != SLICES_VIEWS && at && (address->is_png || !*at);
}

bool
web_planes_is_path(const char *path)
{
    struct plane_address address;
    return plane_parse(path, &address);
}

static int
planes_open_file(const struct web *web, int64_t job, int *fd, struct error *error)
{
    char *path;
    *fd = -1;
    if (asprintf(&path, "%s/" LAYOUT_OUTBOX "/%" PRId64 "/" SLICES_FILE, web->conf->root, job) < 0)
        return error_set_system(error, -ENOMEM, "read the slices");
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    const int failure = *fd < 0 ? -errno : 0;
    free(path);
    if (failure == -ENOENT)
        return error_set(error, -ENOENT, CODE_NONE,
                         "job %" PRId64 " has no slices: it was not under review, and page.slices is off, or it was "
                         "removed",
                         job);
    return failure ? error_set_system(error, failure, "read the slices") : 0;
}

int
web_planes_open(const struct web *web, int64_t job, int *fd, struct slices **file, struct error *error)
{
    *file = NULL;
    int rc = planes_open_file(web, job, fd, error);
    if (rc)
        return rc;
    rc = slices_open(*fd, file, error);
    if (rc) {
        close(*fd);
        *fd = -1;
    }
    return rc;
}

const struct image_rescale *
web_planes_rescales(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at, int32_t *count,
                    int *along)
{
    *count = 1;
    *along = 0;
    if (volume->rescale_count == 1)
        return volume->rescales;
    if (layout->through == 2)
        return &volume->rescales[layout->from_end ? volume->size[2] - 1 - at : at];
    *along = layout->down == 2 ? 1 : 2;
    *count = volume->rescale_count;
    return volume->rescales;
}

/* ------------------------------------------------------------------------------ description ---- */

/* Returns the spacing of an axis, or NAN if it is not known. */
static double
planes_mm(const struct slices_volume *volume, int axis)
{
    return volume->has_geometry || (volume->in_mm && axis < 2) ? volume->spacing[axis] : NAN;
}

static void
planes_put_view(const struct slices_volume *volume, enum slices_view view, struct json *json)
{
    const struct slices_layout layout = slices_layout_of(volume, view);
    char edges[4][4];
    slices_edges(volume, &layout, edges);
    json_begin_object(json, slices_view_keys[view]);
    json_integer(json, "count", volume->size[layout.through]);
    json_integer(json, "columns", volume->size[layout.across]);
    json_integer(json, "rows", volume->size[layout.down]);
    json_begin_row(json, "pixel_mm");
    json_number(json, NULL, planes_mm(volume, layout.across));
    json_number(json, NULL, planes_mm(volume, layout.down));
    json_end_row(json);
    json_number(json, "step_mm", planes_mm(volume, layout.through));
    json_begin_row(json, "edges"); /* left, right, top, bottom */
    for (int i = 0; i < 4; i++)
        json_string(json, NULL, edges[i]);
    json_end_row(json);
    json_end_object(json);
}

static void
planes_describe(const struct slices_volume *volume, FILE *out)
{
    struct json json = {.out = out};
    json_begin_object(&json, NULL);
    json_integer(&json, "file", volume->check);
    json_string(&json, "unit", volume->unit);
    json_number(&json, "error_max", slices_error(volume));
    json_boolean(&json, "monochrome1", volume->monochrome1);
    json_begin_object(&json, "window");
    json_number(&json, "low", volume->window[0]);
    json_number(&json, "high", volume->window[1]);
    json_end_object(&json);
    json_begin_array(&json, "segments");
    for (int32_t i = 0; i < volume->segment_count; i++) {
        const struct slices_segment *segment = &volume->segments[i];
        json_begin_object(&json, NULL);
        json_string(&json, "label", segment->label);
        json_begin_row(&json, "rgb");
        for (int c = 0; c < 3; c++)
            json_integer(&json, NULL, segment->rgb[c]);
        json_end_row(&json);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_begin_object(&json, "planes");
    for (enum slices_view view = 0; view < SLICES_VIEWS; view++)
        planes_put_view(volume, view, &json);
    json_end_object(&json);
    json_end_object(&json);
}

/* ----------------------------------------------------------------------------------- planes ---- */

/* Puts the plane and its head together. The machine is little endian (slices.h). */
static int
plane_pack(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
           const struct slices_plane *plane, struct web_reply *answer, struct error *error)
{
    int32_t count;
    int along;
    const struct image_rescale *rescales = web_planes_rescales(volume, layout, at, &count, &along);
    const bool reversed = along == 1 ? layout->from_below : layout->from_right;
    const size_t pixels = (size_t)plane->columns * (size_t)plane->rows;
    const size_t layer = (size_t)plane->rows * (size_t)((plane->columns + 7) / 8), layers = (size_t)plane->layer_count;
    const size_t head = (PLANE_HEAD + 16 * (size_t)count + 4 * layers + 7) / 8 * 8;
    const uint32_t numbers[8] = {
        (uint32_t)head,  volume->check,   (uint32_t)plane->columns, (uint32_t)plane->rows, volume->pixel == IMAGE_INT16,
        (uint32_t)count, (uint32_t)along, (uint32_t)layers};
    const size_t size = head + 2 * pixels + layers * layer;
    if (size > (size_t)LIMIT_PLANE_MIB << 20)
        return error_set(error, -EFBIG, CODE_NONE, "the plane is larger than %d MiB", LIMIT_PLANE_MIB);
    uint8_t *bytes = calloc(1, size);
    if (!bytes)
        return error_set_system(error, -ENOMEM, "make the plane");
    memcpy(bytes, "NOCTPLN1", 8);
    memcpy(bytes + 8, numbers, sizeof numbers);
    slices_place(volume, layout, at, (char *)bytes + 40);
    uint8_t *to = bytes + PLANE_HEAD;
    for (int32_t i = 0; i < count; i++, to += 16) {
        const struct image_rescale *rescale = &rescales[reversed && along ? count - 1 - i : i];
        memcpy(to, (const double[2]){rescale->slope, rescale->intercept}, 16);
    }
    memcpy(to, plane->layer_segments, 4 * layers);
    to = bytes + head;
    memcpy(to, plane->values, 2 * pixels);
    to += 2 * pixels;
    for (size_t i = 0; i < layers; i++, to += layer)
        memcpy(to, plane->layers[i], layer);
    answer->bytes = (char *)bytes;
    answer->size = size;
    answer->type = "application/octet-stream";
    return 0;
}

static int
plane_draw(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
           const struct slices_plane *plane, struct web_reply *answer, struct error *error)
{
    uint8_t *bytes;
    const int rc = web_plane_png(volume, layout, at, plane, &bytes, &answer->size);
    if (rc)
        return error_set_system(error, rc, "draw the plane");
    answer->bytes = (char *)bytes;
    answer->type = "image/png";
    return 0;
}

static int
plane_make(struct slices *file, const struct plane_address *address, struct web_reply *answer, struct error *error)
{
    const struct slices_volume *volume = slices_volume_of(file);
    const struct slices_layout layout = slices_layout_of(volume, address->view);
    const int64_t pixels = (int64_t)volume->size[layout.across] * volume->size[layout.down];
    struct slices_plane plane;
    if (address->at >= volume->size[layout.through])
        return error_set(error, -ENOENT, CODE_NONE, "there are %d such planes, from 0", volume->size[layout.through]);
    if (pixels > (int64_t)LIMIT_PLANE_MIB << 19)
        return error_set(error, -EFBIG, CODE_NONE, "the plane is larger than %d MiB", LIMIT_PLANE_MIB);
    int rc = slices_read_plane(file, &layout, (int32_t)address->at, &plane, error);
    if (rc == 0)
        rc = (address->is_png ? plane_draw : plane_pack)(volume, &layout, (int32_t)address->at, &plane, answer, error);
    slices_plane_free(&plane);
    return rc;
}

static int
planes_answer_description(const struct web *web, int64_t job, struct web_reply *answer, struct error *error)
{
    struct slices *file;
    int fd;
    const int rc = web_planes_open(web, job, &fd, &file, error);
    if (rc)
        return rc;
    answer->type = "application/json";
    planes_describe(slices_volume_of(file), answer->out);
    slices_close(file);
    close(fd);
    return 0;
}

int
web_planes_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error)
{
    struct plane_address address;
    struct web_kept_file *file;
    int fd;
    if (!plane_parse(request->path, &address))
        return error_set(error, -ENOENT, CODE_NONE, "this plane does not exist");
    answer->job = address.job;
    if (address.view == SLICES_VIEWS)
        return planes_answer_description(web, address.job, answer, error);
    int rc = planes_open_file(web, address.job, &fd, error);
    if (rc == 0)
        rc = web_kept_open(&web->kept, fd, address.view, address.at, &file, error);
    if (rc)
        return rc;
    rc = plane_make(file->slices, &address, answer, error);
    web_kept_return(&web->kept, file, rc == -EBADMSG || rc == -ENOMEM);
    return rc;
}
