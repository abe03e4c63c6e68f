/*
 * sheet.c - see sheet.h.
 *
 * Several threads sample and draw panels, each in its own part of the sheet. One thread sets the texts.
 */
#include "service/pipeline/results/sheet.h"

#include "service/common/parallel.h"
#include "service/common/picture/orientation.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
larger(int a, int b)
{
    return a > b ? a : b;
}

/* ---------------------------------------------------------------------------------- texts -- */

/* Adds a text, cut to the width of its box. */
static void
sheet_add_text(struct sheet *sheet, struct box box, const char *text, int swatch)
{
    if (sheet->text_count == sheet->text_room) {
        const size_t room = 2 * sheet->text_room + 32;
        struct sheet_text *texts = realloc(sheet->texts, room * sizeof *texts);
        if (!texts) {
            sheet->failed = true;
            return;
        }
        sheet->texts = texts;
        sheet->text_room = room;
    }
    char *own = malloc(strlen(text) + 4); /* room for the ellipsis */
    if (!own) {
        sheet->failed = true;
        return;
    }
    strcpy(own, text);
    lettering_cut(sheet->lettering, own, box.width - (swatch < 0 ? 0 : sheet->line));
    sheet->texts[sheet->text_count++] = (struct sheet_text){box, own, swatch};
}

/* Copies the first line of a text that is broken at spaces. Returns the start of the next line. A word is not broken. */
static const char *
break_line(struct sheet *sheet, const char *text, int width, char line[DRAWING_TEXT_SIZE])
{
    const size_t length = strlen(text);
    size_t taken = 0;
    snprintf(line, DRAWING_TEXT_SIZE, "%s", text);
    if (lettering_width(sheet->lettering, line) <= width)
        return text + length;
    for (const char *space = strchr(text, ' '); space; space = strchr(space + 1, ' ')) {
        snprintf(line, DRAWING_TEXT_SIZE, "%.*s", (int)(space - text), text);
        if (lettering_width(sheet->lettering, line) > width)
            break;
        taken = (size_t)(space - text);
    }
    snprintf(line, DRAWING_TEXT_SIZE, "%.*s", (int)(taken > 0 ? taken : length), text);
    return text + (taken > 0 ? taken + 1 : length);
}

/* Adds a text as lines. Returns the end. */
static int
add_lines(struct sheet *sheet, int left, int top, const char *text)
{
    char line[DRAWING_TEXT_SIZE];
    const int width = SHEET_WIDTH - sheet->gap - left;
    for (; *text; top += sheet->line) {
        text = break_line(sheet, text, width, line);
        sheet_add_text(sheet, (struct box){left, top, width, sheet->line}, line, -1);
    }
    return top;
}

/* Places the warnings, with a bar beside them. Returns the end. */
static int
lay_out_warnings(struct sheet *sheet, int top)
{
    const struct drawing_request *request = sheet->drawing->request;
    const int first = top, bar = sheet->gap / 2, left = 2 * sheet->gap + bar;
    for (size_t i = 0; i < request->warning_count; i++)
        top = add_lines(sheet, left, top, request->warnings[i]);
    sheet->warning = (struct box){sheet->gap, first, bar, top - first};
    return top > first ? top + sheet->gap : top;
}

/* Formats the volume or area with three significant digits; whole units from 100 on. */
static void
legend_text(const struct drawing_segment *segment, char text[DRAWING_TEXT_SIZE])
{
    const double amount = segment->amount;
    const bool whole = amount >= 100 || amount == 0 || strcmp(segment->unit, DRAWING_PIXELS) == 0;
    const int decimals = whole ? 0 : amount >= 10 ? 1 : amount >= 1 ? 2 : 3;
    snprintf(text, DRAWING_TEXT_SIZE, "%s %.*f %s", segment->label, decimals, amount, segment->unit);
}

/* Cuts the label, so that the amount stays readable. */
static void
add_legend_entry(struct sheet *sheet, struct box box, int segment)
{
    const struct drawing_segment *from = &sheet->drawing->request->segments[segment];
    char label[DRAWING_TEXT_SIZE + 4], text[DRAWING_TEXT_SIZE];
    struct drawing_segment cut = *from;
    cut.label = "";
    legend_text(&cut, text);
    snprintf(label, DRAWING_TEXT_SIZE, "%s", from->label);
    lettering_cut(sheet->lettering, label, box.width - sheet->line - lettering_width(sheet->lettering, text));
    cut.label = label;
    legend_text(&cut, text);
    sheet_add_text(sheet, box, text, segment);
}

/* Returns the width of a tile if so many are in a row. */
static int
tile_width(const struct sheet *sheet, int columns)
{
    return (SHEET_WIDTH - (columns + 1) * sheet->gap) / columns;
}

/* Places the legend, with as many entries per line as the longest entry allows. Returns the end. */
static int
lay_out_legend(struct sheet *sheet, int top)
{
    const int count = (int)sheet->drawing->request->segment_count;
    int widest = 0, columns = SHEET_COLUMNS;
    char text[DRAWING_TEXT_SIZE];
    for (int i = 0; i < count; i++) {
        legend_text(&sheet->drawing->request->segments[i], text);
        widest = larger(widest, lettering_width(sheet->lettering, text) + sheet->line);
    }
    while (columns > 1 && widest > tile_width(sheet, columns))
        columns--;
    const int width = tile_width(sheet, columns);
    for (int i = 0; i < count; i++) {
        const struct box box = {sheet->gap + i % columns * (width + sheet->gap), top + i / columns * sheet->line, width,
                                sheet->line};
        add_legend_entry(sheet, box, i);
    }
    return top + (count + columns - 1) / columns * sheet->line + (count > 0 ? sheet->gap / 2 : 0);
}

/* ---------------------------------------------------------------------------------- tiles -- */

static double
axis_length(const struct sheet *sheet, int axis)
{
    const struct geometry_stack *stack = sheet->drawing->request->stack;
    return panel_voxels(stack, axis) * panel_spacing(stack, axis);
}

/* Places a panel in the middle of its tile, and its caption above. */
static void
place_panel(struct sheet *sheet, int index, struct box tile, bool total)
{
    struct box *box = &sheet->panels[index].box;
    const struct box caption = {tile.left, tile.top - sheet->line, tile.width, sheet->line};
    char text[DRAWING_CAPTION_SIZE];
    sheet->tiles[index] = tile;
    box->left = tile.left + (tile.width - box->width) / 2;
    box->top = tile.top + (tile.height - box->height) / 2;
    drawing_caption(sheet->drawing, &sheet->panels[index], total, text);
    sheet_add_text(sheet, caption, text, -1);
}

/*
 * Places the three planes, on the same scale; none if one would be too narrow. Uses the usual display: the patient's
 * left on the right, posterior and feet below. Returns the end.
 */
static int
lay_out_planes(struct sheet *sheet, int top)
{
    static const int through[SHEET_PLANES] = {2, 1, 0}, across[SHEET_PLANES] = {0, 0, 1}, down[] = {1, 2, 2};
    const struct geometry_stack *stack = sheet->drawing->request->stack;
    const int width = tile_width(sheet, SHEET_COLUMNS);
    int patient[3], axis_of[3];
    double length[3];
    orientation_of_axes(stack->axes, patient);
    for (int axis = 0; axis < 3; axis++) {
        axis_of[patient[axis]] = axis;
        length[patient[axis]] = axis_length(sheet, axis);
    }
    const double scale = fmin(width / fmax(length[0], length[1]), 1.5 * width / fmax(length[1], length[2]));
    const double shortest = fmin(length[0], fmin(length[1], length[2]));
    if (!stack->has_geometry || scale * shortest < width / 8)
        return top;
    const int height = (int)ceil(scale * fmax(length[1], length[2]));
    for (int i = 0; i < SHEET_PLANES; i++) {
        const double right = stack->axes[3 * axis_of[across[i]] + across[i]];
        const double below = (down[i] == 2 ? -1 : 1) * stack->axes[3 * axis_of[down[i]] + down[i]];
        sheet->panels[i] = (struct panel){
            .across = axis_of[across[i]],
            .down = axis_of[down[i]],
            .through = axis_of[through[i]],
            .from_right = right < 0,
            .from_below = below < 0,
            .reformatted = true,
            .at = sheet->drawing->extent.fullest[axis_of[through[i]]],
            .box = {.width = (int)(scale * length[across[i]]), .height = (int)(scale * length[down[i]])},
        };
        place_panel(sheet, i, (struct box){sheet->gap + i * (width + sheet->gap), top + sheet->line, width, height},
                    true);
    }
    sheet->plane_count = SHEET_PLANES;
    return top + sheet->line + height + sheet->gap;
}

/* Sets the panel of a slice: one of `count`, spread over the slices that have a segment, or over all if none has. */
static struct panel
slice_panel(const struct sheet *sheet, int index, int count, int width, int height)
{
    const int32_t first = sheet->drawing->extent.first, span = sheet->drawing->extent.last - first + 1;
    const int32_t at = first + (int32_t)((2 * (int64_t)index + 1) * span / (2 * (int64_t)count));
    return (struct panel){.across = 0, .down = 1, .through = 2, .at = at, .box = {.width = width, .height = height}};
}

/* Places the slices. Returns the end. */
static int
lay_out_slices(struct sheet *sheet, int top)
{
    const int span = sheet->drawing->extent.last - sheet->drawing->extent.first + 1;
    const int columns = span == 1 ? 1 : SHEET_COLUMNS, width = tile_width(sheet, columns);
    const double across = axis_length(sheet, 0), down = axis_length(sheet, 1);
    const double scale = fmin(width / across, (columns == 1 ? width : 5 * width / 4) / down);
    const int slice_width = larger(1, (int)round(across * scale)), height = larger(1, (int)round(down * scale));
    const int count = span < SHEET_SLICES ? span : SHEET_SLICES;
    bool total = true; /* captions have the same form, also if only some would be too long */
    for (int i = 0; i < count; i++) {
        char text[DRAWING_CAPTION_SIZE];
        sheet->panels[sheet->plane_count + i] = slice_panel(sheet, i, count, slice_width, height);
        drawing_caption(sheet->drawing, &sheet->panels[sheet->plane_count + i], true, text);
        total = total && lettering_width(sheet->lettering, text) <= width;
    }
    for (int i = 0; i < count; i++)
        place_panel(sheet, sheet->plane_count + i,
                    (struct box){sheet->gap + i % columns * (width + sheet->gap),
                                 top + sheet->line + i / columns * (sheet->line + height + sheet->gap), width, height},
                    total);
    sheet->slice_count = count;
    return top + (count + columns - 1) / columns * (sheet->line + height + sheet->gap);
}

/* --------------------------------------------------------------------------------- layout -- */

static void
sheet_lay_out(struct sheet *sheet)
{
    int top = lay_out_warnings(sheet, sheet->gap);
    top = lay_out_legend(sheet, top);
    top = lay_out_planes(sheet, top);
    top = lay_out_slices(sheet, top);
    sheet->window = (struct box){sheet->gap, top, SHEET_WIDTH - 2 * sheet->gap, sheet->line};
    top = add_lines(sheet, sheet->gap, top + sheet->line, sheet->drawing->request->note);
    top = add_lines(sheet, sheet->gap, top, "Not for diagnosis.");
    sheet->height = top + sheet->gap;
}

struct sheet_size
sheet_size(size_t segments)
{
    enum { LINE = SHEET_LETTERS * 3 / 2, SLICE_ROWS = SHEET_SLICES / SHEET_COLUMNS, TEXTS = 10 };

    const int64_t tile = SHEET_WIDTH / SHEET_COLUMNS;
    /* An only slice is a square, and smaller. A line of text and half a line are between rows of tiles. */
    return (struct sheet_size){
        .tiles = SHEET_WIDTH * (3 * tile / 2 + SLICE_ROWS * 5 * tile / 4),
        .texts = SHEET_WIDTH * (TEXTS + 2 * (1 + SLICE_ROWS) + (int64_t)segments) * LINE,
    };
}

/* ------------------------------------------------------------------------- panel by panel -- */

struct sheet_panels {
    struct sheet *sheet;
    struct indexed_png *picture; /* NULL: panels are sampled, not drawn */
};

static void
take_panels(struct parallel *loop, void *context)
{
    const struct sheet_panels *panels = context;
    struct sheet *sheet = panels->sheet;
    int64_t i;
    while (parallel_take(loop, &i)) {
        if (panels->picture)
            drawing_panel(sheet->drawing, panels->picture, &sheet->panels[i], SHEET_OUTLINE);
        else
            panel_sample(&sheet->drawing->volume, &sheet->panels[i]);
    }
}

static void
for_each_panel(struct sheet *sheet, struct indexed_png *picture)
{
    struct sheet_panels panels = {sheet, picture};
    struct parallel loop = {.count = sheet->plane_count + sheet->slice_count, .body = take_panels, .context = &panels};
    parallel_run(&loop, sheet->drawing->request->threads);
}

/* --------------------------------------------------------------------------------- whole --- */

int
sheet_open(struct drawing *drawing, struct sheet *sheet)
{
    const struct drawing_request *request = drawing->request;
    *sheet = (struct sheet){.drawing = drawing, .lettering = lettering_new(SHEET_LETTERS)};
    if (!sheet->lettering)
        return -ENOMEM;
    sheet->gap = SHEET_LETTERS / 3;
    sheet->line = lettering_line(sheet->lettering);
    sheet_lay_out(sheet);
    int rc = sheet->failed ? -ENOMEM : 0;
    for (int i = 0; i < sheet->plane_count + sheet->slice_count && rc == 0; i++)
        rc = panel_make(&drawing->volume, &sheet->panels[i]);
    if (rc)
        return rc;
    for_each_panel(sheet, NULL);
    const struct grey_window_request window = {&drawing->volume,       sheet->panels + sheet->plane_count,
                                               sheet->slice_count,     drawing->masks,
                                               request->segment_count, request->window};
    return grey_window_choose(&window, &drawing->window);
}

void
sheet_close(struct sheet *sheet)
{
    for (int i = 0; i < sheet->plane_count + sheet->slice_count; i++)
        panel_free(&sheet->panels[i]);
    for (size_t i = 0; i < sheet->text_count; i++)
        free(sheet->texts[i].text);
    free(sheet->texts);
    lettering_free(sheet->lettering);
}

static void
fill_box(struct indexed_png *picture, const struct box *box, uint8_t color)
{
    for (int y = 0; y < box->height; y++)
        memset(picture->pixels + (ptrdiff_t)(box->top + y) * picture->width + box->left, color, (size_t)box->width);
}

static void
draw_texts(struct sheet *sheet, struct indexed_png *picture)
{
    const struct drawing_request *request = sheet->drawing->request;
    const struct ink ink = {.ink = indexed_png_grey(DRAWING_LIGHT)};
    char text[DRAWING_TEXT_SIZE];
    for (size_t i = 0; i < sheet->text_count; i++) {
        const struct sheet_text *entry = &sheet->texts[i];
        const int side = SHEET_LETTERS * 4 / 5, before = (sheet->line - side) / 2;
        struct box box = entry->box;
        if (entry->swatch >= 0) {
            const struct box swatch = {box.left, box.top + before, side, side};
            fill_box(picture, &swatch, sheet->drawing->colors[entry->swatch]);
            box.left += sheet->line;
            box.width -= sheet->line;
        }
        lettering_draw(sheet->lettering, picture, &box, entry->text, ink);
    }
    grey_window_describe(&sheet->drawing->window, request->instances[request->stack->planes[0].instance]->value_unit,
                         text, sizeof text);
    lettering_draw(sheet->lettering, picture, &sheet->window, text, ink);
}

void
sheet_draw(struct sheet *sheet, struct indexed_png *picture)
{
    fill_box(picture, &(struct box){0, 0, picture->width, picture->height}, indexed_png_grey(DRAWING_GROUND));
    fill_box(picture, &sheet->warning, sheet->drawing->warning);
    for (int i = 0; i < sheet->plane_count + sheet->slice_count; i++)
        fill_box(picture, &sheet->tiles[i], indexed_png_grey(DRAWING_BLACK));
    draw_texts(sheet, picture);
    for_each_panel(sheet, picture);
    for (int i = 0; i < sheet->plane_count + sheet->slice_count; i++)
        drawing_directions(sheet->drawing, picture, &sheet->panels[i], sheet->lettering);
}
