#include "service/pipeline/results/drawing.h"

#include "service/common/picture/orientation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- colours --- */

/* Converts 0 .. 1 to 0 .. 255. */
static uint8_t
to_step(double value)
{
    return (uint8_t)(255 * (value < 0 ? 0 : value > 1 ? 1 : value) + 0.5);
}

static bool
color_is_taken(const struct drawing *drawing, size_t segments, uint8_t entry)
{
    for (size_t i = 0; i < segments; i++)
        if (drawing->colors[i] == entry)
            return true;
    return false;
}

/* Returns the segment's own colour, or the first that no earlier segment has. */
static uint8_t
segment_color(struct drawing *drawing, size_t segment)
{
    static const struct rgb others[] = {{255, 220, 0},  {0, 200, 255},  {60, 220, 60}, {255, 0, 220},
                                        {255, 140, 0},  {90, 120, 255}, {0, 255, 180}, {255, 150, 170},
                                        {180, 90, 255}, {190, 255, 60}, {255, 60, 60}, {200, 160, 110}};
    const double *rgb = drawing->request->segments[segment].color;
    const struct rgb own = {to_step(rgb[0]), to_step(rgb[1]), to_step(rgb[2])};
    const uint8_t entry = indexed_png_color(&drawing->palette, own);
    if (!color_is_taken(drawing, segment, entry))
        return entry;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const uint8_t other = indexed_png_color(&drawing->palette, others[i]);
        if (!color_is_taken(drawing, segment, other))
            return other;
    }
    return entry;
}

int
drawing_open(const struct drawing_request *request, struct drawing *drawing)
{
    const struct geometry_stack *stack = request->stack;
    const struct image_extent size = {stack->columns, stack->rows, stack->plane_count};
    *drawing = (struct drawing){
        .request = request,
        .masks = malloc((request->segment_count + 1) * sizeof *drawing->masks),
        .volume = {.instances = request->instances, .stack = stack, .voxels = request->voxels},
        .colors = malloc(request->segment_count + 1),
    };
    if (!drawing->masks || !drawing->colors)
        return -ENOMEM;
    indexed_png_start(&drawing->palette);
    drawing->warning = indexed_png_color(&drawing->palette, (struct rgb){255, 196, 0});
    for (size_t i = 0; i < request->segment_count; i++) {
        drawing->masks[i] = request->segments[i].mask;
        drawing->colors[i] = segment_color(drawing, i);
    }
    int rc = panel_volume_make(&drawing->volume);
    if (rc == 0)
        rc = segments_extent_find(drawing->masks, request->segment_count, size, request->threads, &drawing->extent);
    return rc;
}

void
drawing_close(struct drawing *drawing)
{
    panel_volume_free(&drawing->volume);
    free(drawing->masks);
    free(drawing->colors);
}

/* -------------------------------------------------------------------------------- captions -- */

void
drawing_caption(const struct drawing *drawing, const struct panel *panel, bool total, char text[DRAWING_CAPTION_SIZE])
{
    static const char *const planes[] = {"sagittal ", "coronal ", "axial "};
    const struct geometry_stack *stack = drawing->request->stack;
    char number[32] = "", place[ORIENTATION_PLACE_SIZE] = "";
    const char *name = "";
    const struct geometry_plane *plane = &stack->planes[panel->through == 2 ? panel->at : 0];
    const int32_t frames = drawing->request->instances[plane->instance]->frame_count;
    if (stack->flat && frames > 1)
        snprintf(number, sizeof number, "frame %d/%d", plane->frame + 1, frames);
    else if (stack->flat)
        number[0] = '\0'; /* the image is not one of several */
    else if (!panel->reformatted && total)
        snprintf(number, sizeof number, "%d/%d", panel->at + 1, stack->plane_count);
    else if (panel->through == 2)
        snprintf(number, sizeof number, "%d", panel->at + 1);
    if (stack->has_geometry) {
        const double *axis = stack->axes + 3 * (size_t)panel->through, *origin = stack->origin;
        double position = plane->position;
        if (panel->through != 2)
            position = axis[0] * origin[0] + axis[1] * origin[1] + axis[2] * origin[2] +
                       panel->at * stack->spacing[panel->through];
        orientation_place(axis, position, place);
    }
    if (panel->reformatted) {
        int patient[3];
        orientation_of_axes(stack->axes, patient);
        name = planes[patient[panel->through]];
    }
    snprintf(text, DRAWING_CAPTION_SIZE, "%s%s%s%s", name, number, number[0] && place[0] ? ", " : "", place);
}

/* -------------------------------------------------------------------------------- panels ---- */

static uint8_t *
row_at(const struct indexed_png *picture, const struct panel *panel, int y)
{
    return picture->pixels + (ptrdiff_t)(panel->box.top + y) * picture->width + panel->box.left;
}

static void
draw_grey(const struct drawing *drawing, struct indexed_png *picture, const struct panel *panel)
{
    const struct drawing_request *request = drawing->request;
    bool inverted = request->instances[request->stack->planes[0].instance]->monochrome1;
    const double low = inverted ? drawing->window.high : drawing->window.low;
    const double high = inverted ? drawing->window.low : drawing->window.high;
    const double steps = (INDEXED_PNG_GREYS - 1) / (high - low);
    const float scale = (float)steps, shift = (float)(0.5 - low * steps);
    const float *value = panel->values;
    for (int y = 0; y < panel->box.height; y++, value += panel->box.width) {
        uint8_t *entry = row_at(picture, panel, y);
        for (int x = 0; x < panel->box.width; x++) {
            const float level = value[x] * scale + shift;
            entry[x] = (uint8_t)(level < 0 ? 0 : level > INDEXED_PNG_GREYS - 1 ? INDEXED_PNG_GREYS - 1 : level);
        }
    }
}

/* Returns in `core` the covered pixels whose neighbours are covered. Compilers make vectors of the loop. */
static void
find_core(const uint8_t *cover, uint8_t *restrict core, ptrdiff_t pitch, int width)
{
    for (int x = 0; x < width; x++)
        core[x] = cover[x] & cover[x - 1] & cover[x + 1] & cover[x - pitch] & cover[x + pitch];
}

/* Draws the pixels of the segment that have a neighbour outside; with two pixels also their neighbours within. */
static void
draw_outline(struct indexed_png *picture, struct panel *panel, uint8_t color, int outline)
{
    const int width = panel->box.width, height = panel->box.height;
    const ptrdiff_t pitch = width + 2;
    const uint8_t *at = panel->cover + pitch + 1, *core = (outline > 1 ? panel->core : panel->cover) + pitch + 1;
    for (int y = 0; y < height && outline > 1; y++)
        find_core(at + y * pitch, panel->core + pitch + 1 + y * pitch, pitch, width);
    for (int y = 0; y < height; y++, at += pitch, core += pitch) {
        uint8_t *restrict entry = row_at(picture, panel, y);
        for (int x = 0; x < width; x++) {
            const int inside = core[x] & core[x - 1] & core[x + 1] & core[x - pitch] & core[x + pitch];
            entry[x] = at[x] > inside ? color : entry[x];
        }
    }
}

void
drawing_panel(const struct drawing *drawing, struct indexed_png *picture, struct panel *panel, int outline)
{
    draw_grey(drawing, picture, panel);
    for (size_t i = 0; i < drawing->request->segment_count; i++)
        if (panel_find_cover(&drawing->volume, panel, drawing->masks[i]))
            draw_outline(picture, panel, drawing->colors[i], outline);
}

/* ----------------------------------------------------------------------------- directions --- */

enum edge { LEFT_EDGE, RIGHT_EDGE, UPPER_EDGE, LOWER_EDGE };

/* Draws the letters of one edge in its middle. */
static void
draw_direction(const struct drawing *drawing, struct indexed_png *picture, const struct panel *panel,
               struct lettering *lettering, enum edge edge)
{
    const bool vertical = edge == UPPER_EDGE || edge == LOWER_EDGE;
    const bool backwards = edge == LEFT_EDGE || edge == UPPER_EDGE;
    const int height = lettering_line(lettering), border = height / 16, gap = border;
    const double *axis = drawing->request->stack->axes + 3 * (size_t)(vertical ? panel->down : panel->across);
    const bool against = backwards != (vertical ? panel->from_below : panel->from_right);
    const double sign = against ? -1 : 1;
    struct box box = panel->box;
    char letters[ORIENTATION_SIZE];
    orientation_letters((double[3]){sign * axis[0], sign * axis[1], sign * axis[2]}, letters);
    const int width = lettering_width(lettering, letters) + 2 * border;
    if (box.width < 3 * width || box.height < 4 * height)
        return;
    box.left += edge == LEFT_EDGE ? gap : edge == RIGHT_EDGE ? box.width - width - gap : (box.width - width) / 2;
    box.top += edge == UPPER_EDGE ? gap : edge == LOWER_EDGE ? box.height - height - gap : (box.height - height) / 2;
    box.width = width;
    box.height = height;
    lettering_draw(lettering, picture, &box, letters,
                   (struct ink){indexed_png_grey(DRAWING_LIGHT), indexed_png_grey(DRAWING_BLACK), border});
}

void
drawing_directions(const struct drawing *drawing, struct indexed_png *picture, const struct panel *panel,
                   struct lettering *lettering)
{
    for (enum edge edge = LEFT_EDGE; drawing->request->stack->has_geometry && edge <= LOWER_EDGE; edge++)
        draw_direction(drawing, picture, panel, lettering, edge);
}
