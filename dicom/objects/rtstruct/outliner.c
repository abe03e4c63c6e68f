/* outliner.c - see outliner.h. The mask is always to the right of an outline, which starts upwards. */
#include "dicom/objects/rtstruct/outliner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
outliner_open(struct outliner *outliner, int32_t columns, int32_t rows)
{
    *outliner = (struct outliner){.columns = columns, .rows = rows};
    outliner->edges = calloc((size_t)columns * (size_t)rows, sizeof(*outliner->edges));
    return outliner->edges ? 0 : -ENOMEM;
}

void
outliner_close(struct outliner *outliner)
{
    free(outliner->edges);
    free(outliner->vertices);
    free(outliner->loops);
    free(outliner->points);
    *outliner = (struct outliner){0};
}

/* Makes room for one more element. Returns false if memory is short. */
static bool
outline_grow(void **array, int32_t *room, int32_t count, size_t size)
{
    if (count < *room)
        return true;
    const int32_t more = *room < 1024 ? 1024 : *room > INT32_MAX / 2 ? INT32_MAX : 2 * *room;
    void *grown = more > *room ? reallocarray(*array, (size_t)more, size) : NULL;
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

/* Returns the index of a new vertex, or -ENOMEM. */
static int32_t
outline_add_vertex(struct outliner *outliner, struct outline_point at, int32_t before)
{
    if (!outline_grow((void **)&outliner->vertices, &outliner->vertex_room, outliner->vertex_count,
                      sizeof(*outliner->vertices)))
        return -ENOMEM;
    outliner->vertices[outliner->vertex_count] = (struct outline_vertex){at, before};
    return outliner->vertex_count++;
}

static bool
outline_has(const struct mask_plane *plane, int32_t x, int32_t y)
{
    return x >= 0 && y >= 0 && x < plane->columns && y < plane->rows &&
           plane->words[y * plane->words_per_row + x / 64] >> x % 64 & 1;
}

/* Directions along the edges of pixels, clockwise. */
enum { OUTLINE_UP, OUTLINE_RIGHT, OUTLINE_DOWN, OUTLINE_LEFT, OUTLINE_DIRECTIONS };

static const struct outline_step {
    int32_t x, y;
    int32_t right_x, right_y; /* from a corner to the pixel ahead, right of the outline */
    int32_t left_x, left_y;
    int32_t inset; /* of the edges in this direction */
} outline_steps[OUTLINE_DIRECTIONS] = {
    [OUTLINE_UP] = {0, -1, 0, -1, -1, -1, 1},
    [OUTLINE_RIGHT] = {1, 0, 0, 0, 0, -1, 1},
    [OUTLINE_DOWN] = {0, 1, -1, 0, 0, 0, -1},
    [OUTLINE_LEFT] = {-1, 0, -1, -1, -1, 0, -1},
};

/* Returns the direction after a corner. A pixel ahead to the left alone shares only the corner. */
static int
outline_turn(const struct mask_plane *plane, int32_t x, int32_t y, int direction)
{
    const struct outline_step *step = &outline_steps[direction];
    if (!outline_has(plane, x + step->right_x, y + step->right_y))
        return (direction + 1) % OUTLINE_DIRECTIONS;
    if (outline_has(plane, x + step->left_x, y + step->left_y))
        return (direction + 3) % OUTLINE_DIRECTIONS;
    return direction;
}

/* Follows the outline with the left edge of pixel (x, y), where no outline above or left of it begins. */
static int
outline_follow(struct outliner *outliner, const struct mask_plane *plane, int32_t x, int32_t y)
{
    const int32_t first = outliner->vertex_count;
    int direction = OUTLINE_UP;
    if (!outline_grow((void **)&outliner->loops, &outliner->loop_room, outliner->loop_count, sizeof(*outliner->loops)))
        return -ENOMEM;
    outliner->loops[outliner->loop_count++] =
        (struct outline_loop){.first = first, .row = y, .is_hole = outline_has(plane, x, y - 1)};
    /* Start at the lower end of the edge, so that all of its pixels get the vertex above it. */
    while (outline_has(plane, x, y + 1) && !outline_has(plane, x - 1, y + 1))
        y++;
    const int32_t start_x = x, start_y = ++y;
    do {
        const struct outline_step *step = &outline_steps[direction];
        if (direction == OUTLINE_UP)
            outliner->edges[(int64_t)(y - 1) * outliner->columns + x] = outliner->vertex_count + 1;
        x += step->x;
        y += step->y;
        const int next = outline_turn(plane, x, y, direction);
        if (next == direction)
            continue;
        const int vertical = direction % 2 == 0 ? direction : next, horizontal = direction % 2 == 0 ? next : direction;
        const struct outline_point at = {4 * x + outline_steps[vertical].inset,
                                         4 * y + outline_steps[horizontal].inset};
        if (outline_add_vertex(outliner, at, outliner->vertex_count - 1) < 0)
            return -ENOMEM;
        direction = next;
    } while (x != start_x || y != start_y || direction != OUTLINE_UP);
    outliner->vertices[first].before = outliner->vertex_count - 1;
    return 0;
}

/*
 * Joins a hole to an outline: leftwards from its top left corner, above it, to the first left edge of a pixel. That
 * edge belongs to the outline, or to a hole whose first pixel precedes this hole's in raster order.
 */
static int
outline_join(struct outliner *outliner, const struct mask_plane *plane, const struct outline_loop *hole)
{
    const int32_t right = hole->first, left = right + 1; /* the corners of its top edge */
    const int32_t row = hole->row;
    int32_t x = (outliner->vertices[left].at.x + 1) / 4 - 1;
    while (outline_has(plane, x, row - 1) && outline_has(plane, x, row))
        x--;
    const int32_t y = outline_has(plane, x, row - 1) ? row : row - 1;
    const int32_t above = outliner->edges[(int64_t)y * outliner->columns + x + 1] - 1;
    const struct outline_point at = {4 * (x + 1) + 1, 4 * row - 1};
    const int32_t there = outline_add_vertex(outliner, at, outliner->vertices[above].before);
    const int32_t back = outline_add_vertex(outliner, at, right);
    if (there < 0 || back < 0)
        return -ENOMEM;
    outliner->vertices[left].before = there;
    outliner->vertices[above].before = back;
    return 0;
}

/* Clears the rows that have a pixel of the plane. */
static void
outline_clear(struct outliner *outliner, const struct mask_plane *plane)
{
    for (int32_t y = 0; y < plane->rows; y++) {
        const struct mask_plane row = {plane->words + y * plane->words_per_row, plane->words_per_row, plane->columns,
                                       1};
        if (mask_any(&row))
            memset(outliner->edges + (int64_t)y * plane->columns, 0, (size_t)plane->columns * sizeof(*outliner->edges));
    }
}

int
outliner_trace(struct outliner *outliner, const struct mask_plane *plane, bool keyholes)
{
    outliner->vertex_count = outliner->loop_count = outliner->next = 0;
    outline_clear(outliner, plane);
    for (int32_t y = 0; y < plane->rows; y++) {
        const uint64_t *words = plane->words + y * plane->words_per_row;
        uint64_t last = 0;
        for (int32_t word = 0; word < (plane->columns + 63) / 64; word++) {
            uint64_t starts = words[word] & ~(words[word] << 1 | last);
            last = words[word] >> 63;
            for (; starts; starts &= starts - 1) {
                const int32_t x = 64 * word + __builtin_ctzll(starts);
                if (x >= plane->columns)
                    break;
                if (outliner->edges[(int64_t)y * plane->columns + x])
                    continue;
                const int rc = outline_follow(outliner, plane, x, y);
                if (rc)
                    return rc;
            }
        }
    }
    /* From the last, so that keyholes at one edge are in the order of the edge. */
    for (int32_t i = outliner->loop_count - 1; keyholes && i >= 0; i--)
        if (outliner->loops[i].is_hole) {
            const int rc = outline_join(outliner, plane, &outliner->loops[i]);
            if (rc)
                return rc;
            outliner->loops[i].first = -1;
        }
    return 0;
}

/* Returns whether the way from a to c passes b without turning. */
static bool
outline_passes(struct outline_point a, struct outline_point b, struct outline_point c)
{
    return (a.x == b.x && b.x == c.x && (a.y <= b.y) == (b.y <= c.y)) ||
           (a.y == b.y && b.y == c.y && (a.x <= b.x) == (b.x <= c.x));
}

int32_t
outliner_next(struct outliner *outliner)
{
    while (outliner->next < outliner->loop_count && outliner->loops[outliner->next].first < 0)
        outliner->next++;
    if (outliner->next == outliner->loop_count)
        return 0;
    const int32_t first = outliner->loops[outliner->next++].first;
    int32_t count = 0, vertex = first;
    do {
        if (!outline_grow((void **)&outliner->points, &outliner->point_room, count, sizeof(*outliner->points)))
            return -ENOMEM;
        struct outline_point *points = outliner->points;
        const struct outline_point at = outliner->vertices[vertex].at;
        while (count > 0 && ((points[count - 1].x == at.x && points[count - 1].y == at.y) ||
                             (count > 1 && outline_passes(points[count - 2], points[count - 1], at))))
            count--;
        points[count++] = at;
        vertex = outliner->vertices[vertex].before;
    } while (vertex != first);
    return count;
}

bool
outliner_has_hole(const struct outliner *outliner)
{
    bool found = false;
    for (int32_t i = 0; i < outliner->loop_count && !found; i++)
        found = outliner->loops[i].is_hole;
    return found;
}
