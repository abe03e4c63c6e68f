/*
 * fuzz_slices.c - any bytes as a brick file of the slice viewer: refused with a reason, or planes of the size of its head.
 *
 * The checksums are set right first, so that bytes behind them reach the reader.
 */
#include "service/common/slices/slices.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/scratch_file.h"

#include <xxhash.h>

enum { CHECK_AT = 12, CHECKED = 16, FIXED = 192, BLOCK = 16, MAX_SIZE = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint32_t
number_at(const uint8_t *bytes, size_t at)
{
    uint32_t number;
    memcpy(&number, bytes + at, sizeof number);
    return number;
}

/* Sets the checksums of the blocks, and that of head and index. */
static void
mend(uint8_t *bytes, size_t size)
{
    const uint64_t head = number_at(bytes, 8);
    uint64_t blocks = 1, at;
    for (size_t i = 0; i < 3; i++)
        blocks *= (number_at(bytes, 16 + 4 * i) % (MAX_SIZE + 1) + BLOCK - 1) / BLOCK;
    if (head < FIXED || head > size || blocks > (size - head) / 8)
        return;
    at = head + 8 * blocks;
    for (uint64_t i = 0; i < blocks; i++) {
        const uint32_t part = number_at(bytes, head + 8 * i);
        if (part > size - at)
            break;
        const uint32_t check = (uint32_t)XXH3_64bits(bytes + at, part);
        memcpy(bytes + head + 8 * i + 4, &check, sizeof check);
        at += part;
    }
    const uint32_t check = (uint32_t)XXH3_64bits(bytes + CHECKED, head + 8 * blocks - CHECKED);
    memcpy(bytes + CHECK_AT, &check, sizeof check);
}

static void
read_plane(struct slices *file, enum slices_view view, int32_t of_three)
{
    const struct slices_volume *volume = slices_volume_of(file);
    const struct slices_layout layout = slices_layout_of(volume, view);
    const int32_t last = volume->size[layout.through] - 1, at = last / 2 * of_three;
    struct slices_plane plane;
    struct error error = {0};
    char edges[4][4], place[SLICES_PLACE];
    slices_edges(volume, &layout, edges);
    slices_place(volume, &layout, at, place);
    must(volume->step >= 1 && volume->step <= 4096 && (volume->step & (volume->step - 1)) == 0);
    must(slices_error(volume) >= 0);
    must(memchr(place, '\0', sizeof place) != NULL);
    const int rc = slices_read_plane(file, &layout, at, &plane, &error);
    if (rc)
        must_be_error(rc, &error);
    must(plane.columns == volume->size[layout.across] && plane.rows == volume->size[layout.down]);
    for (int32_t i = 0; i < plane.layer_count; i++)
        must(plane.layer_segments[i] >= 0 && plane.layer_segments[i] < volume->segment_count);
    slices_plane_free(&plane);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct slices *file;
    struct error error = {0};
    uint8_t *own = malloc(size + 1);
    must(own != NULL);
    memcpy(own, bytes, size);
    if (size >= FIXED)
        mend(own, size);
    const int folder = scratch_file("slices", own, size);
    free(own);
    const int fd = openat(folder, "slices", O_RDONLY | O_CLOEXEC);
    must(fd >= 0);
    const int rc = slices_open(fd, &file, &error);
    if (rc) {
        must_be_error(rc, &error);
        must(file == NULL);
    }
    for (int kept = 0; rc == 0 && kept < 2; kept++) {
        for (enum slices_view view = 0; view < SLICES_VIEWS; view++)
            for (int32_t of_three = 0; of_three < 3; of_three++)
                read_plane(file, view, of_three);
        must(slices_keep(file) == 0);
    }
    slices_close(file);
    close(fd);
    return 0;
}
