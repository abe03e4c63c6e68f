/*
 * fuzz_mask.c - any bytes as a stored mask: refused with a reason, or a mask that has the bytes that the writer gives it.
 */
#include "base/limits.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/common/volume/mask_file.h"
#include "tests/fuzz/must.h"
#include "tests/fuzz/scratch_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 8, ROWS = 4, SLICES = 2, VOXELS = COLUMNS * ROWS * SLICES };

static const struct volume_grid grid = {.size = {COLUMNS, ROWS, SLICES},
                                        .to_mm = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2.5, 0}};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Fills the map of a mask with one layer from the bits of its labels, which its text lists. Returns their voxels in all
 * layers. */
static int64_t
fill_map(const struct mask_file *mask, const uint8_t *bytes, size_t size, uint16_t map[VOXELS])
{
    char *text = strndup((const char *)bytes, size), *end = text ? strstr(text, "\nend\n") : NULL;
    int64_t sum = 0;
    must(end != NULL);
    *end = '\0';
    for (const char *line = text; (line = strstr(line, "\nlabel ")); line++) {
        uint64_t bits[ROWS * SLICES] = {0};
        int value;
        long long listed;
        int64_t voxels = 0;
        must(sscanf(line, "\nlabel %d %lld", &value, &listed) == 2);
        mask_file_bits(mask, &value, 1, 1, bits);
        for (int at = 0; at < VOXELS; at++) {
            if (!(bits[at / COLUMNS] >> at % COLUMNS & 1))
                continue;
            map[at] = (uint16_t)value;
            voxels++;
        }
        must(value > 0 && voxels > 0 && voxels <= listed);
        sum += listed;
    }
    free(text);
    return sum;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64], sha256[65];
    struct mask_file *mask;
    struct mask_label_list labels;
    struct digest digest;
    struct error error = {0};
    uint16_t map[VOXELS] = {0};
    int64_t again;
    const int folder = scratch_file("mask", bytes, size);
    snprintf(path, sizeof path, "%s/mask", scratch_path);
    const int rc = mask_file_read(path, "", &grid, &mask, &error);
    if (rc) {
        must_be_error(rc, &error);
        must(mask == NULL);
        return 0;
    }
    must(fill_map(mask, bytes, size, map) <= (int64_t)VOXELS * LIMIT_MASK_LAYERS);
    if (memmem(bytes, size, "layers 1\n", 9) && memmem(bytes, size, "to_mm 1 0 0 0 0 1 0 0 0 0 2.5 0\n", 32)) {
        unlinkat(folder, "again", 0);
        must(mask_file_write(folder, "again", &grid, 1, map, &again, sha256, &labels, &error) == 0);
        must(digest_bytes(bytes, size, &digest) == 0 && strcmp(sha256, digest.sha256) == 0);
        free(labels.items);
    }
    mask_file_free(mask);
    return 0;
}
