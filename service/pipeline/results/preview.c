/*
 * preview.c - see preview.h.
 *
 * The palette has 224 greys and up to 32 colours. Several threads sample and draw panels, each in
 * its own part of the sheet.
 */
#include "service/pipeline/results/preview.h"

#include "service/common/parallel.h"
#include "service/pipeline/results/extent.h"
#include "service/pipeline/results/grey_window.h"
#include "service/pipeline/results/indexed_png.h"
#include "service/pipeline/results/lettering.h"
#include "service/pipeline/results/orientation.h"
#include "service/pipeline/results/panel.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICES       12
#define SLICES_A_ROW 4
#define PLANES       3 /* axial, coronal, sagittal */
#define GAP          4
#define LINE         18  /* pixels between lines of text */
#define GREYS        224 /* of the palette, from black */

/* Pixels. */
enum {
    SLICE_SIDE = 288,      /* longer side of a slice */
    ONLY_SLICE_SIDE = 576, /* of a single slice */
    PLANE_SIDE = 384,      /* of the longest of the three planes, if there is room */
    LEAST_PLANE_SIDE = 48, /* narrower planes are not drawn */
    LEAST_WIDTH = 592,     /* of the sheet */
    SWATCH = 14,
};

struct sheet {
    const struct preview_request *request;
    const struct image_mask **masks;
    struct panel_volume volume;
    struct segments_extent extent;
    struct panel panels[SLICES + PLANES]; /* slices first */
    int slice_count, plane_count;
    int slice_width, slice_height, cell_width;
    struct box warnings, legend;
    int legend_columns;
    struct box footer;
    struct grey_window window;
    struct indexed_png picture;
    uint8_t background, shadow, light, warning; /* indices of the palette */
    uint8_t *colors;                            /* one index per segment */
};

/* --------------------------------------------------------------------------------- texts --- */

enum { LABEL_SIZE = 320, CAPTION_SIZE = 96 };

/* Formats the volume with three significant digits; whole millilitres from 100 on. */
static void
legend_text(const struct preview_segment *segment, char text[LABEL_SIZE])
{
    const double ml = segment->millilitres;
    const int decimals = ml >= 100 || ml == 0 ? 0 : ml >= 10 ? 1 : ml >= 1 ? 2 : 3;
    snprintf(text, LABEL_SIZE, "%s %.*f ml", segment->label, decimals, ml);
}

static bool
is_acquired(const struct sheet *sheet, const struct panel *panel)
{
    return panel < sheet->panels + sheet->slice_count;
}

static void
caption_text(const struct sheet *sheet, const struct panel *panel, char text[CAPTION_SIZE])
{
    static const char *const planes[] = {"sagittal ", "coronal ", "axial "};
    const struct geometry_stack *stack = sheet->request->stack;
    char number[32] = "", place[ORIENTATION_PLACE_SIZE] = "";
    const char *name = "";
    if (is_acquired(sheet, panel))
        snprintf(number, sizeof number, "%d/%d ", panel->at + 1, stack->plane_count);
    else if (panel->through == 2)
        snprintf(number, sizeof number, "%d ", panel->at + 1);
    if (stack->has_geometry) {
        const double *axis = stack->axes + 3 * (size_t)panel->through, *origin = stack->origin;
        double position = stack->planes[panel->through == 2 ? panel->at : 0].position;
        if (panel->through != 2)
            position = axis[0] * origin[0] + axis[1] * origin[1] + axis[2] * origin[2] +
                       panel->at * stack->spacing[panel->through];
        orientation_place(axis, position, place);
    }
    if (!is_acquired(sheet, panel)) {
        int patient[3];
        orientation_of_axes(stack->axes, patient);
        name = planes[patient[panel->through]];
    }
    snprintf(text, CAPTION_SIZE, "%s%s%s", name, number, place);
}

/* ------------------------------------------------------------------------------- panels ---- */

static double
axis_length(const struct sheet *sheet, int axis)
{
    const struct geometry_stack *stack = sheet->request->stack;
    return panel_voxels(stack, axis) * panel_spacing(stack, axis);
}

/*
 * Spreads panels over the slices that have a segment, or over all slices if no slice has one, and
 * sets the size of them and the width of the picture.
 */
static void
choose_slices(struct sheet *sheet)
{
    const int32_t first = sheet->extent.first, span = sheet->extent.last - first + 1;
    const int count = span < SLICES ? span : SLICES;
    int caption = 0; /* the widest at the larger letters, so that all captions have the same size */
    sheet->slice_count = count;
    for (int i = 0; i < count; i++) {
        char text[CAPTION_SIZE];
        const int32_t at = first + (int32_t)((2 * (int64_t)i + 1) * span / (2 * (int64_t)count));
        sheet->panels[i] = (struct panel){.across = 0, .down = 1, .through = 2, .at = at};
        caption_text(sheet, &sheet->panels[i], text);
        const int width = lettering_width(text, 2);
        caption = width > caption ? width : caption;
    }
    const double width = axis_length(sheet, 0), height = axis_length(sheet, 1);
    const double scale = (count == 1 ? ONLY_SLICE_SIDE : SLICE_SIDE) / fmax(width, height);
    sheet->slice_width = (int)fmax(1, round(width * scale));
    sheet->slice_height = (int)fmax(1, round(height * scale));
    sheet->cell_width = sheet->slice_width < caption ? caption : sheet->slice_width;
    const int across = count < SLICES_A_ROW ? count : SLICES_A_ROW;
    const int width_of_all = across * (sheet->cell_width + GAP) + GAP;
    sheet->picture.width = width_of_all < LEAST_WIDTH ? LEAST_WIDTH : width_of_all;
}

/*
 * Selects the three planes and their sizes, on the same scale; none if they would be too narrow.
 * Uses the usual display: the patient's left on the right, posterior and feet below.
 */
static void
choose_planes(struct sheet *sheet)
{
    static const int through[PLANES] = {2, 1, 0}, across[PLANES] = {0, 0, 1}, down[] = {1, 2, 2};
    const double *axes = sheet->request->stack->axes;
    int patient[3], axis_of[3];
    double length[3];
    orientation_of_axes(axes, patient);
    for (int axis = 0; axis < 3; axis++) {
        axis_of[patient[axis]] = axis;
        length[patient[axis]] = axis_length(sheet, axis);
    }
    const double longest = fmax(length[0], fmax(length[1], length[2]));
    const double shortest = fmin(length[0], fmin(length[1], length[2]));
    const double scale =
        fmin(PLANE_SIDE / longest, (sheet->picture.width - (PLANES + 1) * GAP) / (2 * length[0] + length[1]));
    if (!sheet->request->stack->has_geometry || scale * shortest < LEAST_PLANE_SIDE)
        return;
    for (int i = 0; i < PLANES; i++) {
        const double right = axes[3 * axis_of[across[i]] + across[i]];
        const double below = (down[i] == 2 ? -1 : 1) * axes[3 * axis_of[down[i]] + down[i]];
        sheet->panels[sheet->slice_count + i] = (struct panel){
            .across = axis_of[across[i]],
            .down = axis_of[down[i]],
            .through = axis_of[through[i]],
            .from_right = right < 0,
            .from_below = below < 0,
            .at = sheet->extent.fullest[axis_of[through[i]]],
            .box = {.width = (int)(scale * length[across[i]]), .height = (int)(scale * length[down[i]])},
        };
    }
    sheet->plane_count = PLANES;
}

/* ------------------------------------------------------------------------------- layout ---- */

static void
take_part(const char *text, size_t length, char line[LABEL_SIZE])
{
    const size_t size = length < LABEL_SIZE ? length : LABEL_SIZE - 1;
    memcpy(line, text, size);
    line[size] = '\0';
}

/*
 * Copies the first line of a text that is broken at spaces. Returns the start of the next line. A
 * word is not broken.
 */
static const char *
break_line(const char *text, int width, char line[LABEL_SIZE])
{
    const size_t length = strlen(text);
    size_t taken = 0;
    take_part(text, length, line);
    if (lettering_width(line, 2) <= width)
        return text + length;
    for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' ')) {
        take_part(text, (size_t)(space - text), line);
        if (lettering_width(line, 2) > width)
            break;
        taken = (size_t)(space - text);
    }
    take_part(text, taken > 0 ? taken : length, line);
    return text + (taken > 0 ? taken + 1 : length);
}

/* Places the legend below `top`, with as many entries per line as the longest entry allows. */
static int
lay_out_legend(struct sheet *sheet, int top)
{
    const int count = (int)sheet->request->segment_count, room = sheet->picture.width - 2 * GAP;
    int widest = 1;
    for (int i = 0; i < count; i++) {
        char text[LABEL_SIZE];
        legend_text(&sheet->request->segments[i], text);
        const int width = lettering_width(text, 2) + SWATCH + 2 * LETTERING_ADVANCE + LINE;
        widest = width > widest ? width : widest;
    }
    sheet->legend_columns = widest < room ? room / widest : 1;
    const int lines = (count + sheet->legend_columns - 1) / sheet->legend_columns;
    sheet->legend = (struct box){GAP, top, room, lines * LINE};
    return top + lines * LINE;
}

/* Places the panels below `top`: the three planes, then the slices. Returns the end. */
static int
lay_out_panels(struct sheet *sheet, int top)
{
    int left = GAP, highest = 0;
    for (int i = sheet->slice_count; i < sheet->slice_count + sheet->plane_count; i++) {
        struct box *box = &sheet->panels[i].box;
        box->left = left;
        box->top = top + LINE;
        left += box->width + GAP;
        highest = box->height > highest ? box->height : highest;
    }
    if (highest > 0)
        top += LINE + highest + GAP;
    for (int i = 0; i < sheet->slice_count; i++)
        sheet->panels[i].box = (struct box){
            .left = GAP + i % SLICES_A_ROW * (sheet->cell_width + GAP),
            .top = top + LINE + i / SLICES_A_ROW * (LINE + sheet->slice_height + GAP),
            .width = sheet->slice_width,
            .height = sheet->slice_height,
        };
    const int down = (sheet->slice_count + SLICES_A_ROW - 1) / SLICES_A_ROW;
    return top + down * (LINE + sheet->slice_height + GAP);
}

static void
preview_lay_out(struct sheet *sheet)
{
    const struct preview_request *request = sheet->request;
    char line[LABEL_SIZE];
    int top = GAP;
    choose_slices(sheet);
    choose_planes(sheet);
    const int width = sheet->picture.width - 2 * GAP;
    for (size_t i = 0; i < request->warning_count; i++)
        for (const char *text = request->warnings[i]; *text; top += LINE)
            text = break_line(text, width, line);
    sheet->warnings = (struct box){GAP, GAP, width, top - GAP};
    top = lay_out_legend(sheet, top);
    top = lay_out_panels(sheet, top);
    sheet->footer = (struct box){GAP, top, width, LINE};
    sheet->picture.height = top + (request->note[0] ? 2 : 1) * LINE;
}

/* ------------------------------------------------------------------------------- palette ---- */

/* Converts 0 .. 1 to 0 .. steps. */
static uint8_t
to_step(double value, int steps)
{
    return (uint8_t)(steps * (value < 0 ? 0 : value > 1 ? 1 : value) + 0.5);
}

static uint8_t
color_entry(struct sheet *sheet, struct rgb color)
{
    return indexed_png_color(&sheet->picture, GREYS, color);
}

static bool
color_is_taken(const struct sheet *sheet, size_t segments, uint8_t entry)
{
    for (size_t i = 0; i < segments; i++)
        if (sheet->colors[i] == entry)
            return true;
    return false;
}

/* Returns the segment's own colour, or the first that no earlier segment has. */
static uint8_t
segment_color(struct sheet *sheet, size_t segment)
{
    static const struct rgb others[] = {{255, 220, 0},  {0, 200, 255},  {60, 220, 60}, {255, 0, 220},
                                        {255, 140, 0},  {90, 120, 255}, {0, 255, 180}, {255, 150, 170},
                                        {180, 90, 255}, {190, 255, 60}, {255, 60, 60}, {200, 160, 110}};
    const double *rgb = sheet->request->segments[segment].color;
    const struct rgb own = {to_step(rgb[0], 255), to_step(rgb[1], 255), to_step(rgb[2], 255)};
    const uint8_t entry = color_entry(sheet, own);
    if (!color_is_taken(sheet, segment, entry))
        return entry;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const uint8_t other = color_entry(sheet, others[i]);
        if (!color_is_taken(sheet, segment, other))
            return other;
    }
    return entry;
}

static void
make_palette(struct sheet *sheet)
{
    for (int i = 0; i < GREYS; i++) {
        uint8_t grey = (uint8_t)((255 * i + (GREYS - 1) / 2) / (GREYS - 1));
        sheet->picture.palette[i] = (struct rgb){grey, grey, grey};
    }
    sheet->picture.colors = GREYS;
    sheet->background = color_entry(sheet, (struct rgb){24, 24, 24});
    sheet->shadow = color_entry(sheet, (struct rgb){0, 0, 0});
    sheet->light = color_entry(sheet, (struct rgb){235, 235, 235});
    sheet->warning = color_entry(sheet, (struct rgb){255, 196, 0});
    for (size_t i = 0; i < sheet->request->segment_count; i++)
        sheet->colors[i] = segment_color(sheet, i);
}

/* ------------------------------------------------------------------------------- drawing ---- */

static uint8_t *
entry_at(const struct sheet *sheet, int x, int y)
{
    return sheet->picture.pixels + (size_t)y * (size_t)sheet->picture.width + (size_t)x;
}

static void
draw_colored(struct sheet *sheet, const struct box *box, const char *text, uint8_t color)
{
    const struct lettering lettering = {color, sheet->shadow, lettering_fit(text, box->width)};
    lettering_draw(&sheet->picture, box, text, &lettering);
}

static void
draw_text(struct sheet *sheet, const struct box *box, const char *text)
{
    draw_colored(sheet, box, text, sheet->light);
}

/* Draws the warnings, the legend and the footer. */
static void
draw_texts(struct sheet *sheet)
{
    const struct preview_request *request = sheet->request;
    const struct box *legend = &sheet->legend;
    const int width = legend->width / sheet->legend_columns;
    struct box box = sheet->warnings;
    char text[LABEL_SIZE];
    box.height = LINE;
    for (size_t i = 0; i < request->warning_count; i++)
        for (const char *rest = request->warnings[i]; *rest; box.top += LINE) {
            rest = break_line(rest, box.width, text);
            draw_colored(sheet, &box, text, sheet->warning);
        }
    for (int i = 0; i < (int)request->segment_count; i++) {
        box = (struct box){legend->left + i % sheet->legend_columns * width,
                           legend->top + i / sheet->legend_columns * LINE, width, LINE};
        for (int y = 0; y < SWATCH; y++)
            memset(entry_at(sheet, box.left, box.top + y), sheet->colors[i], SWATCH);
        box.left += SWATCH + LETTERING_ADVANCE;
        box.width -= SWATCH + 2 * LETTERING_ADVANCE;
        legend_text(&request->segments[i], text);
        draw_text(sheet, &box, text);
    }
    box = sheet->footer;
    grey_window_describe(&sheet->window, request->instances[request->stack->planes[0].instance]->value_unit, text,
                         sizeof text);
    draw_text(sheet, &box, text);
    box.top += LINE;
    if (request->note[0])
        draw_text(sheet, &box, request->note);
}

static void
draw_grey(struct sheet *sheet, const struct panel *panel)
{
    const struct preview_request *request = sheet->request;
    bool inverted = request->instances[request->stack->planes[0].instance]->monochrome1;
    const double low = inverted ? sheet->window.high : sheet->window.low;
    const double high = inverted ? sheet->window.low : sheet->window.high;
    const double steps = (GREYS - 1) / (high - low);
    const float scale = (float)steps, shift = (float)(0.5 - low * steps);
    const float *value = panel->values;
    for (int y = 0; y < panel->box.height; y++, value += panel->box.width) {
        uint8_t *entry = entry_at(sheet, panel->box.left, panel->box.top + y);
        for (int x = 0; x < panel->box.width; x++) {
            const float level = value[x] * scale + shift;
            entry[x] = (uint8_t)(level < 0 ? 0 : level > GREYS - 1 ? GREYS - 1 : level);
        }
    }
}

/* Draws pixels of the segment that have a neighbour outside. */
static void
draw_outline(struct sheet *sheet, const struct panel *panel, uint8_t color)
{
    const ptrdiff_t pitch = panel->box.width + 2;
    const uint8_t *at = panel->cover + pitch + 1;
    for (int y = 0; y < panel->box.height; y++, at += pitch) {
        uint8_t *entry = entry_at(sheet, panel->box.left, panel->box.top + y);
        for (int x = 0; x < panel->box.width; x++) {
            if (at[x] & !(at[x - 1] & at[x + 1] & at[x - pitch] & at[x + pitch]))
                entry[x] = color;
        }
    }
}

enum edge { LEFT_EDGE, RIGHT_EDGE, UPPER_EDGE, LOWER_EDGE };

/*
 * Draws the letter of the patient's direction in the middle of an edge, unless it would hide the
 * picture.
 */
static void
draw_letters(struct sheet *sheet, const struct panel *panel, enum edge edge)
{
    const bool vertical = edge == UPPER_EDGE || edge == LOWER_EDGE;
    const bool backwards = edge == LEFT_EDGE || edge == UPPER_EDGE;
    const int height = 2 * LETTERING_HEIGHT + 2;
    const double *axis = sheet->request->stack->axes + 3 * (size_t)(vertical ? panel->down : panel->across);
    const bool against = backwards != (vertical ? panel->from_below : panel->from_right);
    const double sign = against ? -1 : 1;
    struct box box = panel->box;
    char letters[ORIENTATION_SIZE];
    orientation_letters((double[3]){sign * axis[0], sign * axis[1], sign * axis[2]}, letters);
    const int width = lettering_width(letters, 2);
    if (box.width < 3 * width || box.height < 3 * height)
        return;
    box.left += edge == LEFT_EDGE ? GAP : edge == RIGHT_EDGE ? box.width - width - GAP : (box.width - width) / 2;
    box.top += edge == UPPER_EDGE ? GAP : edge == LOWER_EDGE ? box.height - height - GAP : (box.height - height) / 2;
    box.width = width;
    box.height = height;
    draw_text(sheet, &box, letters);
}

static void
draw_panel(struct sheet *sheet, struct panel *panel)
{
    char caption[CAPTION_SIZE];
    struct box above = {panel->box.left, panel->box.top - LINE + 2, panel->box.width, LINE - 2};
    draw_grey(sheet, panel);
    for (size_t i = 0; i < sheet->request->segment_count; i++)
        if (panel_find_cover(&sheet->volume, panel, sheet->masks[i]))
            draw_outline(sheet, panel, sheet->colors[i]);
    for (enum edge edge = LEFT_EDGE; sheet->request->stack->has_geometry && edge <= LOWER_EDGE; edge++)
        draw_letters(sheet, panel, edge);
    if (is_acquired(sheet, panel))
        above.width = sheet->cell_width;
    caption_text(sheet, panel, caption);
    draw_text(sheet, &above, caption);
}

/* ----------------------------------------------------------------------- panel by panel ---- */

static void
sample_panel(struct sheet *sheet, struct panel *panel)
{
    panel_sample(&sheet->volume, panel);
}

struct preview_panels {
    struct sheet *sheet;
    void (*work)(struct sheet *sheet, struct panel *panel);
};

static void
take_panels(struct parallel *loop, void *context)
{
    const struct preview_panels *panels = context;
    int64_t i;
    while (parallel_take(loop, &i))
        panels->work(panels->sheet, &panels->sheet->panels[i]);
}

static void
for_each_panel(struct sheet *sheet, void (*work)(struct sheet *sheet, struct panel *panel))
{
    struct preview_panels panels = {sheet, work};
    struct parallel loop = {.count = sheet->slice_count + sheet->plane_count, .body = take_panels, .context = &panels};
    parallel_run(&loop, sheet->request->threads);
}

/* --------------------------------------------------------------------------------- whole ---- */

/* Finds the segments, and plans the panels. */
static int
plan_sheet(struct sheet *sheet)
{
    const struct preview_request *request = sheet->request;
    const struct geometry_stack *stack = request->stack;
    const struct image_extent size = {stack->columns, stack->rows, stack->plane_count};
    sheet->masks = malloc((request->segment_count + 1) * sizeof(struct image_mask *));
    sheet->colors = malloc(request->segment_count + 1);
    if (!sheet->masks || !sheet->colors)
        return -ENOMEM;
    for (size_t i = 0; i < request->segment_count; i++)
        sheet->masks[i] = request->segments[i].mask;
    int rc = panel_volume_make(&sheet->volume);
    if (rc == 0)
        rc = segments_extent_find(sheet->masks, request->segment_count, size, request->threads, &sheet->extent);
    if (rc == 0)
        preview_lay_out(sheet);
    return rc;
}

static int
draw_sheet(struct sheet *sheet)
{
    const struct grey_window_request window = {&sheet->volume, sheet->panels, sheet->slice_count, sheet->masks,
                                               sheet->request->segment_count};
    for_each_panel(sheet, sample_panel);
    int rc = grey_window_choose(&window, &sheet->window);
    if (rc)
        return rc;
    make_palette(sheet);
    memset(sheet->picture.pixels, sheet->background, (size_t)sheet->picture.width * (size_t)sheet->picture.height);
    draw_texts(sheet);
    for_each_panel(sheet, draw_panel);
    return 0;
}

int
preview_write(const struct preview_request *request, int fd)
{
    struct sheet sheet = {
        .request = request,
        .volume = {.instances = request->instances, .stack = request->stack, .voxels = request->voxels}};
    int rc = plan_sheet(&sheet);
    const int panels = sheet.slice_count + sheet.plane_count;
    if (rc == 0) {
        sheet.picture.pixels = malloc((size_t)sheet.picture.width * (size_t)sheet.picture.height);
        rc = sheet.picture.pixels ? 0 : -ENOMEM;
    }
    for (int i = 0; i < panels && rc == 0; i++)
        rc = panel_make(&sheet.volume, &sheet.panels[i]);
    if (rc == 0)
        rc = draw_sheet(&sheet);
    if (rc == 0)
        rc = indexed_png_write(&sheet.picture, request->threads, fd);
    for (int i = 0; i < panels; i++)
        panel_free(&sheet.panels[i]);
    panel_volume_free(&sheet.volume);
    free(sheet.masks);
    free(sheet.colors);
    free(sheet.picture.pixels);
    return rc;
}
