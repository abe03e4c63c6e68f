/*
 * option_inbox.c - the options of watched folders, and checks of their paths.
 */
#include "config/options/option_sections.h"

#include <string.h>

/* Noctule's own folders below the root (service/common/layout.h; a test compares them). */
static const char *const own_folders[] = {"incoming", "series", "quarantine", "jobs",     "outbox",   "released",
                                          "removed",  "pull",   "run",        "programs", "converted"};

static const char *const after_choices[] = {"keep", "move", "delete", NULL};

static void
check_inbox(const void *object, const struct option_spot *spot)
{
    const struct conf_inbox *inbox = object;
    if (LOST(spot, inbox->after))
        return;
    if (inbox->after == CONF_MOVE && !inbox->move_to && !LOST(spot, inbox->move_to))
        option_refuse(spot, "after", "\"move\" requires move_to");
    if (inbox->after != CONF_MOVE && inbox->move_to)
        option_refuse(spot, "move_to", "is only allowed with after = \"move\"");
    /* Each start scans the inbox again: the kept old file would replace the newer one. */
    if (inbox->after == CONF_KEEP && inbox->resent == CONF_NEWEST)
        option_refuse(spot, "resent", "\"newest\" requires after = \"move\" or \"delete\"");
}

static const struct option_row inbox_rows[] = {
    {ROW(conf_inbox, text, name), "", LIMITS(1, 64), .form = &form_name,
     .help = "name of the inbox, for match.inbox of rules"},
    {ROW(conf_inbox, path, path), NULL, LIMITS(1, 4000),
     .help = "folder to watch, including its subfolders; relative paths are relative to root"},
    {ROW(conf_inbox, choice, after), "\"keep\"", .choices = after_choices,
     .help = "handling of a file after Noctule's copy and its database row are durable; with "
             "\"keep\" each file is stored twice until retention.inbox = \"delete\" removes both"},
    {ROW(conf_inbox, path, move_to), "", LIMITS(1, 4000), .help = "folder for the originals, with after = \"move\""},
    RESENT_ROW(conf_inbox),
    {ROW(conf_inbox, number, settle_seconds), "2.0", LIMITS(0, 3600),
     .help = "time without a change of size or timestamps after which a file is complete"},
    {ROW(conf_inbox, number, sweep_seconds), "10.0", LIMITS(0.1, 86400),
     .help = "interval of full scans; on a local disk, which reports new files, it grows up to 10 "
             "minutes while scans find no new files"},
};

const struct option_section option_inbox = {SECTION(inbox_rows, conf_inbox), .check = check_inbox};

const char *
option_path_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) != 0)
        return NULL;
    if (length > 0 && folder[length - 1] == '/')
        return path + length;
    if (path[length] == '\0')
        return path + length;
    return path[length] == '/' ? path + length + 1 : NULL;
}

static bool
is_own_folder(const char *below_root)
{
    size_t length = strcspn(below_root, "/");
    if (length == 0)
        return true;
    for (size_t i = 0; i < sizeof(own_folders) / sizeof(own_folders[0]); i++)
        if (strlen(own_folders[i]) == length && strncmp(own_folders[i], below_root, length) == 0)
            return true;
    return false;
}

/* Returns whether the path contains "..", which would defeat the comparison of paths. */
static bool
climbs(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")); at++)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

bool
option_check_apart_from_root(const struct conf *conf, const char *path, const char *option,
                             const struct option_spot *spot)
{
    if (climbs(path)) {
        option_refuse(spot, option, "must not contain \"..\"");
        return false;
    }
    if (!conf->root)
        return true; /* the root was rejected and is unknown */
    const char *below = option_path_below(path, conf->root);
    if (!option_path_below(conf->root, path) && !(below && is_own_folder(below)))
        return true;
    option_refuse(spot, option, "%s is, or contains, a folder of Noctule itself: choose another folder", path);
    return false;
}

/* Returns whether the path is in an inbox other than number `own`. Of two equal inboxes, only the
 * second is in the first. */
static bool
is_within_inbox(const struct conf *conf, const char *path, size_t own)
{
    for (size_t i = 0; i < conf->inbox_count; i++) {
        const char *inbox = conf->inboxes[i].path;
        const char *below = inbox && i != own ? option_path_below(path, inbox) : NULL;
        if (below && (below[0] || i < own))
            return true;
    }
    return false;
}

void
option_check_inboxes(const struct conf *conf, const struct option_spot *spot)
{
    for (size_t i = 0; i < conf->inbox_count; i++) {
        const struct conf_inbox *inbox = &conf->inboxes[i];
        const char *path_option = ELEMENT("inbox", i, ".path");
        const char *move_option = ELEMENT("inbox", i, ".move_to");
        if (inbox->path && option_check_apart_from_root(conf, inbox->path, path_option, spot) &&
            is_within_inbox(conf, inbox->path, i))
            option_refuse(spot, path_option, "%s is within another inbox: remove one of the two", inbox->path);
        if (inbox->move_to && option_check_apart_from_root(conf, inbox->move_to, move_option, spot) &&
            is_within_inbox(conf, inbox->move_to, SIZE_MAX))
            option_refuse(spot, move_option, "%s is within an inbox: choose another folder", inbox->move_to);
    }
    const struct option_named inboxes = NAMED(spot, "inbox", conf->inboxes, conf->inbox_count);
    option_refuse_duplicates(&inboxes, ".name", "the name of an earlier inbox");
}
