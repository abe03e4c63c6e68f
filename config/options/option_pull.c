/*
 * option_pull.c - the options of archives that studies are retrieved from (noctule pull).
 */
#include "config/options/option_sections.h"

#include <string.h>

static const char *const level_choices[] = {"study", "series", NULL};

static void
check_source(const void *object, const struct option_spot *spot)
{
    const struct conf_source *source = object;
    const bool has_place = (source->ae_title || LOST(spot, source->ae_title)) &&
                           (source->host || LOST(spot, source->host)) &&
                           (source->port != 0 || LOST(spot, source->port));
    if (!has_place)
        option_refuse(spot, "name", "requires ae_title, host and port");
    option_check_host(source->host, spot);
}

static const struct option_row source_rows[] = {
    {ROW(conf_source, text, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "name for the command line and the database"},
    AE_ROWS(conf_source),
    {ROW(conf_source, text, move_destination), "", LIMITS(1, 16), .form = &form_ae,
     .help = "title of dicom.titles to send to, by default the first; the archive must know it with our host and port"},
    {ROW(conf_source, choice, level), "\"study\"", .choices = level_choices,
     .help = "unit of a C-MOVE: a whole \"study\", or each \"series\", so that less is sent again after a failure"},
    {ROW(conf_source, window, window), "", LIMITS(1, 400),
     .help = "times when requests may start, as in a pipeline's window; running requests continue; "
             "by default any time"},
    {ROW(conf_source, integer, per_hour), "0", LIMITS(0, 100000),
     .help = "max number of items per hour, evenly spread; 0: no limit, one at a time"},
    CONNECT_ROW(conf_source),
    {ROW(conf_source, number, dimse_seconds), "300.0", LIMITS(0.1, 3600),
     .help = "timeout of the first answer, and between answers"},
    {ROW(conf_source, number, deadline_seconds), "3600.0", LIMITS(0.1, 86400),
     .help = "max duration of one C-FIND or C-MOVE; then it is cancelled and tried again later"},
    {ROW(conf_source, number, arrival_seconds), "60.0", LIMITS(0, 3600),
     .help = "timeout of instances that the archive reports as sent; then the item is PARTIAL"},
};

static const struct option_section source_section = {SECTION(source_rows, conf_source), .check = check_source};

static const struct option_row pull_rows[] = {
    {ROW(conf_pull, list, sources), MANY(struct conf_pull, source_count), .fallback = "( )", LIMITS(0, 64),
     .section = &source_section, .help = "archives to query by C-FIND and to retrieve from by C-MOVE"},
};

const struct option_section option_pull = {SECTION(pull_rows, conf_pull)};

void
option_check_sources(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named named = NAMED(spot, "pull.sources", conf->pull.sources, conf->pull.source_count);
    option_refuse_duplicates(&named, ".name", "the name of an earlier source");
    for (size_t i = 0; i < conf->pull.source_count; i++) {
        /* Check that the archive sends to one of our titles, else the instances never arrive. */
        const struct conf_source *source = &conf->pull.sources[i];
        const struct option_named titles = NAMED(spot, "dicom.titles", conf->dicom.titles, conf->dicom.title_count);
        if (source->move_destination && option_lacks(&titles, source->move_destination))
            option_refuse(spot, ELEMENT("pull.sources", i, ".move_destination"), "\"%s\" is not in dicom.titles",
                          source->move_destination);
        if (source->tls && option_lacks_authorities(conf, spot))
            option_refuse(spot, ELEMENT("pull.sources", i, ".tls"), "requires dicom.tls.ca");
    }
    if (conf->pull.source_count > 0 && conf->dicom.port == 0 && conf->dicom.tls_port == 0 &&
        !LOST(spot, conf->dicom.port) && !LOST(spot, conf->dicom.tls_port))
        option_refuse(spot, "pull.sources", "requires dicom.port or dicom.tls_port, which archives send to");
}
