/*
 * kind_window.c - times of the week: intervals in which jobs may start, or moments such as
 * deadlines (base/calendar/time_window.h).
 */
#include "config/kinds/kinds.h"

#include <errno.h>
#include <stdlib.h>

static int
window_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    char why[TIME_WINDOW_WHY] = "";
    struct conf_window *window = calloc(1, sizeof(*window));
    if (!window)
        return -ENOMEM;
    int rc = read_text(reader, row, setting, &window->text);
    if (rc == 0)
        rc = row->kind == &option_moments ? time_window_parse_moments(window->text, &window->times, why)
                                          : time_window_parse(window->text, &window->times, why);
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
                                          .write = write_text_of,
                                          .has = option_not_null,
                                          .clear = window_clear,
                                          .type = "string",
                                          .limits = " characters"};

const struct option_kind option_moments = {.read = window_read,
                                           .write = write_text_of,
                                           .has = option_not_null,
                                           .clear = window_clear,
                                           .type = "string",
                                           .limits = " characters"};
