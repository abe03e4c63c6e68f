/*
 * volume_file.h - NIfTI-1, NIfTI-2 and NRRD files: written as results and for a program of the site, and read from one.
 *
 * Files are untrusted. A header is read and checked first; the caller compares it with the grid that it expects before it
 * reads voxels, so that no file makes a process allocate or inflate more than the expected volume. Functions are
 * thread-safe, do not log, and return 0 or -errno with the error filled.
 */
#ifndef NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_FILE_H
#define NOCTULE_SERVICE_COMMON_VOLUME_VOLUME_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum volume_type {
    VOLUME_UINT8,
    VOLUME_INT8,
    VOLUME_UINT16,
    VOLUME_INT16,
    VOLUME_UINT32,
    VOLUME_INT32,
    VOLUME_UINT64,
    VOLUME_INT64,
    VOLUME_FLOAT32,
    VOLUME_FLOAT64
};

enum volume_format { VOLUME_NIFTI, VOLUME_NRRD };

/* A box of voxels in space. */
struct volume_grid {
    int64_t size[3];  /* columns, rows, slices */
    double to_mm[12]; /* 3 x 4, row major: indices (x, y, z, 1) to mm of the voxel centre, LPS (PS3.3 C.7.6.2.1.1) */
    bool in_pixels;   /* written only: the size of a pixel is not known, and stands for 1 mm in `to_mm` */
};

struct volume_header {
    struct volume_grid grid;
    enum volume_type type;
    double slope, intercept; /* of the values; 1 and 0 if the file has none */
    bool swapped;            /* the bytes of each value must be swapped */
    bool gzip;
    int64_t stream_offset; /* bytes of the file before the gzip stream, or before the voxels without one */
    int64_t data_offset;   /* bytes before the first voxel, inflated, from there */
    char data_file[256];   /* file of the voxels, in the same folder; "": this file */
};

/* Fills a slice: size[0] * size[1] values, columns fastest. */
typedef void volume_fill(void *context, int64_t slice, void *values);

/* Bytes of a file: as they are, or gzip. Readers open stored gzip as any other; it takes no time to compress. */
enum volume_gzip { VOLUME_PLAIN, VOLUME_GZIP_STORED, VOLUME_GZIP };

/*
 * Writes voxels of VOLUME_UINT8, _UINT16, _INT16 or _FLOAT32 (NRRD: the last two), slice by slice, to a descriptor at offset 0:
 * NIfTI-1 with sform and qform, or NRRD with space left-posterior-superior and raw voxels. Equal input gives equal bytes.
 * If the grid is in pixels, NIfTI states no unit of its axes, and its description has the reason. Calls `fill` in order, in
 * this thread; gzip runs in `threads` threads, which need 2 to 3 MiB each, or twice a larger slice.
 * Code besides those of a system call: SIZE_IMPLAUSIBLE for more than 32767 voxels along an axis of NIfTI.
 */
int volume_write_to(int fd, enum volume_format format, enum volume_gzip gzip, const struct volume_grid *grid,
                    enum volume_type type, volume_fill *fill, void *context, int threads, struct error *error);

/* Returns a bound of the memory that gzip needs for slices of so many bytes. */
int64_t volume_gzip_bytes(int64_t slice, int threads);

/* Writes into a new file as above. NIfTI whose name ends in ".gz" is stored gzip. Does not sync. Leaves no file after a
 * failure. */
int volume_write(int folder, const char *name, enum volume_format format, const struct volume_grid *grid,
                 enum volume_type type, volume_fill *fill, void *context, struct error *error);

/*
 * Reads a header: .nii, .nii.gz (NIfTI-1 and NIfTI-2), .hdr with .img, .nrrd, .nhdr with a data file in the same folder,
 * both byte orders. `name` may lead through folders. The file must be there (PROGRAM_NO_OUTPUT), be regular and have one
 * name (PROGRAM_OUTPUT_NOT_REGULAR); a pipe does not block. Axes beyond the third must have size 1, and voxels one
 * component (PROGRAM_NOT_3D). No orientation, a singular one, or a unit other than mm: PROGRAM_GRID_DIFFERS. Other
 * faults: PROGRAM_OUTPUT_UNREADABLE. A slope that is 0 or not finite means none (nifti1.h).
 */
int volume_read_header(int folder, const char *name, enum volume_format format, struct volume_header *header,
                       struct error *error);

/* Receives `count` equal values from voxel `first` on, in the order of the file. Neighbours of a run may have the same
 * value. Returns 0, or -errno to stop. */
typedef int volume_take(void *context, int64_t first, double value, int64_t count, struct error *error);

/*
 * Reads the voxels as runs of real-world values, slope and intercept applied, with 1 MiB of memory. Fewer voxels or one byte more
 * than the header states: PROGRAM_OUTPUT_SIZE. Damaged gzip, or gzip that is cut off: PROGRAM_OUTPUT_UNREADABLE.
 */
int volume_read(int folder, const char *name, const struct volume_header *header, volume_take *take, void *context,
                struct error *error);

/* As volume_read() and its function, for images with few runs of equal values: takes blocks of values. */
typedef int volume_take_block(void *context, int64_t first, const double *values, int64_t count, struct error *error);
int volume_read_blocks(int folder, const char *name, const struct volume_header *header, volume_take_block *take,
                       void *context, struct error *error);

/* ------------------------------------------------------------------------- volume_values.c ---- */

/* Values of a volume file as numbers, and runs of them. */

/* Returns the bytes per value. */
size_t volume_type_size(enum volume_type type);

/* Returns a value, which need not be aligned; `swapped`: in the other byte order. */
double volume_value(enum volume_type type, bool swapped, const void *bytes);

/* Sets the values of `count` adjacent ones. */
void volume_values(enum volume_type type, bool swapped, const void *bytes, int64_t count, double *values);

/* Returns how many of `count` values of `size` bytes are the same as the first; at least 1. */
int64_t volume_run(const void *values, int64_t count, size_t size);

#endif
