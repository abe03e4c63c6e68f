#include "service/pipeline/results/grey_window.h"

#include "service/pipeline/measure/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Returns the value at position `at` of the sorted values (Hoare's selection); reorders the values.
 */
static float
select_value(float *values, size_t count, size_t at)
{
    ptrdiff_t low = 0, high = (ptrdiff_t)count - 1, wanted = (ptrdiff_t)at;
    while (low < high) {
        float pivot = values[low + (high - low) / 2];
        ptrdiff_t i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot)
                i++;
            while (pivot < values[j])
                j--;
            if (i > j)
                break;
            float swapped = values[i];
            values[i++] = values[j];
            values[j--] = swapped;
        }
        if (wanted <= j)
            high = j;
        else if (wanted >= i)
            low = i;
        else
            break;
    }
    return values[at];
}

/* The spread of values, or a window. */
struct spread {
    double low, high;
};

/* Computes the 1st and the 99.5th percentile; reorders the values. */
static struct spread
percentiles(float *values, size_t count)
{
    float low = select_value(values, count, count / 100);
    return (struct spread){low, select_value(values, count, count - 1 - count / 200)};
}

/* A sample of the displayed values, evenly spaced. */
struct shown_values {
    float *all, *inside; /* in segments; both arrays share one allocation */
    size_t all_count, inside_count;
};

static bool
in_any_segment(const struct grey_window_request *request, const struct panel *panel, int x, int y)
{
    for (size_t i = 0; i < request->mask_count; i++) {
        if (panel_has(request->volume, panel, request->masks[i], x, y))
            return true;
    }
    return false;
}

static int
take_shown_values(const struct grey_window_request *request, struct shown_values *shown)
{
    enum { STRIDE = 3 };

    size_t most = 0;
    for (int i = 0; i < request->slice_count; i++)
        most +=
            (size_t)(request->slices[i].box.width / STRIDE + 1) * (size_t)(request->slices[i].box.height / STRIDE + 1);
    *shown = (struct shown_values){.all = malloc(2 * most * sizeof *shown->all)};
    if (!shown->all)
        return -ENOMEM;
    shown->inside = shown->all + most;
    for (int i = 0; i < request->slice_count; i++) {
        const struct panel *panel = &request->slices[i];
        for (int y = 0; y < panel->box.height; y += STRIDE) {
            for (int x = 0; x < panel->box.width; x += STRIDE) {
                float value = panel->values[y * panel->box.width + x];
                shown->all[shown->all_count++] = value;
                if (in_any_segment(request, panel, x, y))
                    shown->inside[shown->inside_count++] = value;
            }
        }
    }
    return 0;
}

/* Finds the common window of all displayed slices. Returns false if they have none or differ. */
static bool
common_window(const struct grey_window_request *request, struct grey_window *window)
{
    const struct geometry_stack *stack = request->volume->stack;
    for (int i = 0; i < request->slice_count; i++) {
        const struct geometry_plane *plane = &stack->planes[request->slices[i].at];
        const struct dicom_frame *frame = &request->volume->instances[plane->instance]->frames[plane->frame];
        if (!frame->has_window || (i > 0 && (frame->window_low != window->low || frame->window_high != window->high)))
            return false;
        *window = (struct grey_window){frame->window_low, frame->window_high, frame->window_center, frame->window_width,
                                       GREY_WINDOW_OF_IMAGES};
    }
    return request->slice_count > 0;
}

static double
share_within(const float *values, size_t count, const struct grey_window *window)
{
    size_t within = 0;
    for (size_t i = 0; i < count; i++)
        within += values[i] > window->low && values[i] < window->high;
    return (double)within / (double)count;
}

static bool
shows_tissue(struct shown_values *shown, const struct grey_window *window)
{
    if (shown->inside_count == 0)
        return share_within(shown->all, shown->all_count, window) >= 0.05;
    const struct spread tissue = percentiles(shown->inside, shown->inside_count);
    return share_within(shown->inside, shown->inside_count, window) >= 0.5 &&
           (tissue.high <= tissue.low || window->high - window->low <= 16 * (tissue.high - tissue.low));
}

static void
window_by_values(struct shown_values *shown, struct grey_window *window)
{
    const struct spread all = percentiles(shown->all, shown->all_count);
    *window = (struct grey_window){.low = all.low, .high = all.high, .origin = GREY_WINDOW_OF_EVERYTHING};
    if (shown->inside_count > 0) {
        const struct spread tissue = percentiles(shown->inside, shown->inside_count);
        const double margin = 1.5 * (tissue.high - tissue.low);
        window->low = fmax(all.low, tissue.low - margin);
        window->high = fmin(all.high, tissue.high + margin);
        window->origin = GREY_WINDOW_OF_SEGMENTS;
    }
    if (window->high <= window->low)
        window->high = window->low + 1;
    window->center = (window->low + window->high) / 2;
    window->width = window->high - window->low;
}

int
grey_window_choose(const struct grey_window_request *request, struct grey_window *window)
{
    struct shown_values shown;
    if (request->set[1] > 0) {
        const double center = request->set[0], half = request->set[1] / 2;
        *window = (struct grey_window){center - half, center + half, center, 2 * half, GREY_WINDOW_OF_PIPELINE};
        return 0;
    }
    const int rc = take_shown_values(request, &shown);
    if (rc)
        return rc;
    if (!common_window(request, window) || !shows_tissue(&shown, window))
        window_by_values(&shown, window);
    free(shown.all);
    return 0;
}

void
grey_window_describe(const struct grey_window *window, const char *unit, char *text, size_t size)
{
    static const char *const origins[] = {
        [GREY_WINDOW_OF_PIPELINE] = "set by the pipeline",
        [GREY_WINDOW_OF_IMAGES] = "of the images",
        [GREY_WINDOW_OF_SEGMENTS] = "by the segments' values",
        [GREY_WINDOW_OF_EVERYTHING] = "by all values",
    };
    const char *name = value_unit_spoken(unit);
    snprintf(text, size, "Window C %.4g W %.4g%s%s, %s", window->center, window->width, name[0] ? " " : "", name,
             origins[window->origin]);
}
