/* contours.c - see contours.h. A crossing flips the bit of the voxel where it enters a row. Prefix
 * sums of these bits give the area of a contour. */
#include "kernels/mask/contours.h"
#include "base/limits.h"
#include "kernels/mask/between.h"
#include "kernels/mask/contours_overlap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONTOURS_ENCLOSE = 3 }; /* min points of an area */

/* A pixel in the fixed-point coordinates of contours. */
#define CONTOURS_PIXEL    4294967296.0
#define CONTOURS_FARTHEST 1048576.0 /* pixels: products of coordinates fit in 127 bits */
#define CONTOURS_NEAR     ((int64_t)(CONTOURS_CENTRE_TOLERANCE * CONTOURS_PIXEL))

__extension__ typedef __int128 contours_product;

/* A point's place on its plane, and its distance along the normal from the first plane's origin. */
struct contours_point {
    int64_t x, y;
};

struct contours_work {
    const struct image_planes *planes;
    double normal[3];
    int64_t words_per_row;
    bool centres;    /* voxels whose centres lie on a contour belong to it */
    uint64_t *edges; /* voxels on edges in the current plane; 0 between planes; NULL without `centres` */
    int64_t crossings;
    int64_t budget;     /* words that may still be compared */
    int64_t kept;       /* words of areas of the current plane */
    int64_t *planes_of; /* plane per contour; -1: it encloses no area */
    int64_t *order;     /* contours by plane */
    uint64_t *area;     /* area of one contour on a plane; 0 between contours */
    struct contours_part *parts;
    uint64_t *bits;
    struct contours_drawn *drawn;
    struct error *error;
};

static double
contours_height(const struct contours_work *work, const double point[3])
{
    return image_planes_along(point, work->planes->origins, work->normal);
}

static double
contours_plane_height(const struct contours_work *work, int64_t plane)
{
    return contours_height(work, work->planes->origins + 3 * plane);
}

/* Returns the max distance of points from a plane. */
static double
contours_tolerance(const struct contours_work *work, int64_t plane)
{
    const double height = contours_plane_height(work, plane);
    double distance = INFINITY;

    if (plane > 0)
        distance = height - contours_plane_height(work, plane - 1);
    if (plane + 1 < work->planes->extent.slices)
        distance = fmin(distance, contours_plane_height(work, plane + 1) - height);
    if (isinf(distance))
        distance = work->planes->thickness;
    return CONTOURS_TOLERANCE * distance;
}

/* Sets `plane` to the plane of a contour, or fills the error if there is no such plane. */
static int
contours_find_plane(struct contours_work *work, const struct contour *contour, int64_t number, int64_t *plane)
{
    double lowest = INFINITY, highest = -INFINITY;

    for (int64_t i = 0; i < contour->count; i++) {
        const double height = contours_height(work, contour->points + 3 * i);

        lowest = fmin(lowest, height);
        highest = fmax(highest, height);
    }
    /* Find the nearest plane, the lower one of two equally near. */
    const double height = lowest + (highest - lowest) / 2;
    int64_t low = 0, high = work->planes->extent.slices - 1;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const double below = contours_plane_height(work, middle);
        const double above = contours_plane_height(work, middle + 1);

        if (height - below <= above - height)
            high = middle;
        else
            low = middle + 1;
    }
    *plane = low;
    const double own = contours_plane_height(work, *plane);
    const double away = fmax(fabs(lowest - own), fabs(highest - own));
    const double tolerance = contours_tolerance(work, *plane);
    if (away <= tolerance) {
        work->drawn->farthest = fmax(work->drawn->farthest, away);
        return 0;
    }
    if (highest - lowest > 2 * tolerance)
        return error_set(work->error, -EBADMSG, CODE_CONTOUR_OBLIQUE,
                         "Contour %lld is oblique to the slices: its points lie from %.3f to %.3f mm "
                         "off the nearest slice.",
                         (long long)number, lowest - own, highest - own);
    return error_set(work->error, -EBADMSG, CODE_CONTOUR_OFF_PLANES,
                     "Contour %lld lies %.3f mm off the nearest slice; %.3f mm are allowed.", (long long)number, away,
                     tolerance);
}

/* Counts a point, and finds its place. Returns false for one that is too far away or not a number. */
static bool
contours_place(struct contours_work *work, int64_t plane, const double point[3], struct contours_point *place)
{
    const struct image_planes *planes = work->planes;
    const double *origin = planes->origins + 3 * plane;
    const double x = image_planes_along(point, origin, planes->axes) / planes->spacing[0];
    const double y = image_planes_along(point, origin, planes->axes + 3) / planes->spacing[1];

    if (!(fabs(x) < CONTOURS_FARTHEST && fabs(y) < CONTOURS_FARTHEST))
        return false;
    place->x = llrint(x * CONTOURS_PIXEL);
    place->y = llrint(y * CONTOURS_PIXEL);
    /* The centre of the nearest pixel. */
    const int64_t centre_x = ((place->x + ((int64_t)1 << 31)) >> 32) * ((int64_t)1 << 32);
    const int64_t centre_y = ((place->y + ((int64_t)1 << 31)) >> 32) * ((int64_t)1 << 32);
    work->drawn->points++;
    if (llabs(place->x - centre_x) > CONTOURS_NEAR || llabs(place->y - centre_y) > CONTOURS_NEAR)
        return true;
    work->drawn->on_centres++;
    if (work->centres) /* they belong to the contour */
        *place = (struct contours_point){centre_x, centre_y};
    return true;
}

/* Returns the first whole pixel that is not below. */
static int64_t
contours_ceiling(int64_t place)
{
    return (place >> 32) + ((place & 0xFFFFFFFF) != 0);
}

/*
 * Returns the first column whose centre is not left of an edge where it crosses a row. In double
 * precision, a crossing has an error below 2^-30 pixels: only crossings near a centre need exact
 * products. Sets on_centre if the edge crosses the row at the centre of that column.
 */
static int64_t
contours_column(struct contours_point low, struct contours_point high, int64_t row, bool *on_centre)
{
    const int64_t rise = high.y - low.y, run = high.x - low.x;
    const int64_t climb = row * ((int64_t)1 << 32) - low.y;
    const double crossing = ((double)low.x + (double)climb / (double)rise * (double)run) / CONTOURS_PIXEL;
    const double whole = floor(crossing), rest = crossing - whole;

    *on_centre = false;
    if (rest > 1e-6 && rest < 1 - 1e-6)
        return (int64_t)whole + 1;
    const contours_product over = (contours_product)low.x * rise + (contours_product)climb * run;
    const contours_product under = (contours_product)rise << 32;
    const contours_product quotient = over / under;
    *on_centre = over % under == 0;
    return (int64_t)quotient + (over % under > 0);
}

/* Rows of a plane. */
struct contours_rows {
    int64_t first, end;
};

/* Counts crossings of rows. */
static int
contours_count(struct contours_work *work, int64_t crossings)
{
    work->crossings += crossings;
    if (work->crossings <= (int64_t)LIMIT_ROI_CROSSINGS_MI << 20)
        return 0;
    return error_set(work->error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE,
                     "The contours cross rows of pixels more than %d times 2^20 times.", LIMIT_ROI_CROSSINGS_MI);
}

static int64_t
contours_clip(int64_t value, int64_t end)
{
    return value < 0 ? 0 : value < end ? value : end;
}

/* Sets the voxels of a row whose centres lie on an edge along the row. */
static int
contours_touch_row(struct contours_work *work, struct contours_point a, struct contours_point b)
{
    const struct image_extent *extent = &work->planes->extent;
    const int64_t row = a.y >> 32, left = a.x < b.x ? a.x : b.x, right = a.x < b.x ? b.x : a.x;
    const int64_t first = contours_clip(contours_ceiling(left), extent->columns);
    const int64_t end = contours_clip((right >> 32) + 1, extent->columns);

    if ((a.y & 0xFFFFFFFF) != 0 || row < 0 || row >= extent->rows || first >= end)
        return 0;
    uint64_t *words = work->edges + row * work->words_per_row;
    for (int64_t word = first / 64; word <= (end - 1) / 64; word++) {
        const int64_t from = word * 64 < first ? first % 64 : 0;
        const int64_t rest = end - word * 64;
        const uint64_t below = rest < 64 ? ((uint64_t)1 << rest) - 1 : UINT64_MAX;

        words[word] |= below & UINT64_MAX << from;
    }
    return contours_count(work, (end - first) / 64 + 1);
}

/* Sets the voxels whose centres lie on an edge. */
static int
contours_touch(struct contours_work *work, struct contours_point low, struct contours_point high)
{
    const struct image_extent *extent = &work->planes->extent;

    if (low.y == high.y)
        return contours_touch_row(work, low, high);
    const int64_t first = contours_clip(contours_ceiling(low.y), extent->rows);
    const int64_t end = contours_clip((high.y >> 32) + 1, extent->rows);
    for (int64_t row = first; row < end; row++) {
        bool on_centre;
        const int64_t column = contours_column(low, high, row, &on_centre);

        if (on_centre && column >= 0 && column < extent->columns)
            work->edges[row * work->words_per_row + column / 64] |= (uint64_t)1 << column % 64;
    }
    return contours_count(work, end > first ? end - first : 0);
}

/* Flips, in each row that the edge crosses, the first voxel that is not left of it. */
static int
contours_edge(struct contours_work *work, struct contours_rows *rows, struct contours_point low,
              struct contours_point high)
{
    const struct image_extent *extent = &work->planes->extent;
    bool on_centre;

    if (low.y > high.y) {
        const struct contours_point swapped = low;
        low = high;
        high = swapped;
    }
    int rc = work->centres ? contours_touch(work, low, high) : 0;
    const int64_t first = contours_clip(contours_ceiling(low.y), extent->rows);
    const int64_t end = contours_clip(contours_ceiling(high.y), extent->rows);
    if (rc || first >= end)
        return rc;
    rc = contours_count(work, end - first);
    if (rc)
        return rc;
    rows->first = first < rows->first ? first : rows->first;
    rows->end = end > rows->end ? end : rows->end;
    uint64_t *words = work->area + first * work->words_per_row;
    for (int64_t row = first; row < end; row++, words += work->words_per_row) {
        const int64_t crossing = contours_column(low, high, row, &on_centre);
        const int64_t column = crossing > 0 ? crossing : 0;

        if (column < extent->columns)
            words[column / 64] ^= (uint64_t)1 << column % 64;
    }
    return 0;
}

/* Returns twice the area of the triangle of two points and the origin. Its sign is the
 * direction. */
static contours_product
contours_turn(struct contours_point a, struct contours_point b)
{
    return (contours_product)a.x * b.y - (contours_product)b.x * a.y;
}

/* Flips the area of a contour in work->area. The caller must fill the rows. Sets the direction of
 * the contour: 1, -1, or 0 if it has no area, or if directions do not count. */
static int
contours_draw(struct contours_work *work, const struct contour *contour, int64_t number, struct contours_rows *rows,
              int *direction)
{
    struct contours_point first = {0, 0}, before = {0, 0}, place;
    const int64_t plane = work->planes_of[number];
    contours_product turn = 0;
    int rc = 0;

    for (int64_t i = 0; i < contour->count && !rc; i++) {
        if (!contours_place(work, plane, contour->points + 3 * i, &place))
            return error_set(work->error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE,
                             "Point %lld of contour %lld lies more than 2^20 pixels away.", (long long)i + 1,
                             (long long)number + 1);
        if (i == 0)
            first = place;
        else
            rc = contours_edge(work, rows, before, place);
        turn += i > 0 ? contours_turn(before, place) : 0;
        before = place;
    }
    turn += contours_turn(before, first);
    *direction = work->centres ? (turn > 0) - (turn < 0) : 0;
    return rc ? rc : contours_edge(work, rows, before, first);
}

/* Replaces each bit of a row by the sum, modulo 2, of the bits up to it. Returns the number of bits set. */
static int64_t
contours_fill(const struct contours_work *work, const struct contours_rows *rows)
{
    const int64_t columns = work->planes->extent.columns;
    int64_t voxels = 0;

    for (int64_t row = rows->first; row < rows->end; row++) {
        uint64_t *words = work->area + row * work->words_per_row, inside = 0;

        for (int64_t x = 0; x < columns; x += 64) {
            uint64_t word = words[x / 64];

            for (int shift = 1; shift < 64; shift *= 2)
                word ^= word << shift;
            word ^= inside;
            inside = word >> 63 ? UINT64_MAX : 0;
            if (columns - x < 64)
                word &= UINT64_MAX >> (64 - (columns - x));
            words[x / 64] = word;
            voxels += __builtin_popcountll(word);
        }
    }
    return voxels;
}

static int
contours_too_many(const struct contours_work *work)
{
    return error_set(work->error, -EBADMSG, CODE_SIZE_IMPLAUSIBLE,
                     "The contours of one slice have areas of more than %d times 2^20 words of pixels, or those of all "
                     "slices overlap in more than %d times 2^20.",
                     LIMIT_ROI_AREAS_MI, LIMIT_ROI_OVERLAP_MI);
}

static int
contours_no_memory(const struct contours_work *work)
{
    return error_set(work->error, -ENOMEM, CODE_OUT_OF_MEMORY, "There is not enough memory to draw contours.");
}

/* Moves the area of a contour to its own part. */
static int
contours_keep(struct contours_work *work, const struct contours_rows *rows, int64_t voxels, int direction,
              struct contours_part *part)
{
    const int64_t words = (rows->end - rows->first) * work->words_per_row;
    uint64_t *area = work->area + rows->first * work->words_per_row;

    work->kept += words;
    if (work->kept > (int64_t)LIMIT_ROI_AREAS_MI << 20)
        return contours_too_many(work);
    *part = (struct contours_part){.first_row = rows->first,
                                   .end_row = rows->end,
                                   .first_word = work->words_per_row,
                                   .voxels = voxels,
                                   .direction = direction};
    part->words = malloc((size_t)words * sizeof(*part->words));
    if (!part->words)
        return contours_no_memory(work);
    for (int64_t i = 0; i < words; i++) {
        const int64_t word = i % work->words_per_row;

        if (area[i] && word < part->first_word)
            part->first_word = word;
        if (area[i] && word >= part->end_word)
            part->end_word = word + 1;
        part->words[i] = area[i];
        area[i] = 0;
    }
    return 0;
}

/* Adds the voxels on edges to the mask of a plane. */
static void
contours_add_edges(struct contours_work *work, uint64_t *bits)
{
    for (int64_t i = 0; work->edges && i < work->planes->extent.rows * work->words_per_row; i++) {
        bits[i] |= work->edges[i];
        work->edges[i] = 0;
    }
}

/* Draws `count` contours of one plane: CLOSEDPLANAR_XOR flips, others are combined by overlaps. */
static int
contours_draw_plane(struct contours_work *work, const struct contour *contours, const int64_t *items, int64_t count,
                    uint64_t *bits)
{
    struct contours_overlaps found = {0};
    int64_t parts = 0;
    int rc = 0;

    work->kept = 0;
    for (int64_t i = 0; i < count && !rc; i++) {
        struct contours_rows rows = {work->planes->extent.rows, 0};
        const struct contour *contour = &contours[items[i]];
        int direction = 0;

        rc = contours_draw(work, contour, items[i], &rows, &direction);
        const int64_t voxels = rc ? 0 : contours_fill(work, &rows);
        if (rc || voxels == 0 || contour->is_xor || count == 1) {
            /* Flip work->area in the mask of a plane, and clear it. */
            for (int64_t k = rows.first * work->words_per_row; k < rows.end * work->words_per_row; k++) {
                bits[k] ^= work->area[k];
                work->area[k] = 0;
            }
        } else
            rc = contours_keep(work, &rows, voxels, direction, &work->parts[parts++]);
    }
    if (!rc && parts > 0)
        rc = contours_combine(work->parts, parts, work->words_per_row, &work->budget, bits, &found);
    if (!rc)
        contours_add_edges(work, bits);
    for (int64_t i = 0; i < parts; i++)
        free(work->parts[i].words);
    work->drawn->copies += found.copies;
    work->drawn->crossed += found.crossed;
    return rc == -E2BIG ? contours_too_many(work) : rc == -ENOMEM ? contours_no_memory(work) : rc;
}

/* Finds the plane of each contour, and sorts the contours by plane. Fills ends[z] with the end of
 * plane z in the order. */
static int
contours_sort(struct contours_work *work, const struct contours_request *request, bool *has, int64_t *ends)
{
    const int64_t slices = work->planes->extent.slices;
    int64_t sum = 0;

    for (int64_t i = 0; i < request->count; i++) {
        int64_t plane = -1;
        const int rc = request->contours[i].count < (work->centres ? 1 : CONTOURS_ENCLOSE)
                           ? 0
                           : contours_find_plane(work, &request->contours[i], i + 1, &plane);
        if (rc)
            return rc;
        work->planes_of[i] = plane;
        if (plane >= 0) {
            has[plane] = true;
            ends[plane]++;
        }
    }
    for (int64_t z = 0; z < slices; z++) {
        const int64_t count = ends[z];
        ends[z] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < request->count; i++)
        if (work->planes_of[i] >= 0)
            work->order[ends[work->planes_of[i]]++] = i;
    return 0;
}

static int
contours_draw_all(struct contours_work *work, const struct contours_request *request, const int64_t *ends)
{
    const int64_t plane_words = work->planes->extent.rows * work->words_per_row;
    int rc = 0;

    for (int64_t z = 0, first = 0; z < work->planes->extent.slices && !rc; first = ends[z++]) {
        uint64_t *bits = work->bits + z * plane_words;

        if (ends[z] == first)
            continue;
        rc = contours_draw_plane(work, request->contours, work->order + first, ends[z] - first, bits);
        if (!rc) {
            int64_t voxels = 0;

            for (int64_t i = 0; i < work->planes->extent.rows * work->words_per_row; i++)
                voxels += __builtin_popcountll(bits[i]);
            work->drawn->voxels += voxels;
        }
    }
    return rc;
}

/* `numbers` must have room for two per contour and one per slice. */
static int
contours_run(struct contours_work *work, const struct contours_request *request, bool *has, int64_t *numbers)
{
    const struct image_extent *extent = &request->planes->extent;
    int64_t *ends = numbers + 2 * request->count;

    work->planes_of = numbers;
    work->order = numbers + request->count;
    image_planes_normal(work->planes, work->normal);
    *work->drawn = (struct contours_drawn){.first = -1, .last = -1, .first_missing = -1};
    memset(work->bits, 0, (size_t)(extent->slices * extent->rows * work->words_per_row) * sizeof(*work->bits));
    int rc = contours_sort(work, request, has, ends);
    if (!rc)
        rc = contours_draw_all(work, request, ends);
    if (rc)
        return rc;
    /* Count the planes that have a contour by `has`, and find the first and last of them. */
    struct contours_drawn *drawn = work->drawn;

    for (int64_t plane = 0; plane < work->planes->extent.slices; plane++) {
        if (!has[plane])
            continue;
        drawn->first = drawn->first < 0 ? plane : drawn->first;
        drawn->last = plane;
        drawn->planes++;
    }
    if (drawn->planes > 0)
        drawn->missing = drawn->last - drawn->first + 1 - drawn->planes;
    for (int64_t plane = drawn->first; drawn->missing > 0 && drawn->first_missing < 0; plane++)
        if (!has[plane])
            drawn->first_missing = plane;
    drawn->interpolated = request->interpolate && drawn->missing > 0;
    return drawn->interpolated ? kernels_mask_between(work->planes, has, work->bits, &drawn->voxels, work->error) : 0;
}

int
kernels_mask_contours(const struct contours_request *request, uint64_t *bits, struct contours_drawn *drawn,
                      struct error *error)
{
    const struct image_extent *extent = &request->planes->extent;
    struct contours_work work = {.planes = request->planes,
                                 .words_per_row = (extent->columns + 63) / 64,
                                 .centres = request->centres,
                                 .budget = (int64_t)LIMIT_ROI_OVERLAP_MI << 20,
                                 .bits = bits,
                                 .drawn = drawn,
                                 .error = error};
    const size_t count = (size_t)request->count, slices = (size_t)extent->slices;
    bool *has = calloc(slices, sizeof(*has));
    int64_t *numbers = calloc(2 * count + slices, sizeof(*numbers));

    work.area = calloc((size_t)(extent->rows * work.words_per_row) + 1, sizeof(*work.area));
    if (request->centres)
        work.edges = calloc((size_t)(extent->rows * work.words_per_row) + 1, sizeof(*work.edges));
    work.parts = calloc(count + 1, sizeof(*work.parts));
    const int rc = has && numbers && work.area && work.parts && (work.edges || !request->centres)
                       ? contours_run(&work, request, has, numbers)
                       : contours_no_memory(&work);
    free(work.parts);
    free(work.area);
    free(work.edges);
    free(numbers);
    free(has);
    return rc;
}
