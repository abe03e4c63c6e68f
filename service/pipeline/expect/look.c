#include "service/pipeline/expect/look.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
look_add(const struct expect_look *look, const struct expect_breach *given, const char *format, ...)
{
    struct expect_breach *breach = &look->breaches->at[look->breaches->count++];
    *breach = *given;
    breach->segment = look->segment;
    int length = snprintf(breach->text, sizeof breach->text, "%s: ", look->pipeline->segments[look->segment].label);
    va_list values;
    va_start(values, format);
    if (length > 0 && (size_t)length < sizeof breach->text)
        vsnprintf(breach->text + length, sizeof breach->text - (size_t)length, format, values);
    va_end(values);
    text_utf8_mend_end(breach->text);
}

struct expect_breach
look_breach(const char *expectation, double found, double low, double high)
{
    return (struct expect_breach){.expectation = expectation, .found = found, .bounded = true, .allowed = {low, high}};
}

const char *
look_number(const struct expect_breach *breach, double scale, int digits, char text[LOOK_NUMBER])
{
    enum { MOST_DIGITS = 9 };

    const double number = breach->found * scale;
    for (; digits <= MOST_DIGITS; digits++) {
        if (fabs(number) < pow(10, digits))
            snprintf(text, LOOK_NUMBER, "%.*g", digits, number);
        else
            snprintf(text, LOOK_NUMBER, "%.0f", number);
        const double rounded = strtod(text, NULL) / scale;
        if (rounded < breach->allowed[0] || rounded > breach->allowed[1])
            return text;
    }
    text_digits(number, text);
    return text;
}

void
look_compare(const struct expect_look *look, const char *expectation, const double bounds[2], double found,
             const char *before, const char *behind)
{
    const struct expect_breach breach = look_breach(expectation, found, bounds[0], bounds[1]);
    char number[LOOK_NUMBER], expected[80];
    if (found >= bounds[0] && found <= bounds[1])
        return;
    look_number(&breach, 1, 6, number);
    if (bounds[0] < bounds[1])
        snprintf(expected, sizeof expected, "%.10g to %.10g", bounds[0], bounds[1]);
    else
        snprintf(expected, sizeof expected, "%.10g", bounds[0]);
    look_add(look, &breach, "%s%s%s, expected %s%s", before, number, behind, expected, behind);
}

const char *
look_name(const char *label, char text[LOOK_NAME])
{
    const bool is_word = label[0] >= 'A' && label[0] <= 'Z' && label[1] >= 'a' && label[1] <= 'z';
    snprintf(text, LOOK_NAME, "the %s", label);
    if (is_word)
        text[4] = (char)(label[0] - 'A' + 'a');
    return text;
}

const struct image_mask *
look_mask(const struct expect_look *look, const char *label)
{
    return &look->volume->masks[conf_find_segment(look->pipeline, label)];
}

/* Returns the grid axis that is the nearest one to a patient axis; -1: each is more than 37 degrees away. */
static int
axis_along(const struct expect_frame *frame, int patient)
{
    for (int a = 0; a < 3; a++)
        if (fabs(frame->axes[3 * a + patient]) >= 0.8)
            return a;
    return -1;
}

bool
look_axes(const struct expect_look *look, const char *expectation, struct expect_axes *axes)
{
    const struct expect_frame *frame = look->volume->frame;
    const struct expect_breach breach = {.expectation = expectation};
    for (int p = 0; frame && p < 3; p++) {
        axes->along[p] = axis_along(frame, p);
        if (axes->along[p] < 0) {
            if (expectation)
                look_add(look, &breach, "the images are oblique to the patient's axes");
            return false;
        }
        axes->reversed[p] = frame->axes[3 * axes->along[p] + p] < 0;
    }
    if (!frame && expectation)
        look_add(look, &breach, "the orientation of the images is not known");
    return frame;
}

int
look_make(const struct expect_look *look, size_t spare, const struct kernels_mask_request *request,
          struct image_mask *mask)
{
    struct kernels_mask_result result;
    const int rc = kernels_mask_run(look->volume->lane, look->volume->spare + spare, request, &result, look->error);
    if (rc == 0)
        *mask = result.mask;
    return rc;
}
