/*
 * picture_frames.c - see picture_frames.h.
 *
 * Threads draw slices, each with a canvas, letters and a panel of its own.
 */
#include "service/pipeline/results/picture_frames.h"

#include "service/common/parallel.h"
#include "service/pipeline/results/sheet.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MIN_SIDE = 512, /* pixels of a slice on its longer side */
    MAX_SIDE = 1024,
    LETTERS = 18, /* pixels per em of a frame of 512 */
    LEGEND_LINES = 3,
    MAX_LINE = 2,          /* heights of letters in a line of text, in bytes counted ahead */
    SMALL_BYTES = 1 << 18, /* of a worker: glyphs, spans, and lines of a slice */
};

/* A thread's own. */
struct picture_worker {
    struct indexed_png canvas;
    struct lettering *lettering;
    struct panel panel;
};

struct picture_frames {
    const struct drawing_request *request;
    struct drawing drawing;
    struct sheet sheet;
    int32_t sources;
    int width, height, gap, line, legend_lines;
    int letters;
    struct box image;
    int32_t *planes; /* of the overview */
    size_t plane_count;
    int32_t plane; /* of the described frame */
    struct picture_worker workers[PICTURE_BATCH];
    int worker_count;
    char version[LETTERING_VERSION_SIZE];
};

/* --------------------------------------------------------------------------------- legend -- */

/* Where a legend goes on: entries flow from left to right. */
struct flow {
    int x, y, lines;
};

static bool
is_on_slice(const struct picture_frames *frames, size_t segment, int32_t z)
{
    const struct image_mask *mask = frames->request->segments[segment].mask;
    const struct geometry_stack *stack = frames->request->stack;
    const uint64_t *words = mask->bits + (int64_t)z * stack->rows * mask->words_per_row;
    const int64_t whole = stack->columns / 64, rest = stack->columns % 64;
    uint64_t any = 0;
    for (int64_t y = 0; y < stack->rows && any == 0; y++, words += mask->words_per_row) {
        for (int64_t w = 0; w < whole; w++)
            any |= words[w];
        any |= rest > 0 ? words[whole] << (64 - rest) : 0;
    }
    return any != 0;
}

/* Places an entry. Returns false if there is no room left, besides that for "+999". */
static bool
flow_place(const struct picture_frames *frames, struct lettering *lettering, struct flow *flow, const char *label,
           struct box *box)
{
    const int room = frames->width - 2 * frames->gap, all = frames->legend_lines;
    const int more = flow->lines + 1 >= all ? lettering_width(lettering, "+999") + 2 * frames->gap : 0;
    int width = frames->line + lettering_width(lettering, label);
    width = width < room - more ? width : room - more;
    if (flow->x > 0 && flow->x + width > room - more) {
        if (flow->lines + 1 >= all)
            return false;
        *flow = (struct flow){0, flow->y + frames->line, flow->lines + 1};
        return flow_place(frames, lettering, flow, label, box);
    }
    *box = (struct box){frames->gap + flow->x, flow->y, width, frames->line};
    flow->x += width + 2 * frames->gap;
    return true;
}

static void
draw_box(struct indexed_png *canvas, const struct box *box, uint8_t entry)
{
    for (int y = 0; y < box->height; y++)
        memset(canvas->pixels + (ptrdiff_t)(box->top + y) * canvas->width + box->left, entry, (size_t)box->width);
}

static void
draw_entry(const struct picture_frames *frames, struct picture_worker *worker, size_t segment, struct box box)
{
    const struct ink ink = {.ink = indexed_png_grey(DRAWING_LIGHT)};
    const int side = frames->letters * 4 / 5, before = (frames->line - side) / 2;
    char text[DRAWING_TEXT_SIZE + 4];
    snprintf(text, DRAWING_TEXT_SIZE, "%s", frames->request->segments[segment].label);
    draw_box(&worker->canvas, &(struct box){box.left, box.top + before, side, side}, frames->drawing.colors[segment]);
    box.left += frames->line;
    box.width -= frames->line;
    lettering_cut(worker->lettering, text, box.width);
    lettering_draw(worker->lettering, &worker->canvas, &box, text, ink);
}

/* Draws the names of the segments on a slice. */
static void
draw_legend(const struct picture_frames *frames, struct picture_worker *worker, int32_t z, int top)
{
    const struct ink ink = {.ink = indexed_png_grey(DRAWING_LIGHT)};
    struct flow flow = {0, top, 0};
    int left_out = 0;
    for (size_t i = 0; i < frames->request->segment_count; i++) {
        struct box box;
        if (!is_on_slice(frames, i, z))
            continue;
        if (left_out == 0 && flow_place(frames, worker->lettering, &flow, frames->request->segments[i].label, &box))
            draw_entry(frames, worker, i, box);
        else
            left_out++;
    }
    if (left_out > 0) {
        char text[16];
        const struct box box = {frames->gap + flow.x, flow.y, frames->width - 2 * frames->gap - flow.x, frames->line};
        snprintf(text, sizeof text, "+%d", left_out);
        lettering_draw(worker->lettering, &worker->canvas, &box, text, ink);
    }
}

/* ---------------------------------------------------------------------------------- layout - */

/* Returns the size of a slice on a frame. */
static struct box
image_size(const struct geometry_stack *stack)
{
    const double across = stack->columns * panel_spacing(stack, 0), down = stack->rows * panel_spacing(stack, 1);
    const int voxels = stack->columns > stack->rows ? stack->columns : stack->rows;
    const int side = voxels < MIN_SIDE ? MIN_SIDE : voxels > MAX_SIDE ? MAX_SIDE : voxels;
    const double scale = side / fmax(across, down);
    return (struct box){.width = (int)fmax(1, round(across * scale)), .height = (int)fmax(1, round(down * scale))};
}

int64_t
picture_frames_bytes(const struct geometry_stack *stack, size_t segments, int threads)
{
    const int64_t pixel = sizeof(float) + 2; /* of a panel: its value, cover and core */
    const struct box image = image_size(stack);
    const int64_t width = image.width < MIN_SIDE ? MIN_SIDE : image.width;
    const int64_t line = MAX_LINE * width * LETTERS / MIN_SIDE;
    const int64_t frame = width * (image.height + (2 + LEGEND_LINES) * line);
    const int64_t values = (image.width + 2) * (int64_t)(image.height + 2) * pixel;
    const int64_t workers = threads < PICTURE_BATCH ? threads : PICTURE_BATCH;
    /* Colours of a batch or of the overview, and a frame as it is encoded, decoded and inflated. */
    const struct sheet_size sheet = sheet_size(segments);
    const int64_t batch = 3 * frame * (PICTURE_BATCH + 3), overview = 3 * (sheet.tiles + sheet.texts) * (1 + 3);
    return (batch > overview ? batch : overview) + sheet.tiles * pixel + SMALL_BYTES +
           workers * (frame + values + SMALL_BYTES);
}

/* Sets the size of frames and the place of slices on them. */
static int
lay_out_frames(struct picture_frames *frames)
{
    const struct box image = image_size(frames->request->stack);
    const int width = image.width, height = image.height;
    frames->width = width < MIN_SIDE ? MIN_SIDE : width;
    frames->letters = frames->width * LETTERS / MIN_SIDE;
    struct lettering *lettering = lettering_new(frames->letters);
    if (!lettering)
        return -ENOMEM;
    frames->gap = frames->letters / 3;
    frames->line = lettering_line(lettering);
    lettering_version(lettering, frames->version);
    /* As many lines as all segments need. */
    struct flow flow = {0};
    struct box box;
    frames->legend_lines = LEGEND_LINES;
    for (size_t i = 0; i < frames->request->segment_count; i++)
        if (!flow_place(frames, lettering, &flow, frames->request->segments[i].label, &box))
            break;
    frames->legend_lines = flow.lines + 1;
    lettering_free(lettering);
    frames->height = height + (2 + frames->legend_lines) * frames->line;
    frames->image = (struct box){(frames->width - width) / 2, frames->line, width, height};
    return 0;
}

static int
make_worker(struct picture_frames *frames, struct picture_worker *worker)
{
    worker->canvas = frames->drawing.palette;
    worker->canvas.width = frames->width;
    worker->canvas.height = frames->height;
    worker->canvas.pixels = malloc((size_t)frames->width * (size_t)frames->height);
    worker->lettering = lettering_new(frames->letters);
    worker->panel = (struct panel){.across = 0, .down = 1, .through = 2, .box = frames->image};
    const int rc = panel_make(&frames->drawing.volume, &worker->panel);
    return worker->canvas.pixels && worker->lettering ? rc : -ENOMEM;
}

/* Lists the planes of the source that the overview shows. */
static int
list_planes(struct picture_frames *frames)
{
    const struct sheet *sheet = &frames->sheet;
    frames->plane_count = frames->sources > 0 ? (size_t)frames->sources : (size_t)sheet->slice_count;
    frames->planes = malloc((frames->plane_count + 1) * sizeof *frames->planes);
    for (size_t i = 0; frames->planes && i < frames->plane_count; i++)
        frames->planes[i] = frames->sources > 0 ? (int32_t)i : sheet->panels[sheet->plane_count + (int)i].at;
    return frames->planes ? 0 : -ENOMEM;
}

int
picture_frames_make(const struct drawing_request *request, int32_t sources, struct picture_frames **made)
{
    struct picture_frames *frames = *made = calloc(1, sizeof *frames);
    if (!frames)
        return -ENOMEM;
    frames->request = request;
    frames->sources = sources;
    frames->worker_count = request->threads < PICTURE_BATCH ? request->threads : PICTURE_BATCH;
    int rc = drawing_open(request, &frames->drawing);
    if (rc == 0)
        rc = lay_out_frames(frames);
    if (rc == 0)
        rc = sheet_open(&frames->drawing, &frames->sheet);
    if (rc == 0)
        rc = list_planes(frames);
    for (int i = 0; i < frames->worker_count && rc == 0; i++)
        rc = make_worker(frames, &frames->workers[i]);
    return rc;
}

void
picture_frames_free(struct picture_frames *frames)
{
    if (!frames)
        return;
    for (int i = 0; i < frames->worker_count; i++) {
        free(frames->workers[i].canvas.pixels);
        lettering_free(frames->workers[i].lettering);
        panel_free(&frames->workers[i].panel);
    }
    sheet_close(&frames->sheet);
    drawing_close(&frames->drawing);
    free(frames->planes);
    free(frames);
}

/* ---------------------------------------------------------------------------------- slices - */

static void
frames_draw_slice(const struct picture_frames *frames, struct picture_worker *worker, int32_t z)
{
    static const char use[] = "Not for diagnosis.";
    const struct drawing_request *request = frames->request;
    const struct ink ink = {.ink = indexed_png_grey(DRAWING_LIGHT)};
    struct indexed_png *canvas = &worker->canvas;
    const int below = frames->height - (1 + frames->legend_lines) * frames->line;
    const int right = lettering_width(worker->lettering, use);
    struct box box = {frames->gap, 0, frames->width - 3 * frames->gap - right, frames->line};
    char text[DRAWING_TEXT_SIZE];
    worker->panel.at = z;
    draw_box(canvas, &(struct box){0, 0, canvas->width, canvas->height}, indexed_png_grey(DRAWING_GROUND));
    draw_box(canvas, &(struct box){0, frames->line, canvas->width, below - frames->line},
             indexed_png_grey(DRAWING_BLACK));
    drawing_caption(&frames->drawing, &worker->panel, true, text);
    lettering_cut(worker->lettering, text, box.width);
    lettering_draw(worker->lettering, canvas, &box, text, ink);
    box = (struct box){frames->width - frames->gap - right, 0, right, frames->line};
    lettering_draw(worker->lettering, canvas, &box, use, ink);
    panel_sample(&frames->drawing.volume, &worker->panel);
    drawing_panel(&frames->drawing, canvas, &worker->panel, 1);
    drawing_directions(&frames->drawing, canvas, &worker->panel, worker->lettering);
    draw_legend(frames, worker, z, below);
    box = (struct box){frames->gap, frames->height - frames->line, frames->width - 2 * frames->gap, frames->line};
    grey_window_describe(&frames->drawing.window, request->instances[request->stack->planes[0].instance]->value_unit,
                         text, sizeof text);
    lettering_draw(worker->lettering, canvas, &box, text, ink);
}

static void
copy_colors(const struct indexed_png *canvas, uint8_t *rgb)
{
    const size_t count = (size_t)canvas->width * (size_t)canvas->height;
    for (size_t i = 0; i < count; i++, rgb += 3) {
        const struct rgb color = canvas->palette[canvas->pixels[i]];
        rgb[0] = color.r;
        rgb[1] = color.g;
        rgb[2] = color.b;
    }
}

/* One call of draw(). */
struct picture_batch {
    struct picture_frames *frames;
    int32_t first;
    uint8_t *rgb;
    atomic_int workers; /* begun */
};

static void
draw_batch(struct parallel *loop, void *context)
{
    struct picture_batch *batch = context;
    struct picture_frames *frames = batch->frames;
    struct picture_worker *worker = &frames->workers[atomic_fetch_add(&batch->workers, 1)];
    const size_t bytes = (size_t)frames->width * (size_t)frames->height * 3;
    int64_t i;
    while (parallel_take(loop, &i)) {
        frames_draw_slice(frames, worker, batch->first + (int32_t)i);
        copy_colors(&worker->canvas, batch->rgb + (size_t)i * bytes);
    }
}

/* Returns 0 or -ENOMEM. */
static int
draw_overview(struct picture_frames *frames, uint8_t *rgb)
{
    struct indexed_png canvas = frames->drawing.palette;
    canvas.width = SHEET_WIDTH;
    canvas.height = frames->sheet.height;
    canvas.pixels = malloc((size_t)canvas.width * (size_t)canvas.height);
    if (!canvas.pixels)
        return -ENOMEM;
    sheet_draw(&frames->sheet, &canvas);
    copy_colors(&canvas, rgb);
    free(canvas.pixels);
    return 0;
}

static int
frames_draw(void *context, int32_t first, int32_t count, uint8_t *rgb)
{
    struct picture_frames *frames = context;
    struct picture_batch batch = {.frames = frames, .first = first, .rgb = rgb};
    struct parallel loop = {.count = count, .body = draw_batch, .context = &batch};
    if (first == frames->request->stack->plane_count)
        return draw_overview(frames, rgb);
    parallel_run(&loop, frames->worker_count);
    return 0;
}

/* --------------------------------------------------------------------------------- request - */

static void
frames_describe(void *context, int32_t frame, struct picture_frame *place)
{
    struct picture_frames *frames = context;
    const struct geometry_stack *stack = frames->request->stack;
    if (frame == stack->plane_count) {
        *place = (struct picture_frame){.planes = frames->planes, .plane_count = frames->plane_count};
        return;
    }
    frames->plane = frame;
    *place = (struct picture_frame){.planes = &frames->plane, .plane_count = frames->sources > 0 ? 0 : 1};
    /* The first pixel of the frame, from the outer edge of the first voxel of the slice. */
    const double at[2] = {(0.5 - frames->image.left) * stack->columns / frames->image.width - 0.5,
                          (0.5 - frames->image.top) * stack->rows / frames->image.height - 0.5};
    const double up = stack->planes[frame].position - stack->planes[0].position;
    for (int i = 0; i < 3; i++)
        place->position[i] = stack->origin[i] + stack->axes[i] * at[0] * stack->spacing[0] +
                             stack->axes[3 + i] * at[1] * stack->spacing[1] + stack->axes[6 + i] * up;
}

void
picture_frames_fill(struct picture_frames *frames, struct picture_request *request)
{
    const struct geometry_stack *stack = frames->request->stack;
    request->drawing = frames->version;
    request->columns = request->only == stack->plane_count ? SHEET_WIDTH : frames->width;
    request->rows = request->only == stack->plane_count ? frames->sheet.height : frames->height;
    request->slices = stack->plane_count;
    request->placed = stack->has_geometry;
    memcpy(request->orientation, stack->axes, sizeof request->orientation);
    request->spacing[0] = stack->spacing[1] * stack->rows / frames->image.height;
    request->spacing[1] = stack->spacing[0] * stack->columns / frames->image.width;
    request->thickness = stack->spacing[2];
    request->context = frames;
    request->describe = frames_describe;
    request->draw = frames_draw;
}
