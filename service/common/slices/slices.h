/*
 * slices.h - the brick file: the volume and the masks of a job, for the slice viewer of the web UI.
 *
 * The file, little endian:
 *
 *     0    8 bytes    "NOCTSLC3"
 *     8    u32        bytes of the head, up to the index
 *     12   u32        low 32 bits of XXH3-64 over head and index, from byte 16 on
 *     16   3 u32      columns, rows, slices
 *     28   u8         pixel type (enum image_pixel)
 *     29   u8         1: MONOCHROME1, low values are white
 *     30   u8         bit 0: spacing, origin and axes are known; bit 1: the spacing of a 2-D image is known
 *     31   u8         the largest shift of a block: values are rounded to multiples of at most 2^this. 0: all are exact
 *     32   u32        number of segments
 *     36   u32        number of rescales: 1, or one per slice
 *     40   3 f64      spacing in mm
 *     64   3 f64      origin: the centre of the first voxel in patient coordinates, mm
 *     88   9 f64      axes: unit vectors of columns, rows and slices in patient coordinates
 *     160  2 f64      lower and upper value of the grey window, after the rescale
 *     176  16 bytes   unit of the values (UCUM), padded with zeros
 *     192  2 f64      per rescale: slope, intercept
 *          4 u8, text per segment: red, green, blue, bytes of the label; then the label, UTF-8
 *          2 u32      the index, per block: bytes, and the low 32 bits of XXH3-64 over them
 *                     the blocks, without gaps
 *
 * A block has 16 x 16 x 16 voxels, fewer at the upper ends. Blocks are in the order of their voxels: x fastest. Any plane of
 * 512 x 512 x 600 voxels thus needs at most 1,216 blocks of 38,912. A block:
 *
 *     u8     lower half: the prediction, 0 median, 1 upper, 2 mean; 3: all voxels have the first value, and all up to the
 *            segments is absent. Upper half: the shift
 *     i16    the first value
 *            per slice the table of its widths, two per row, y fastest: the bits of the differences of voxels 0 to 7, and of
 *            8 to 15, which rows of at most 8 voxels lack. 15 stands for 16
 *       u8   lower half: the base; upper half: the form
 *       u*   per width, as it is above the base: 0, 1, 2 or 4 bits in the forms 0 to 3, the lowest bits of a byte first
 *     u16 *  the differences: words with 16 bits of each of 8 voxels, or of those of a shorter row. Bits of the next voxels
 *            follow those of the ones before
 *     per segment with a voxel in the block: u16 its number, plus 0x8000 if it has all voxels; else a bit per row, set if the
 *            row differs from the one before, and u16 per such row: bit x is set if the voxel belongs to the segment
 *
 * Values are 16 bits: 8-bit values are widened, and unsigned ones are stored minus 32768. They are divided by 2^shift and
 * rounded to the nearest. One that would then be above the largest of its type is read as that. A difference is that of a
 * value from its prediction modulo 2^16, as 2d or -2d - 1. A row is predicted by whole rows: the upper one u, the one b in
 * the slice before, and the one d above b. Upper is u, smoothed along x in blocks of 16 columns: the mean of u and the mean
 * of its left and right neighbours within 8 voxels, rounded down. Mean is that of upper and b. Median is the median of u, b
 * and u + b - d. The upper row of a slice is predicted by b, the first slice by upper, and the first row by the first value.
 *
 * Masks are exact. Values are exact if the file then has at most a quarter of the bytes of 16-bit voxels. Otherwise the
 * blocks with the most noise are rounded, by the smallest steps with which it has, as a sample of blocks shows. Two limits may
 * prevent it. A step is at most SLICES_GREYS of 256 greys of the window, so the error is at most half of that. A rounded block
 * still needs about 3 bits per voxel, so its noise is larger than the step.
 *
 * No entropy coder: widths of 8 voxels and shifts of vectors take a fifth of its time. Rows are vectors, for the writer and
 * the reader.
 */
#ifndef NOCTULE_SERVICE_COMMON_SLICES_SLICES_H
#define NOCTULE_SERVICE_COMMON_SLICES_SLICES_H

#include "base/error.h"
#include "base/image.h"

enum {
    SLICES_LABEL = 256,
    SLICES_UNIT = 16,
    SLICES_SEGMENTS = 0x7fff,
    SLICES_GREYS =
        8, /* max step of rounded values, in 256ths of the grey window: 4 exceed a quarter of the bytes more often */
};

#define SLICES_FILE "slices.nslc"

struct slices_segment {
    uint8_t rgb[3];
    char label[SLICES_LABEL]; /* UTF-8 */
};

/* The head. */
struct slices_volume {
    int32_t size[3]; /* columns, rows, slices */
    enum image_pixel pixel;
    bool monochrome1, has_geometry;
    bool in_mm; /* spacing[0] and [1] are mm; else they are 1. True with geometry */
    double spacing[3], origin[3], axes[9];
    double window[2]; /* values that are black and white */
    char unit[SLICES_UNIT];
    int32_t rescale_count; /* 1 or size[2] */
    struct image_rescale *rescales;
    int32_t segment_count;
    struct slices_segment *segments;
    int32_t step;   /* largest step of stored values, a power of two; 1: all are exact. Set by slices_open() */
    uint32_t check; /* of the head and the index: differs if the file was made of other results */
};

/* ------------------------------------------------------------------------------- writing ---- */

/* All borrowed. */
struct slices_request {
    const struct slices_volume *volume;
    const void *voxels;
    const struct image_mask *const *masks; /* one per segment */
    int threads;
};

/*
 * Writes the file to `fd`, which must be empty. The bytes do not depend on the number of threads. Returns 0 or -errno.
 */
int slices_write(const struct slices_request *request, int fd);

/* Returns a bound of the memory for it. */
int64_t slices_write_bytes(const int32_t size[3], size_t segment_count, int threads);

/* ------------------------------------------------------------------------------- reading ---- */

enum slices_view { SLICES_AXIAL, SLICES_CORONAL, SLICES_SAGITTAL, SLICES_VIEWS };

/* The path of a view in addresses: "ax", "cor", "sag". */
extern const char *const slices_view_keys[SLICES_VIEWS];

/* Returns the largest error of a value, after the rescale. */
double slices_error(const struct slices_volume *volume);

/* How a view lies in the volume. Axes are 0: columns, 1: rows, 2: slices. */
struct slices_layout {
    int across, down, through;
    bool from_right, from_below, from_end; /* the direction of these axes is reversed */
};

/* A file that is open. Used by one thread at a time. */
struct slices;

/*
 * Reads the head and the index, and checks them. The file borrows `fd`. Returns 0, -EBADMSG with SLICES_DAMAGED or
 * SLICES_VERSION, or another -errno with an error. *file is NULL on error.
 */
int slices_open(int fd, struct slices **file, struct error *error);
void slices_close(struct slices *file);
const struct slices_volume *slices_volume_of(const struct slices *file);

/*
 * Returns the layout of a view, as readers of images expect it: the patient's right on the left, anterior or head at the
 * top; sagittal views with anterior on the left. Views are counted toward the head, posterior, and left.
 */
struct slices_layout slices_layout_of(const struct slices_volume *volume, enum slices_view view);

/* Writes the directions of the left, right, upper and lower edge of a view; "" without geometry. */
void slices_edges(const struct slices_volume *volume, const struct slices_layout *layout, char edges[4][4]);
/* Writes the position of a plane for people, such as "H12.5 mm"; "" without geometry. */
#define SLICES_PLACE 32
void slices_place(const struct slices_volume *volume, const struct slices_layout *layout, int32_t at,
                  char text[SLICES_PLACE]);

struct slices_plane {
    int32_t columns, rows;
    uint16_t *values; /* stored values; int16_t if the pixels are signed */
    /* Per segment with a voxel in the plane: its number, and rows of (columns + 7) / 8 bytes with bit x % 8 of byte x / 8. */
    int32_t layer_count;
    int32_t *layer_segments;
    uint8_t **layers;
};

/* Returns whether a layer has a pixel. */
static inline bool
slices_has(const struct slices_plane *plane, int32_t layer, int32_t x, int32_t y)
{
    return plane->layers[layer][(int64_t)y * ((plane->columns + 7) / 8) + x / 8] >> x % 8 & 1;
}

/*
 * From now on keeps the decoded blocks of the last plane, of at most 16 MiB. They have its neighbours, up to 16 planes in all,
 * which then take a tenth of the time. Returns 0 or -ENOMEM.
 */
int slices_keep(struct slices *file);
/* Returns how many blocks a plane is away from the kept ones; 0: they have it. INT64_MAX: none are kept of such planes. */
int64_t slices_kept_distance(const struct slices *file, const struct slices_layout *layout, int32_t at);

/*
 * Reads the blocks of a plane. `at` must be within the view. Call slices_plane_free() in any case. Returns 0, -EBADMSG with
 * SLICES_DAMAGED, or another -errno with an error.
 */
int slices_read_plane(struct slices *file, const struct slices_layout *layout, int32_t at, struct slices_plane *plane,
                      struct error *error);
void slices_plane_free(struct slices_plane *plane);

#endif
