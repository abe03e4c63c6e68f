/* volume_nifti.c - see volume_stream.h. */
#include "service/common/volume/volume_stream.h"

#include "base/limits.h"
#include "base/text.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_grid.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { NIFTI1_SIZE = 348, NIFTI1_DESCRIP = 148, NIFTI2_SIZE = 540, NIFTI_UNIT_MM = 2, NIFTI_AXES_MAX = 7 };

static const char nifti_in_pixels[] = "axes in pixels: the image has no pixel spacing in mm";

enum nifti_field {
    NIFTI_DIM,
    NIFTI_DATATYPE,
    NIFTI_PIXDIM,
    NIFTI_VOX_OFFSET,
    NIFTI_SLOPE,
    NIFTI_INTERCEPT,
    NIFTI_UNITS,
    NIFTI_QFORM,
    NIFTI_SFORM,
    NIFTI_QUATERN, /* b, c, d, and the offsets x, y, z */
    NIFTI_SROW     /* 3 x 4 */
};

/* Places of the fields in both versions. */
static const struct nifti_place {
    int at;
    enum volume_type type;
} nifti_places[2][NIFTI_SROW + 1] = {{[NIFTI_DIM] = {40, VOLUME_INT16},
                                      [NIFTI_DATATYPE] = {70, VOLUME_INT16},
                                      [NIFTI_PIXDIM] = {76, VOLUME_FLOAT32},
                                      [NIFTI_VOX_OFFSET] = {108, VOLUME_FLOAT32},
                                      [NIFTI_SLOPE] = {112, VOLUME_FLOAT32},
                                      [NIFTI_INTERCEPT] = {116, VOLUME_FLOAT32},
                                      [NIFTI_UNITS] = {123, VOLUME_UINT8},
                                      [NIFTI_QFORM] = {252, VOLUME_INT16},
                                      [NIFTI_SFORM] = {254, VOLUME_INT16},
                                      [NIFTI_QUATERN] = {256, VOLUME_FLOAT32},
                                      [NIFTI_SROW] = {280, VOLUME_FLOAT32}},
                                     {[NIFTI_DIM] = {16, VOLUME_INT64},
                                      [NIFTI_DATATYPE] = {12, VOLUME_INT16},
                                      [NIFTI_PIXDIM] = {104, VOLUME_FLOAT64},
                                      [NIFTI_VOX_OFFSET] = {168, VOLUME_INT64},
                                      [NIFTI_SLOPE] = {176, VOLUME_FLOAT64},
                                      [NIFTI_INTERCEPT] = {184, VOLUME_FLOAT64},
                                      [NIFTI_UNITS] = {500, VOLUME_INT32},
                                      [NIFTI_QFORM] = {344, VOLUME_INT32},
                                      [NIFTI_SFORM] = {348, VOLUME_INT32},
                                      [NIFTI_QUATERN] = {352, VOLUME_FLOAT64},
                                      [NIFTI_SROW] = {400, VOLUME_FLOAT64}}};

struct nifti_head {
    uint8_t bytes[NIFTI2_SIZE];
    int version;
    bool swapped;
    bool pair; /* the voxels are in a file of their own */
};

static double
nifti_value(const struct nifti_head *head, enum nifti_field field, int i)
{
    const struct nifti_place *place = &nifti_places[head->version - 1][field];
    return volume_value(place->type, head->swapped,
                        head->bytes + place->at + (size_t)i * volume_type_size(place->type));
}

/* Finds version and byte order by the size of the header, which is its first number. */
static int
nifti_load(struct volume_stream *stream, struct nifti_head *head, struct error *error)
{
    double size[2];
    const ssize_t got = volume_stream_read(stream, head->bytes, sizeof head->bytes, error);
    if (got < 0)
        return (int)got;
    for (int swapped = 0; swapped < 2; swapped++)
        size[swapped] = volume_value(VOLUME_INT32, swapped, head->bytes);
    head->swapped = size[1] == NIFTI1_SIZE || size[1] == NIFTI2_SIZE;
    const double length = size[head->swapped];
    head->version = length == NIFTI2_SIZE ? 2 : 1;
    const char *magic = (const char *)head->bytes + (head->version == 2 ? 4 : 344);
    head->pair = memcmp(magic, head->version == 2 ? "ni2" : "ni1", 4) == 0;
    const bool single = memcmp(magic, head->version == 2 ? "n+2" : "n+1", 4) == 0;
    if ((length != NIFTI1_SIZE && length != NIFTI2_SIZE) || (double)got < length || (!head->pair && !single))
        return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE,
                         "the file has no header of NIfTI-1 or NIfTI-2");
    return 0;
}

static int
nifti_sizes(const struct nifti_head *head, struct volume_header *header, struct error *error)
{
    const double axes = nifti_value(head, NIFTI_DIM, 0);
    if (!(axes >= 1 && axes <= NIFTI_AXES_MAX))
        return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "the number of axes is not in 1 to 7");
    for (int axis = 0; axis < NIFTI_AXES_MAX; axis++) {
        const double size = axis < axes ? nifti_value(head, NIFTI_DIM, axis + 1) : 1;
        if (size < 1)
            return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "an axis has no voxels");
        if (size > (axis < 3 ? LIMIT_VOLUME_AXIS : 1))
            return error_set(error, -EBADMSG, CODE_PROGRAM_NOT_3D, "axis %d has %.0f voxels", axis + 1, size);
        if (axis < 3)
            header->grid.size[axis] = (int64_t)size;
    }
    return 0;
}

/* The codes of types. */
static const struct {
    int datatype;
    enum volume_type type;
} nifti_types[] = {{2, VOLUME_UINT8},    {4, VOLUME_INT16},    {8, VOLUME_INT32},    {16, VOLUME_FLOAT32},
                   {64, VOLUME_FLOAT64}, {256, VOLUME_INT8},   {512, VOLUME_UINT16}, {768, VOLUME_UINT32},
                   {1024, VOLUME_INT64}, {1280, VOLUME_UINT64}};

static int
nifti_type(const struct nifti_head *head, struct volume_header *header, struct error *error)
{
    static const int components[] = {32, 128, 1792, 2048, 2304}; /* complex numbers and colours */
    const double datatype = nifti_value(head, NIFTI_DATATYPE, 0);
    for (size_t i = 0; i < sizeof nifti_types / sizeof nifti_types[0]; i++) {
        if (datatype == nifti_types[i].datatype) {
            header->type = nifti_types[i].type;
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof components / sizeof components[0]; i++) {
        if (datatype == components[i])
            return error_set(error, -EBADMSG, CODE_PROGRAM_NOT_3D, "a voxel has several components");
    }
    return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "data type %.0f cannot be read", datatype);
}

/* Finds the voxels, and the scale of their values. */
static int
nifti_data(const struct nifti_head *head, const char *name, struct volume_header *header, struct error *error)
{
    const double offset = nifti_value(head, NIFTI_VOX_OFFSET, 0);
    const int least = head->pair ? 0 : (head->version == 2 ? NIFTI2_SIZE : NIFTI1_SIZE) + 4;
    if (!(offset >= least && offset <= LIMIT_VOLUME_HEADER_BYTES) || offset != floor(offset))
        return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "the voxels begin at byte %g", offset);
    header->data_offset = (int64_t)offset;
    const double slope = nifti_value(head, NIFTI_SLOPE, 0), intercept = nifti_value(head, NIFTI_INTERCEPT, 0);
    const bool scaled = isfinite(slope) && slope != 0;
    if (scaled && !isfinite(intercept))
        return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "the intercept is not a number");
    header->slope = scaled ? slope : 1;
    header->intercept = scaled ? intercept : 0;
    if (!head->pair)
        return 0;
    const char *own = text_base_name(name);
    const size_t length = strlen(own);
    if (!text_ends_in(own, ".hdr") || length >= sizeof header->data_file)
        return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE,
                         "a header without voxels must be a file .hdr");
    memcpy(header->data_file, own, length - 3);
    memcpy(header->data_file + length - 3, "img", 4);
    return 0;
}

/* Fills the matrix, RAS, from the quaternion. Returns false if it is no rotation. Two of its rules are those of nifti1.h:
 * the sign of pixdim[0], and half a turn if a^2 is lost in rounding. */
static bool
nifti_qform(const struct nifti_head *head, double to_mm[12])
{
    double b = nifti_value(head, NIFTI_QUATERN, 0), c = nifti_value(head, NIFTI_QUATERN, 1);
    double d = nifti_value(head, NIFTI_QUATERN, 2), rest = 1 - (b * b + c * c + d * d);
    if (!(rest >= -1e-6))
        return false;
    if (rest < 1e-7) {
        const double length = sqrt(b * b + c * c + d * d);
        b /= length;
        c /= length;
        d /= length;
        rest = 0;
    }
    const double a = sqrt(rest);
    const double rotation[9] = {
        a * a + b * b - c * c - d * d, 2 * (b * c - a * d),           2 * (b * d + a * c),
        2 * (b * c + a * d),           a * a + c * c - b * b - d * d, 2 * (c * d - a * b),
        2 * (b * d - a * c),           2 * (c * d + a * b),           a * a + d * d - b * b - c * c};
    for (int axis = 0; axis < 3; axis++) {
        const double spacing = nifti_value(head, NIFTI_PIXDIM, axis + 1);
        const bool against = axis == 2 && nifti_value(head, NIFTI_PIXDIM, 0) < 0;
        if (!(spacing > 0))
            return false;
        for (int row = 0; row < 3; row++)
            to_mm[4 * row + axis] = rotation[3 * row + axis] * (against ? -spacing : spacing);
    }
    for (int row = 0; row < 3; row++)
        to_mm[4 * row + 3] = nifti_value(head, NIFTI_QUATERN, 3 + row);
    return true;
}

static int
nifti_orientation(const struct nifti_head *head, struct volume_header *header, struct error *error)
{
    const int unit = (int)nifti_value(head, NIFTI_UNITS, 0) & 7;
    const bool sform = nifti_value(head, NIFTI_SFORM, 0) > 0;
    double *to_mm = header->grid.to_mm;
    if (unit != 0 && unit != NIFTI_UNIT_MM)
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "the unit of its axes is not mm");
    if (!sform && !(nifti_value(head, NIFTI_QFORM, 0) > 0))
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "it has no orientation (sform or qform)");
    if (!sform && !nifti_qform(head, to_mm))
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "its qform is not a rotation");
    for (int i = 0; i < 12; i++) {
        const double value = sform ? nifti_value(head, NIFTI_SROW, i) : to_mm[i];
        to_mm[i] = i < 8 ? -value : value; /* RAS to LPS */
    }
    if (!volume_grid_regular(&header->grid))
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "its matrix is not finite or singular");
    return 0;
}

int
volume_nifti_read(struct volume_stream *stream, const char *name, struct volume_header *header, struct error *error)
{
    struct nifti_head head = {{0}, 1, false, false};
    int rc = volume_stream_begin(stream, 0, volume_stream_is_gzip(stream), error);
    rc = rc ? rc : nifti_load(stream, &head, error);
    rc = rc ? rc : nifti_sizes(&head, header, error);
    rc = rc ? rc : nifti_type(&head, header, error);
    rc = rc ? rc : nifti_data(&head, name, header, error);
    rc = rc ? rc : nifti_orientation(&head, header, error);
    header->swapped = head.swapped;
    header->gzip = !head.pair && volume_stream_is_gzip(stream);
    return rc;
}

static void
nifti_put_float(struct nifti_head *head, enum nifti_field field, int i, double value)
{
    const float number = (float)value;
    memcpy(head->bytes + nifti_places[0][field].at + (size_t)i * sizeof number, &number, sizeof number);
}

static void
nifti_put_int16(struct nifti_head *head, enum nifti_field field, int i, int64_t value)
{
    const int16_t number = (int16_t)value;
    memcpy(head->bytes + nifti_places[0][field].at + (size_t)i * sizeof number, &number, sizeof number);
}

/* Sets pixdim and the qform of a matrix, RAS. */
static void
nifti_put_qform(struct nifti_head *head, const double to_mm[12])
{
    double unit[9];
    for (int axis = 0; axis < 3; axis++) {
        const double *at = to_mm + axis;
        const double spacing = sqrt(at[0] * at[0] + at[4] * at[4] + at[8] * at[8]);
        for (int row = 0; row < 3; row++)
            unit[3 * row + axis] = at[4 * row] / spacing;
        nifti_put_float(head, NIFTI_PIXDIM, axis + 1, spacing);
        nifti_put_float(head, NIFTI_QUATERN, 3 + axis, to_mm[4 * axis + 3]);
    }
    const double turn = unit[2] * (unit[3] * unit[7] - unit[4] * unit[6]) +
                        unit[5] * (unit[1] * unit[6] - unit[0] * unit[7]) +
                        unit[8] * (unit[0] * unit[4] - unit[1] * unit[3]);
    for (int row = 0; row < 3; row++)
        unit[3 * row + 2] *= turn < 0 ? -1 : 1;
    nifti_put_float(head, NIFTI_PIXDIM, 0, turn < 0 ? -1 : 1);
    /* The rows are multiples of the quaternion (a, b, c, d), a >= 0. The row with the largest diagonal loses no digits. */
    const double trace = unit[0] + unit[4] + unit[8];
    const double rows[4][4] = {{1 + trace, unit[7] - unit[5], unit[2] - unit[6], unit[3] - unit[1]},
                               {unit[7] - unit[5], 1 + 2 * unit[0] - trace, unit[1] + unit[3], unit[2] + unit[6]},
                               {unit[2] - unit[6], unit[1] + unit[3], 1 + 2 * unit[4] - trace, unit[5] + unit[7]},
                               {unit[3] - unit[1], unit[2] + unit[6], unit[5] + unit[7], 1 + 2 * unit[8] - trace}};
    int best = 0;
    for (int i = 1; i < 4; i++)
        best = rows[i][i] > rows[best][best] ? i : best;
    const double length = 2 * sqrt(rows[best][best]) * (rows[best][0] < 0 ? -1 : 1);
    for (int i = 0; i < 3; i++)
        nifti_put_float(head, NIFTI_QUATERN, i, rows[best][i + 1] / length);
}

bool
volume_nifti_write(const struct volume_grid *grid, enum volume_type type, uint8_t bytes[NIFTI_HEAD_SIZE])
{
    struct nifti_head head = {{0}, 1, false, false};
    const int32_t size = NIFTI1_SIZE;
    struct volume_grid ras = *grid, turned = *grid;
    struct volume_walk walk;
    char why[160];
    memcpy(head.bytes, &size, sizeof size);
    nifti_put_int16(&head, NIFTI_DIM, 0, 3);
    for (int axis = 1; axis <= NIFTI_AXES_MAX; axis++) {
        const int64_t voxels = axis <= 3 ? grid->size[axis - 1] : 1;
        if (voxels > INT16_MAX)
            return false;
        nifti_put_int16(&head, NIFTI_DIM, axis, voxels);
    }
    for (size_t i = 0; i < sizeof nifti_types / sizeof nifti_types[0]; i++)
        if (nifti_types[i].type == type)
            nifti_put_int16(&head, NIFTI_DATATYPE, 0, nifti_types[i].datatype);
    nifti_put_int16(&head, NIFTI_DATATYPE, 1, 8 * (int64_t)volume_type_size(type)); /* bitpix follows */
    nifti_put_float(&head, NIFTI_VOX_OFFSET, 0, NIFTI_HEAD_SIZE);
    nifti_put_float(&head, NIFTI_SLOPE, 0, 1);
    if (grid->in_pixels)
        memcpy(head.bytes + NIFTI1_DESCRIP, nifti_in_pixels, sizeof nifti_in_pixels);
    else
        head.bytes[nifti_places[0][NIFTI_UNITS].at] = NIFTI_UNIT_MM;
    for (int i = 0; i < 12; i++) {
        ras.to_mm[i] = i < 8 ? -grid->to_mm[i] : grid->to_mm[i];
        nifti_put_float(&head, NIFTI_SROW, i, ras.to_mm[i]);
    }
    nifti_put_int16(&head, NIFTI_SFORM, 0, 1);
    nifti_put_qform(&head, ras.to_mm);
    /* A sheared grid has no qform. */
    if (nifti_qform(&head, turned.to_mm) && volume_grid_same(&turned, &ras, &walk, why))
        nifti_put_int16(&head, NIFTI_QFORM, 0, 1);
    memcpy(head.bytes + 344, "n+1", 4);
    memcpy(bytes, head.bytes, NIFTI_HEAD_SIZE);
    return true;
}
