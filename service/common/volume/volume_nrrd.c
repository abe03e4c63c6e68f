/* volume_nrrd.c - see volume_stream.h. */
#include "service/common/volume/volume_stream.h"

#include "base/limits.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_grid.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NRRD_AXES_MAX 16

enum nrrd_field {
    NRRD_TYPE,
    NRRD_DIMENSION,
    NRRD_SIZES,
    NRRD_SPACE,
    NRRD_DIRECTIONS,
    NRRD_ORIGIN,
    NRRD_UNITS,
    NRRD_ENDIAN,
    NRRD_ENCODING,
    NRRD_DATA_FILE,
    NRRD_LINE_SKIP,
    NRRD_BYTE_SKIP,
    NRRD_FIELDS
};

static const struct {
    enum nrrd_field field;
    const char *name;
} nrrd_names[] = {{NRRD_TYPE, "type"},
                  {NRRD_DIMENSION, "dimension"},
                  {NRRD_SIZES, "sizes"},
                  {NRRD_SPACE, "space"},
                  {NRRD_DIRECTIONS, "space directions"},
                  {NRRD_ORIGIN, "space origin"},
                  {NRRD_UNITS, "space units"},
                  {NRRD_ENDIAN, "endian"},
                  {NRRD_ENCODING, "encoding"},
                  {NRRD_DATA_FILE, "data file"},
                  {NRRD_DATA_FILE, "datafile"},
                  {NRRD_LINE_SKIP, "line skip"},
                  {NRRD_LINE_SKIP, "lineskip"},
                  {NRRD_BYTE_SKIP, "byte skip"},
                  {NRRD_BYTE_SKIP, "byteskip"}};

struct nrrd_head {
    char text[LIMIT_VOLUME_HEADER_BYTES + 2];
    const char *fields[NRRD_FIELDS]; /* "": absent */
    int64_t length;                  /* with the empty line; 0: there is none */
};

static int
nrrd_damaged(const char *why, struct error *error)
{
    return error_set(error, -EBADMSG, CODE_PROGRAM_OUTPUT_UNREADABLE, "%s", why);
}

/* Stores a line "field: value". Comments, keys with values, and other fields have no effect. Returns false if a field
 * occurs twice. */
static bool
nrrd_line(struct nrrd_head *head, char *line)
{
    char *value = strstr(line, ": ");
    if (*line == '#' || !value)
        return true;
    *value = '\0';
    value += 2;
    value += strspn(value, " \t");
    for (char *end = value + strlen(value); end > value && strchr(" \t\r", end[-1]); end--)
        end[-1] = '\0';
    for (size_t i = 0; i < sizeof nrrd_names / sizeof nrrd_names[0]; i++) {
        if (strcasecmp(line, nrrd_names[i].name) != 0)
            continue;
        const char **field = &head->fields[nrrd_names[i].field];
        if (**field)
            return false;
        *field = value;
    }
    return true;
}

/* Stores the lines up to the empty one, or to the end of the bytes. */
static int
nrrd_lines(struct nrrd_head *head, size_t size, struct error *error)
{
    for (char *at = head->text, *end = at + size, *next; at < end; at = next) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        if (next - head->text > LIMIT_VOLUME_HEADER_BYTES)
            return nrrd_damaged("the header has no end within its limit", error);
        if (memchr(at, '\0', (size_t)(next - at)))
            return nrrd_damaged("the header has a byte 0", error);
        if (newline)
            *newline = '\0';
        if (*at == '\0' || strcmp(at, "\r") == 0) {
            head->length = next - head->text;
            return 0;
        }
        if (!nrrd_line(head, at))
            return nrrd_damaged("a field of the header occurs twice", error);
    }
    return 0;
}

static int
nrrd_load(struct volume_stream *stream, struct nrrd_head *head, struct error *error)
{
    const ssize_t got = volume_stream_read(stream, head->text, LIMIT_VOLUME_HEADER_BYTES + 1, error);
    if (got < 0)
        return (int)got;
    if (got < 8 || memcmp(head->text, "NRRD000", 7) != 0 || head->text[7] < '1' || head->text[7] > '5')
        return nrrd_damaged("the file has no header of NRRD 1 to 5", error);
    for (int i = 0; i < NRRD_FIELDS; i++)
        head->fields[i] = "";
    return nrrd_lines(head, (size_t)got, error);
}

static int
nrrd_type(const struct nrrd_head *head, struct volume_header *header, struct error *error)
{
    static const struct {
        enum volume_type type;
        const char *names;
    } types[] = {
        {VOLUME_UINT8, "|uchar|unsigned char|uint8|uint8_t|"},
        {VOLUME_INT8, "|signed char|int8|int8_t|"},
        {VOLUME_UINT16, "|ushort|unsigned short|unsigned short int|uint16|uint16_t|"},
        {VOLUME_INT16, "|short|short int|signed short|signed short int|int16|int16_t|"},
        {VOLUME_UINT32, "|uint|unsigned int|uint32|uint32_t|"},
        {VOLUME_INT32, "|int|signed int|int32|int32_t|"},
        {VOLUME_UINT64, "|ulonglong|unsigned long long|unsigned long long int|uint64|uint64_t|"},
        {VOLUME_INT64, "|longlong|long long|long long int|signed long long|signed long long int|int64|int64_t|"},
        {VOLUME_FLOAT32, "|float|"},
        {VOLUME_FLOAT64, "|double|"},
    };

    const char *endian = head->fields[NRRD_ENDIAN];
    char name[32];
    const int length = snprintf(name, sizeof name, "|%s|", head->fields[NRRD_TYPE]);
    size_t i = 0;
    while (i < sizeof types / sizeof types[0] && !strcasestr(types[i].names, name))
        i++;
    if (i == sizeof types / sizeof types[0] || length < 3 || length >= (int)sizeof name || strchr(name + 1, '|')[1])
        return nrrd_damaged("the type cannot be read", error);
    header->type = types[i].type;
    const bool big = strcasecmp(endian, "big") == 0;
    if (volume_type_size(header->type) > 1 && !big && strcasecmp(endian, "little") != 0)
        return nrrd_damaged("the byte order is absent", error);
    header->swapped = big == (__BYTE_ORDER == __LITTLE_ENDIAN);
    return 0;
}

/* Finds the voxels. */
static int
nrrd_data(const struct nrrd_head *head, struct volume_header *header, struct error *error)
{
    const char *encoding = head->fields[NRRD_ENCODING], *file = head->fields[NRRD_DATA_FILE];
    header->gzip = strcasecmp(encoding, "gzip") == 0 || strcasecmp(encoding, "gz") == 0;
    if (!header->gzip && strcasecmp(encoding, "raw") != 0)
        return nrrd_damaged("the encoding is neither raw nor gzip", error);
    for (int field = NRRD_LINE_SKIP; field <= NRRD_BYTE_SKIP; field++) {
        if (*head->fields[field] && strcmp(head->fields[field], "0") != 0)
            return nrrd_damaged("lines or bytes before the voxels cannot be skipped", error);
    }
    if (!*file && head->length == 0)
        return nrrd_damaged("the file ends in its header", error);
    if (strpbrk(file, "/%") || file[0] == '.' || strncmp(file, "LIST", 4) == 0 ||
        strlen(file) >= sizeof header->data_file)
        return nrrd_damaged("the voxels must be in one file of the same folder", error);
    strcpy(header->data_file, file);
    header->stream_offset = *file ? 0 : head->length;
    return 0;
}

/* Reads the sizes of all axes. */
static int
nrrd_sizes(const struct nrrd_head *head, int64_t sizes[NRRD_AXES_MAX], int *count, struct error *error)
{
    const char *at = head->fields[NRRD_SIZES];
    const long axes = strtol(head->fields[NRRD_DIMENSION], NULL, 10);
    int large = 0;
    if (axes < 1 || axes > NRRD_AXES_MAX)
        return nrrd_damaged("the number of axes is not in 1 to 16", error);
    for (*count = 0; *count < axes; ++*count) {
        char *end;
        sizes[*count] = strtoll(at, &end, 10);
        if (end == at || sizes[*count] < 1)
            return nrrd_damaged("an axis has no voxels", error);
        at = end;
        large += sizes[*count] > 1;
        if (sizes[*count] > LIMIT_VOLUME_AXIS)
            return error_set(error, -EBADMSG, CODE_PROGRAM_NOT_3D, "axis %d has %lld voxels", *count + 1,
                             (long long)sizes[*count]);
    }
    if (large > 3)
        return error_set(error, -EBADMSG, CODE_PROGRAM_NOT_3D, "the file has more than three axes");
    return *at ? nrrd_damaged("there are more sizes than axes", error) : 0;
}

/* Reads a vector "(x,y,z)" into one column of the matrix. Returns the text behind it, or NULL. */
static const char *
nrrd_vector(const char *at, double *column)
{
    for (int row = 0; row < 3; row++) {
        char *end;
        at += strspn(at, " \t");
        if (*at++ != (row == 0 ? '(' : ','))
            return NULL;
        column[4 * row] = strtod(at, &end);
        if (end == at)
            return NULL;
        at = end;
    }
    at += strspn(at, " \t");
    return *at == ')' ? at + 1 : NULL;
}

/* Sets the factors of x and y that lead to LPS. Returns false for a space that is not a patient's. */
static bool
nrrd_space(const char *space, double factors[2])
{
    const bool ras = strcasecmp(space, "right-anterior-superior") == 0 || strcasecmp(space, "RAS") == 0;
    const bool las = strcasecmp(space, "left-anterior-superior") == 0 || strcasecmp(space, "LAS") == 0;
    factors[0] = ras ? -1 : 1;
    factors[1] = ras || las ? -1 : 1;
    return ras || las || strcasecmp(space, "left-posterior-superior") == 0 || strcasecmp(space, "LPS") == 0;
}

/* Finds the three axes with a direction; others must have one voxel. */
static int
nrrd_axes(const char *at, const int64_t *sizes, int count, struct volume_grid *grid, struct error *error)
{
    int axes = 0;
    for (int i = 0; i < count && at; i++) {
        at += strspn(at, " \t");
        if (strncasecmp(at, "none", 4) == 0 && sizes[i] > 1)
            return error_set(error, -EBADMSG, CODE_PROGRAM_NOT_3D,
                             "an axis of several voxels has no direction in space");
        if (strncasecmp(at, "none", 4) == 0) {
            at += 4;
        } else if (axes < 3) {
            grid->size[axes] = sizes[i];
            at = nrrd_vector(at, grid->to_mm + axes++);
        } else {
            at = NULL;
        }
    }
    return at && !*at && axes == 3
               ? 0
               : error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "it has no three directions in space");
}

static int
nrrd_orientation(const struct nrrd_head *head, struct volume_header *header, struct error *error)
{
    struct volume_grid *grid = &header->grid;
    int64_t sizes[NRRD_AXES_MAX];
    int count = 0, length = 0;
    double factors[2];
    const char *units = head->fields[NRRD_UNITS];
    int rc = nrrd_sizes(head, sizes, &count, error);
    rc = rc ? rc : nrrd_axes(head->fields[NRRD_DIRECTIONS], sizes, count, grid, error);
    if (rc)
        return rc;
    (void)sscanf(units, " \"mm\" \"mm\" \"mm\"%n", &length);
    if (length != (int)strlen(units))
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "the unit of its space is not mm");
    const char *end = nrrd_vector(head->fields[NRRD_ORIGIN], grid->to_mm + 3);
    if (!nrrd_space(head->fields[NRRD_SPACE], factors) || !end || *end)
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS,
                         "it has no origin in a space of the patient (LPS, LAS, RAS)");
    for (int i = 0; i < 8; i++)
        grid->to_mm[i] *= factors[i / 4];
    if (!volume_grid_regular(grid))
        return error_set(error, -EBADMSG, CODE_PROGRAM_GRID_DIFFERS, "its directions are not finite or singular");
    return 0;
}

int
volume_nrrd_read(struct volume_stream *stream, struct volume_header *header, struct error *error)
{
    struct nrrd_head *head = calloc(1, sizeof *head);
    int rc = head ? 0 : error_set_system(error, -ENOMEM, "read the file");
    rc = rc ? rc : nrrd_load(stream, head, error);
    rc = rc ? rc : nrrd_type(head, header, error);
    rc = rc ? rc : nrrd_data(head, header, error);
    rc = rc ? rc : nrrd_orientation(head, header, error);
    header->slope = 1;
    free(head);
    return rc;
}

int
volume_nrrd_write(const struct volume_grid *grid, enum volume_type type, char head[NRRD_HEAD_SIZE])
{
    const double *m = grid->to_mm;
    return snprintf(head, NRRD_HEAD_SIZE,
                    "NRRD0004\ntype: %s\ndimension: 3\nspace: left-posterior-superior\nsizes: %lld %lld %lld\n"
                    "space directions: (%.17g,%.17g,%.17g) (%.17g,%.17g,%.17g) (%.17g,%.17g,%.17g)\n"
                    "kinds: domain domain domain\nendian: %s\nencoding: raw\nspace origin: (%.17g,%.17g,%.17g)\n\n",
                    type == VOLUME_INT16 ? "short" : "float", (long long)grid->size[0], (long long)grid->size[1],
                    (long long)grid->size[2], m[0], m[4], m[8], m[1], m[5], m[9], m[2], m[6], m[10],
                    __BYTE_ORDER == __LITTLE_ENDIAN ? "little" : "big", m[3], m[7], m[11]);
}
