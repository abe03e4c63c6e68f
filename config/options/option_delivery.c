/*
 * option_delivery.c - the options of destinations and of delivery to them.
 */
#include "config/options/option_sections.h"

#include <string.h>

enum { OF_AN_AE = 1 << 0, OF_STOW = 1 << 1 };

/* Reports options that do not belong to the kind of destination. */
static void
check_destination_way(const struct conf_destination *destination, unsigned way, const char *with,
                      const struct option_spot *spot)
{
    const struct {
        const char *option;
        bool given;
        unsigned of;
    } options[] = {
        {"stow", destination->stow != NULL, OF_STOW},
        {"ca", destination->ca != NULL, OF_STOW},
        {"client_certificate", destination->client_certificate != NULL, OF_STOW},
        {"client_key", destination->client_key != NULL, OF_STOW},
        {"token_file", destination->token_file != NULL, OF_STOW},
        {"login_file", destination->login_file != NULL, OF_STOW},
        {"ae_title", destination->ae_title != NULL, OF_AN_AE},
        {"host", destination->host != NULL, OF_AN_AE},
        {"port", destination->port != 0, OF_AN_AE},
        {"calling_ae_title", destination->calling_ae_title != NULL, OF_AN_AE},
        {"tls", destination->tls, OF_AN_AE},
        {"certificate", destination->certificate != NULL, OF_AN_AE},
        {"commit", destination->commit, OF_AN_AE},
        {"fallback", destination->fallback != NULL, OF_AN_AE},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].given && !(options[i].of & way))
            option_refuse(spot, options[i].option, "is not allowed with %s", with);
}

/* Checks the credentials of a STOW-RS service, which must not be sent unencrypted. */
static void
check_stow(const struct conf_destination *destination, const struct option_spot *spot)
{
    const bool is_plain = strncmp(destination->stow, "http://", strlen("http://")) == 0;
    if (destination->token_file && destination->login_file)
        option_refuse(spot, "login_file", "is not allowed with token_file: remove one of the two");
    else if (is_plain && (destination->token_file || destination->login_file))
        option_refuse(spot, "stow", "would send the credentials unencrypted: use https://");
    if (destination->client_key && !destination->client_certificate)
        option_refuse(spot, "client_key", "requires client_certificate");
    if (is_plain && (destination->ca || destination->client_certificate))
        option_refuse(spot, "stow", "does not use certificates: write https://");
}

void
option_check_host(const char *host, const struct option_spot *spot)
{
    if (host && strchr(host, ':') && !form_address.fits(host))
        option_refuse(spot, "host", "must be a host name, or an IPv4 or IPv6 address");
}

static void
check_destination(const void *object, const struct option_spot *spot)
{
    const struct conf_destination *destination = object;
    if (destination->name && strcmp(destination->name, CONF_SENDER) == 0)
        option_refuse(spot, "name", "\"%s\" is reserved for the sender of a series: choose another name", CONF_SENDER);
    if (LOST(spot, destination->folder) || LOST(spot, destination->stow))
        return;
    if (destination->folder)
        check_destination_way(destination, 0, "folder", spot);
    else if (destination->stow)
        check_destination_way(destination, OF_STOW, "stow", spot);
    else if (!((destination->ae_title || LOST(spot, destination->ae_title)) &&
               (destination->host || LOST(spot, destination->host)) &&
               (destination->port != 0 || LOST(spot, destination->port))))
        option_refuse(spot, "name", "requires ae_title, host and port, or folder, or stow");
    else
        check_destination_way(destination, OF_AN_AE, "an AE", spot);
    option_check_host(destination->host, spot);
    if (!destination->folder && (destination->takes & CONF_RESULT_FILES))
        option_refuse(spot, "takes", "\"codes\" and \"nifti\" are no DICOM objects: only a folder takes them");
    if (destination->stow)
        check_stow(destination, spot);
    if (destination->deidentify && (destination->takes & (CONF_RESULT_CODES | CONF_RESULT_PICTURE)))
        option_refuse(spot, "takes", "\"codes\" and \"picture\" cannot be de-identified: labels may name a person");
    if (destination->commit && (destination->send & CONF_SEND_IMAGES))
        option_refuse(spot, "send", "\"images\" have no storage commitment: remove `commit`, or use two destinations");
    if (destination->takes && !(destination->send & CONF_SEND_RESULTS) && !LOST(spot, destination->send))
        option_refuse(spot, "takes", "has no effect without \"results\" in send");
}

static const char *const profile_choices[] = {"basic", NULL};
static const char *const patient_choices[] = {"pseudonym", "empty", NULL};
static const char *const send_choices[] = {"results", "images", NULL};
/* In the order of enum deidentify_keep. */
static const char *const keep_choices[] = {"uids",  "device",      "institution",  "characteristics",
                                           "dates", "descriptors", "safe_private", NULL};

static const struct option_row deidentify_rows[] = {
    {ROW(conf_deidentify, choice, profile), NULL, .choices = profile_choices,
     .help = "confidentiality profile: \"basic\", PS3.15 table E.1-1, with the Clean Structured Content Option"},
    {ROW(conf_deidentify, flags, keep), "", .choices = keep_choices,
     .help = "options of the profile: \"dates\", moved by a number of days that is the same for all objects of a "
             "patient; \"device\"; \"institution\"; \"characteristics\", such as age, sex and weight; \"descriptors\", "
             "reduced to words; \"safe_private\", listed private numbers; \"uids\"; by default none"},
    {ROW(conf_deidentify, choice, patient), "\"pseudonym\"", .choices = patient_choices,
     .help = "Patient ID and name: a \"pseudonym\" by the key of this installation, which noctule identity resolves, "
             "or \"empty\""},
    {ROW(conf_deidentify, strings, words), MANY(struct conf_deidentify, word_count), .fallback = "[ ]", LIMITS(0, 4096),
     .help = "words that texts may keep, besides all words of pipelines: labels of segments, and with \"descriptors\" "
             "descriptions; other words are removed"},
};

static const struct option_section deidentify_section = {SECTION(deidentify_rows, conf_deidentify)};

static const struct option_row destination_rows[] = {
    {ROW(conf_destination, text, name), NULL, LIMITS(1, 64), .form = &form_name,
     .help = "name for pipelines and the command line"},
    {ROW(conf_destination, path, folder), "", LIMITS(1, 4000),
     .help = "folder to copy results to, named by SOP Instance UID; replaces an AE"},
    {ROW(conf_destination, text, stow), "", LIMITS(1, 1024), .form = &form_url,
     .help = "URL of a STOW-RS service to send results to, such as "
             "https://pacs.example/dicom-web/studies; replaces an AE"},
    {ROW(conf_destination, path, ca), "", LIMITS(1, 4000),
     .help = "stow: PEM file of trusted CAs, by default those of the system; the server "
             "certificate must be valid for the host of the URL"},
    {ROW(conf_destination, path, client_certificate), "", LIMITS(1, 4000),
     .help = "stow: PEM file of our client certificate"},
    {ROW(conf_destination, path, client_key), "", LIMITS(1, 4000),
     .help = "stow: PEM file of the key of our client certificate; by default in client_certificate"},
    {ROW(conf_destination, path, token_file), "", LIMITS(1, 4000),
     .help = "stow: file whose first line is the bearer token; read again for each result"},
    {ROW(conf_destination, path, login_file), "", LIMITS(1, 4000),
     .help = "stow: file whose first line is user:password; read again for each result"},
    AE_ROWS(conf_destination),
    {ROW(conf_destination, boolean, commit), "false",
     .help = "request storage commitment; a result is SENT only after the commitment"},
    {ROW(conf_destination, number, commit_seconds), "3600.0", LIMITS(0.1, 604800),
     .help = "timeout of the storage commitment; after it, the result is sent again"},
    {ROW(conf_destination, text, fallback), "", LIMITS(1, 64), .form = &form_name,
     .help = "destination of results that this AE cannot store; without it, their delivery fails"},
    {ROW(conf_destination, flags, takes), "", .choices = result_choices,
     .help = "kinds of results to deliver, as in results of a pipeline; \"seg\" includes connectedness maps; only a "
             "folder may take \"codes\" and \"nifti\"; by default all DICOM objects"},
    {ROW(conf_destination, flags, send), "[ \"results\" ]", .choices = send_choices,
     .help =
         "objects to deliver: the \"results\" of jobs, and the source \"images\" of the series that they processed, "
         "as one delivery per job"},
    {ROW(conf_destination, part, deidentify), "", .section = &deidentify_section,
     .help = "deliver copies without the identity of the patient; UIDs are replaced by a key of this installation, the "
             "same for the same source, so that copies refer to each other; by default objects leave as they are"},
    CONNECT_ROW(conf_destination),
    {ROW(conf_destination, number, dimse_seconds), "60.0", LIMITS(0.1, 3600),
     .help = "timeout of the answer to a DICOM message or to a STOW-RS request"},
    {ROW(conf_destination, number, min_kib_per_second), "1.0", LIMITS(0, 1e6),
     .help = "min transfer rate of a result after the first dimse_seconds; 0: no min"},
    {ROW(conf_destination, number, idle_seconds), "10.0", LIMITS(0, 3600),
     .help = "time that an unused association stays open for the next result"},
};

const struct option_section option_destination = {SECTION(destination_rows, conf_destination),
                                                  .check = check_destination};

static const struct option_row delivery_rows[] = {
    {ROW(conf_delivery, number, retry_seconds), "30.0", LIMITS(0.1, 86400),
     .help = "delay before the second attempt; approximately doubled before each further attempt"},
    {ROW(conf_delivery, number, retry_max_seconds), "3600.0", LIMITS(0.1, 86400), .help = "max delay between attempts"},
    {ROW(conf_delivery, number, give_up_seconds), "259200.0", LIMITS(1, 31536000),
     .help = "time after which a delivery fails; the time while its destination is held or the "
             "service is down does not count"},
    {ROW(conf_delivery, integer, breaker_failures), "5", LIMITS(1, 1000),
     .help = "number of consecutive failures that pause deliveries to a destination"},
    {ROW(conf_delivery, number, breaker_seconds), "60.0", LIMITS(0.1, 86400),
     .help = "length of that pause; then one delivery is tried"},
};

const struct option_section option_delivery = {SECTION(delivery_rows, conf_delivery)};

static struct option_named
named_destinations(const struct conf *conf, const struct option_spot *spot)
{
    return NAMED(spot, "destinations", conf->destinations, conf->destination_count);
}

/* Checks that fallbacks form no cycle, else a result would never arrive. Reports a cycle once, for
 * its first destination. */
static void
check_fallback(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    const struct option_named named = named_destinations(conf, spot);
    const char *fallback = conf->destinations[i].fallback;
    if (fallback && option_lacks(&named, fallback))
        option_refuse(spot, ELEMENT("destinations", i, ".fallback"), "there is no destination named \"%s\"", fallback);
    const size_t found = fallback ? option_find_name(&named, fallback) : named.count;
    const struct conf_destination *other = found < named.count ? &conf->destinations[found] : NULL;
    if (other && conf->destinations[i].deidentify && !other->deidentify && !LOST(spot, other->deidentify))
        option_refuse(spot, ELEMENT("destinations", i, ".fallback"),
                      "\"%s\" would get objects that are not de-identified: give it deidentify, too", fallback);
    size_t at = i, steps = 0;
    do {
        fallback = conf->destinations[at].fallback;
        at = fallback ? option_find_name(&named, fallback) : named.count;
    } while (at > i && at < named.count && ++steps < named.count);
    if (at == i)
        option_refuse(spot, ELEMENT("destinations", i, ".fallback"),
                      "leads back to this destination: remove one fallback of the cycle");
}

/* Returns whether results of the pipeline may reach a destination: by its name, as the sender of a series, or as the
 * fallback of another one. */
static bool
pipeline_reaches(const struct conf *conf, const struct conf_pipeline *pipeline, size_t destination)
{
    const struct conf_destination *reached = &conf->destinations[destination];
    for (size_t i = 0; i < pipeline->deliver_count; i++) {
        const char *name = pipeline->deliver[i];
        for (size_t k = 0; k < conf->destination_count; k++) {
            const struct conf_destination *first = &conf->destinations[k], *at = first;
            if (!option_is_same(name, first->name) && !(option_is_same(name, CONF_SENDER) && first->ae_title))
                continue;
            for (size_t steps = 0; at && at != reached && steps < conf->destination_count; steps++)
                at = at->fallback ? conf_find_destination(conf, at->fallback) : NULL;
            if (at == reached)
                return true;
        }
    }
    return false;
}

static unsigned
pipeline_makes(const struct conf_pipeline *pipeline)
{
    unsigned makes = pipeline->results;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        makes |= pipeline->segments[i].connectedness_map ? CONF_RESULT_SEG : 0;
    return makes;
}

/* Checks that `takes` names only kinds that a pipeline makes, and some kind of each pipeline. */
static void
check_takes(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    const struct conf_destination *destination = &conf->destinations[i];
    unsigned makes = 0;
    size_t pipelines = 0;
    if (!destination->takes || LOST_ANY(spot, conf->pipelines, conf->pipeline_count) ||
        LOST_ANY(spot, conf->destinations, conf->destination_count))
        return;
    for (size_t k = 0; k < conf->pipeline_count; k++) {
        const struct conf_pipeline *pipeline = &conf->pipelines[k];
        if (!pipeline_reaches(conf, pipeline, i))
            continue;
        makes |= pipeline_makes(pipeline);
        pipelines++;
        if (option_wants_warnings(spot) && !(pipeline_makes(pipeline) & destination->takes))
            option_warn(spot, ELEMENT("destinations", i, ".takes"), "has no result of the pipeline \"%s\"",
                        pipeline->name);
    }
    for (unsigned kind = 0; pipelines > 0 && result_choices[kind]; kind++)
        if (destination->takes & ~makes & 1u << kind)
            option_refuse(spot, ELEMENT("destinations", i, ".takes"),
                          "no pipeline that delivers to \"%s\" makes \"%s\": add it to results of the pipeline, or "
                          "remove it here",
                          destination->name, result_choices[kind]);
}

/* Checks that no destination folder lies in an inbox, else results would be received again. */
static void
check_destination_folders(const struct conf *conf, size_t i, const struct option_spot *spot)
{
    const char *folder = conf->destinations[i].folder;
    const char *option = ELEMENT("destinations", i, ".folder");
    if (!folder || !option_check_apart_from_root(conf, folder, option, spot))
        return;
    for (size_t j = 0; j < conf->inbox_count; j++)
        if (conf->inboxes[j].path && option_path_below(folder, conf->inboxes[j].path)) {
            option_refuse(spot, option, "%s is within an inbox: choose another folder", folder);
            return;
        }
}

bool
option_lacks_authorities(const struct conf *conf, const struct option_spot *spot)
{
    return !conf->dicom.tls.ca && !LOST(spot, conf->dicom.tls.ca);
}

void
option_check_destinations(const struct conf *conf, const struct option_spot *spot)
{
    const struct option_named named = named_destinations(conf, spot);
    option_refuse_duplicates(&named, ".name", "the name of an earlier destination");
    for (size_t i = 0; i < conf->destination_count; i++) {
        check_fallback(conf, i, spot);
        check_destination_folders(conf, i, spot);
        check_takes(conf, i, spot);
    }
    /* Report only the first destination, because one correction fixes all. */
    for (size_t i = 0; i < conf->destination_count; i++)
        if (conf->destinations[i].tls && option_lacks_authorities(conf, spot)) {
            option_refuse(spot, ELEMENT("destinations", i, ".tls"), "requires dicom.tls.ca");
            return;
        }
}
