/*
 * kind_window.c - times of the week: intervals in which jobs may start, or moments such as
 * deadlines (base/calendar/time_window.h).
 */
#include "config/kinds/kinds.h"

#include <errno.h>
#include <stdlib.h>

typedef int window_parse(const char *text, struct time_window **window, char why[TIME_WINDOW_WHY]);

static int
window_read_by(window_parse *parse, const struct option_reader *reader, const struct option_row *row,
               config_setting_t *setting, void *field)
{
    char why[TIME_WINDOW_WHY] = "";
    struct conf_window *window = calloc(1, sizeof(*window));
    if (!window)
        return -ENOMEM;
    int rc = read_text(reader, row, setting, &window->text);
    if (rc == 0)
        rc = parse(window->text, &window->times, why);
    if (rc < 0 && *why)
        rc = read_fail(reader, setting, "%s", why);
    if (rc == 0) {
        memcpy(field, &window, sizeof(window));
        return 0; // cppcheck-suppress memleak ; the field has it now
    }
    free(window->text);
    free(window);
    return rc;
}

static int
window_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    return window_read_by(time_window_parse, reader, row, setting, field);
}

static int
moments_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    return window_read_by(time_window_parse_moments, reader, row, setting, field);
}

static void
window_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct conf_window *const *window = field;
    (void)row;
    write_text(writer->out, (*window)->text);
}

static void
window_clear(const struct option_row *row, void *field)
{
    struct conf_window *window = *(struct conf_window **)field;
    (void)row;
    if (!window)
        return;
    time_window_free(window->times);
    free(window->text);
    free(window);
}

const struct option_kind option_window = {.read = window_read,
                                          .write = window_write,
                                          .has = option_not_null,
                                          .clear = window_clear,
                                          .type = "string",
                                          .limits = " characters"};

const struct option_kind option_moments = {.read = moments_read,
                                           .write = window_write,
                                           .has = option_not_null,
                                           .clear = window_clear,
                                           .type = "string",
                                           .limits = " characters"};
