#include "service/common/volume/mask_file.h"

#include "base/array.h"
#include "base/durable.h"
#include "base/limits.h"
#include "base/text.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/volume/volume_file.h"
#include "service/common/volume/volume_grid.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MASK_VALUES = UINT16_MAX + 1, MASK_NUMBER_BYTES = 5, MASK_HEAD_BYTES = 512, MASK_AXIS_MAX = 1 << 20 };

#define MASK_BYTES ((int64_t)LIMIT_MASK_MIB << 20)

struct mask_file {
    uint8_t *bytes;
    int64_t size, runs; /* where the runs begin */
    struct volume_grid grid;
    int layers;
};

/* Lists the values other than 0 that occur. Returns 0 or -ENOMEM. */
static int
mask_list_labels(const int64_t *voxels, struct mask_label_list *labels)
{
    *labels = (struct mask_label_list){0};
    for (int value = 1; value < MASK_VALUES; value++)
        labels->count += voxels[value] > 0;
    labels->items = calloc(labels->count + 1, sizeof *labels->items);
    if (!labels->items)
        return -ENOMEM;
    size_t i = 0;
    for (int value = 1; value < MASK_VALUES; value++) {
        if (voxels[value] > 0)
            labels->items[i++] = (struct mask_label){(uint16_t)value, voxels[value]};
    }
    return 0;
}

/* Writes the text before the runs. */
static void
mask_put_head(FILE *out, const struct volume_grid *grid, int layers, const struct mask_label_list *labels)
{
    fprintf(out, "noctule-mask 1\nsize %lld %lld %lld\nto_mm", (long long)grid->size[0], (long long)grid->size[1],
            (long long)grid->size[2]);
    for (int i = 0; i < 12; i++) {
        char digits[TEXT_DIGITS];
        text_digits(grid->to_mm[i] + 0.0, digits); /* + 0.0: no negative zero */
        fprintf(out, " %s", digits);
    }
    fprintf(out, "\nlayers %d\n", layers);
    for (size_t i = 0; i < labels->count; i++)
        fprintf(out, "label %u %lld\n", (unsigned)labels->items[i].value, (long long)labels->items[i].voxels);
    fputs("end\n", out);
}

/* ---- writing ---- */

struct mask_writer {
    uint8_t *runs;
    size_t size, room;
    int64_t voxels[MASK_VALUES]; /* per value */
};

static void
mask_put_number(struct mask_writer *writer, uint64_t number)
{
    for (; number > 0x7f; number >>= 7)
        writer->runs[writer->size++] = (uint8_t)(number | 0x80);
    writer->runs[writer->size++] = (uint8_t)number;
}

static int
mask_put_row(struct mask_writer *writer, const uint16_t *row, int64_t columns)
{
    void *runs = array_grow(writer->runs, &writer->room, writer->size + (size_t)columns * 2 * MASK_NUMBER_BYTES, 1);
    if (!runs)
        return -ENOMEM;
    writer->runs = runs;
    for (int64_t x = 0, run; x < columns; x += run) {
        run = volume_run(row + x, columns - x, sizeof *row);
        mask_put_number(writer, (uint64_t)run);
        mask_put_number(writer, row[x]);
        writer->voxels[row[x]] += run;
    }
    return writer->size > (size_t)MASK_BYTES ? -E2BIG : 0;
}

static int
mask_refuse(int rc, struct error *error)
{
    if (rc == -E2BIG)
        return error_set(error, rc, CODE_PROGRAM_OUTPUT_TOO_LARGE, "the mask needs more than %d MiB or %d layers",
                         LIMIT_MASK_MIB, LIMIT_MASK_LAYERS);
    return error_set_system(error, rc, "write the mask");
}

/* Writes head and runs into the file. */
static int
mask_store(int folder, const char *name, const struct mask_writer *writer, const struct volume_grid *grid, int layers,
           const struct mask_label_list *labels, struct digest *digest)
{
    struct text_stream text;
    int rc = text_open(&text);
    if (rc)
        return rc;
    mask_put_head(text.out, grid, layers, labels);
    fwrite(writer->runs, 1, writer->size, text.out);
    rc = text_close(&text);
    rc = rc == 0 && text.size > (size_t)MASK_BYTES ? -E2BIG : rc;
    rc = rc ? rc : digest_bytes(text.bytes, text.size, digest);
    rc = rc ? rc : durable_write(folder, name, text.bytes, text.size, 0640, DURABLE_NEW);
    free(text.bytes);
    return rc;
}

int
mask_file_write(int folder, const char *name, const struct volume_grid *grid, int layers, const uint16_t *maps,
                int64_t *size, char sha256[65], struct mask_label_list *labels, struct error *error)
{
    struct digest digest = {0};
    struct mask_writer *writer = calloc(1, sizeof *writer);
    *labels = (struct mask_label_list){0};
    if (!writer)
        return mask_refuse(-ENOMEM, error);
    int rc = layers > LIMIT_MASK_LAYERS ? -E2BIG : 0;
    for (int64_t row = 0; rc == 0 && row < layers * grid->size[1] * grid->size[2]; row++)
        rc = mask_put_row(writer, maps + row * grid->size[0], grid->size[0]);
    rc = rc ? rc : mask_list_labels(writer->voxels, labels);
    rc = rc ? rc : mask_store(folder, name, writer, grid, layers, labels, &digest);
    free(writer->runs);
    free(writer);
    if (rc) {
        free(labels->items);
        *labels = (struct mask_label_list){0};
        return mask_refuse(rc, error);
    }
    *size = digest.size;
    memcpy(sha256, digest.sha256, sizeof digest.sha256);
    return 0;
}

/* ---- reading ---- */

static int
mask_damaged(const char *why, struct error *error)
{
    return error_set(error, -EBADMSG, CODE_PROGRAM_MASK_DAMAGED, "%s", why);
}

/* Sets FILE_UNREADABLE, or OUT_OF_MEMORY. */
static int
mask_unreadable(int rc, struct error *error)
{
    error_set(error, rc, CODE_FILE_UNREADABLE, "the mask cannot be read: %s", strerror(-rc));
    error_normalise(error, rc);
    return rc;
}

/* Reads a number. Returns false at the end, and for a number that is not as short as possible. */
static bool
mask_number(const uint8_t **at, const uint8_t *end, int64_t *number)
{
    uint64_t value = 0;
    for (int i = 0; i < MASK_NUMBER_BYTES && *at < end; i++) {
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << 7 * i;
        *number = (int64_t)value;
        if (!(byte & 0x80))
            return byte != 0 || i == 0;
    }
    return false;
}

/* Checks the runs and counts voxels per value. Returns whether they are complete and as long as possible. */
static bool
mask_count_runs(const struct mask_file *mask, int64_t *voxels)
{
    const uint8_t *at = mask->bytes + mask->runs, *end = mask->bytes + mask->size;
    const int64_t *size = mask->grid.size;
    for (int64_t row = 0; row < mask->layers * size[1] * size[2]; row++) {
        int64_t length, value, before = -1;
        for (int64_t left = size[0]; left > 0; left -= length, before = value) {
            if (!mask_number(&at, end, &length) || !mask_number(&at, end, &value) || length < 1 || length > left ||
                value >= MASK_VALUES || value == before)
                return false;
            voxels[value] += length;
        }
    }
    return at == end;
}

/* Reads size, matrix and layers. Returns whether they are there. */
static bool
mask_read_head(struct mask_file *mask)
{
    char head[MASK_HEAD_BYTES + 1] = {0};
    long long size[3];
    double *m = mask->grid.to_mm;
    memcpy(head, mask->bytes, mask->size < MASK_HEAD_BYTES ? (size_t)mask->size : MASK_HEAD_BYTES);
    if (sscanf(head,
               "noctule-mask 1 size %lld %lld %lld to_mm %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf %lf layers %d",
               &size[0], &size[1], &size[2], &m[0], &m[1], &m[2], &m[3], &m[4], &m[5], &m[6], &m[7], &m[8], &m[9],
               &m[10], &m[11], &mask->layers) != 16)
        return false;
    for (int axis = 0; axis < 3; axis++) {
        if (size[axis] < 1 || size[axis] > MASK_AXIS_MAX)
            return false;
        mask->grid.size[axis] = size[axis];
    }
    const uint8_t *end = memmem(mask->bytes, (size_t)mask->size, "\nend\n", 5);
    mask->runs = end ? end + 5 - mask->bytes : 0;
    return end && mask->layers >= 1 && mask->layers <= LIMIT_MASK_LAYERS;
}

/* Checks that the file has the bytes that the writer would write. */
static int
mask_check(const struct mask_file *mask, struct error *error)
{
    struct text_stream head = {0};
    struct mask_label_list labels = {0};
    int64_t *voxels = calloc(MASK_VALUES, sizeof *voxels);
    const bool whole = voxels && mask_count_runs(mask, voxels);
    int rc = !voxels ? -ENOMEM : whole ? mask_list_labels(voxels, &labels) : 0;
    rc = rc ? rc : text_open(&head);
    if (rc == 0) {
        mask_put_head(head.out, &mask->grid, mask->layers, &labels);
        rc = text_close(&head);
    }
    free(voxels);
    free(labels.items);
    if (rc)
        return mask_unreadable(rc, error);
    const bool same = whole && head.size == (size_t)mask->runs && memcmp(head.bytes, mask->bytes, head.size) == 0;
    free(head.bytes);
    return same ? 0 : mask_damaged("the mask is damaged", error);
}

/* Reads the whole file. */
static int
mask_load_open(struct mask_file *mask, int fd, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return mask_unreadable(-errno, error);
    if (!S_ISREG(status.st_mode) || status.st_size > MASK_BYTES)
        return mask_damaged("the mask is no regular file, or too large", error);
    mask->bytes = malloc((size_t)status.st_size + 1);
    if (!mask->bytes)
        return mask_unreadable(-ENOMEM, error);
    while (mask->size < status.st_size) {
        const ssize_t got = read(fd, mask->bytes + mask->size, (size_t)(status.st_size - mask->size));
        if (got == 0)
            break;
        if (got > 0)
            mask->size += got;
        else if (errno != EINTR)
            return mask_unreadable(-errno, error);
    }
    return 0;
}

static int
mask_check_digest(const struct mask_file *mask, const char *sha256, struct error *error)
{
    struct digest digest;
    if (!*sha256)
        return 0;
    if (digest_bytes(mask->bytes, (size_t)mask->size, &digest) != 0)
        return mask_unreadable(-ENOMEM, error);
    return strcmp(sha256, digest.sha256) == 0 ? 0 : mask_damaged("the mask does not have its digest", error);
}

static int
mask_load(struct mask_file *mask, const char *path, struct error *error)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return mask_damaged("the mask is absent, or a link", error);
    if (fd < 0)
        return mask_unreadable(-errno, error);
    const int rc = mask_load_open(mask, fd, error);
    close(fd);
    return rc;
}

/* Checks that the mask has the voxels of the grid, in its order. */
static int
mask_check_grid(const struct mask_file *mask, const struct volume_grid *grid, struct error *error)
{
    struct volume_walk walk;
    char why[160];
    if (!volume_grid_same(&mask->grid, grid, &walk, why))
        return error_set(error, -EBADMSG, CODE_PROGRAM_MASK_DAMAGED, "the mask is of another grid: %s", why);
    if (walk.first != 0 || walk.stride[0] != 1 || walk.stride[1] != grid->size[0])
        return mask_damaged("the mask is of a grid with other axes", error);
    return 0;
}

int
mask_file_read(const char *path, const char *sha256, const struct volume_grid *grid, struct mask_file **mask,
               struct error *error)
{
    struct mask_file *read = calloc(1, sizeof *read);
    *mask = NULL;
    int rc = read ? mask_load(read, path, error) : mask_unreadable(-ENOMEM, error);
    rc = rc ? rc : mask_check_digest(read, sha256, error);
    if (rc == 0 && !mask_read_head(read))
        rc = mask_damaged("the file is no mask", error);
    rc = rc ? rc : mask_check(read, error);
    rc = rc ? rc : mask_check_grid(read, grid, error);
    if (rc)
        mask_file_free(read);
    else
        *mask = read;
    return rc;
}

void
mask_file_free(struct mask_file *mask)
{
    if (!mask)
        return;
    free(mask->bytes);
    free(mask);
}

/* Sets the bits first .. end - 1 of a row. */
static void
mask_set_bits(uint64_t *row, int64_t first, int64_t end)
{
    for (int64_t word = first / 64; word <= (end - 1) / 64; word++) {
        const int from = word == first / 64 ? (int)(first % 64) : 0;
        const int unused = word == (end - 1) / 64 ? 63 - (int)((end - 1) % 64) : 0;
        row[word] |= ~UINT64_C(0) << from & ~UINT64_C(0) >> unused;
    }
}

void
mask_file_bits(const struct mask_file *mask, const int *values, size_t count, int64_t words_per_row, uint64_t *bits)
{
    bool wanted[MASK_VALUES] = {false};
    const uint8_t *at = mask->bytes + mask->runs, *end = mask->bytes + mask->size;
    const int64_t columns = mask->grid.size[0], rows = mask->grid.size[1] * mask->grid.size[2];
    for (size_t i = 0; i < count; i++) {
        if (values[i] >= 0 && values[i] < MASK_VALUES)
            wanted[values[i]] = true;
    }
    for (int64_t row = 0; row < mask->layers * rows; row++) {
        int64_t length, value;
        for (int64_t x = 0; x < columns && mask_number(&at, end, &length) && mask_number(&at, end, &value);
             x += length) {
            if (wanted[value])
                mask_set_bits(bits + row % rows * words_per_row, x, x + length);
        }
    }
}
