/*
 * kind_text.c - texts, paths, and arrays of texts.
 */
#include "base/text.h"
#include "config/kinds/kinds.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

static bool
form_fits_dicom(const char *text)
{
    return strchr(text, '\\') == NULL;
}

/* PS3.5 allows printable ASCII without backslash. Blanks at the ends are padding: the comparison
 * with the title of a peer would always fail. */
static bool
form_fits_ae(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] > 0x7e || text[i] == '\\')
            return false;
    return length > 0 && text[0] != ' ' && text[length - 1] != ' ';
}

static bool
form_fits_address(const char *text)
{
    struct in6_addr address;
    return !text[0] || inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

/* Accepts 32 bytes of two digits each, all or none separated by colons. */
static bool
form_fits_fingerprint(const char *text)
{
    size_t step = strchr(text, ':') ? 3 : 2;
    if (strlen(text) != 32 * step - (step - 2))
        return false;
    for (size_t i = 0; text[i]; i++)
        if (i % step == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
            return false;
    return true;
}

/* Removes colons and converts to lower case, so that fingerprints can be compared. */
static int
form_tidy_fingerprint(char **fingerprint)
{
    char *to = *fingerprint;
    for (const char *from = to; *from; from++)
        if (*from != ':')
            *to++ = (char)tolower((unsigned char)*from);
    *to = '\0';
    return 0;
}

/* Converts an address to the form of inet_ntop(), which is compared with the caller's address. */
static int
form_tidy_address(char **address)
{
    struct in6_addr ipv6;
    char text[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6, *address, &ipv6) != 1)
        return 0; /* an IPv4 address has only one form */
    if (IN6_IS_ADDR_V4MAPPED(&ipv6))
        inet_ntop(AF_INET, &ipv6.s6_addr[12], text, sizeof(text));
    else
        inet_ntop(AF_INET6, &ipv6, text, sizeof(text));
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*address);
    *address = copy;
    return 0;
}

/* Accepts an index, or GPU- and the digits of a UUID. */
static bool
form_fits_gpu(const char *text)
{
    static const char uuid[] = "GPU-";
    if (strncmp(text, uuid, strlen(uuid)) != 0)
        return strlen(text) <= 4 && text[strspn(text, "0123456789")] == '\0';
    const char *digits = text + strlen(uuid);
    return strlen(digits) == 36 && digits[strspn(digits, "0123456789abcdefABCDEF-")] == '\0';
}

static bool
form_fits_absolute(const char *text)
{
    return text[0] == '/';
}

/* Accepts a URL without user, query and fragment. Credentials must be in files of their own. */
static bool
form_fits_url(const char *text)
{
    const char *host = strncmp(text, "https://", 8) == 0 ? text + 8 : strncmp(text, "http://", 7) == 0 ? text + 7 : "";
    for (const char *at = text; *at; at++)
        if (*at <= ' ' || *at > '~' || strchr("\"<>\\^`{|}@?#", *at))
            return false;
    return *host && *host != '/' && *host != ':';
}

/* Accepts the URL of a viewer, with placeholders in its path, query or fragment. */
/* Accepts permissions to read and write, always of the owner. */
static bool
form_fits_mode(const char *text)
{
    return strlen(text) == 4 && text[0] == '0' && text[1] == '6' && strspn(text + 2, "046") == 2;
}

/* A name below the folder of zones, not a rule such as CET-1CEST. */
static bool
form_fits_zone(const char *text)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    return isalpha((unsigned char)text[0]) && !text[strspn(text, allowed)];
}

static bool
form_fits_viewer(const char *text)
{
    static const char *const schemes[] = {"https://", "http://", "weasis://"};
    static const char *const placeholders[] = {"{study_uid}", "{series_uid}"};
    size_t length = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes && length == 0; i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            length = strlen(schemes[i]);
    if (length == 0 || !text[length] || text[length] == '/' || text[length] == ':' || text[length] == '{')
        return false;
    for (const char *at = text + length; *at; at += length) {
        length = 1;
        for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
            if (strncmp(at, placeholders[i], strlen(placeholders[i])) == 0)
                length = strlen(placeholders[i]);
        if (length == 1 && (*at <= ' ' || *at > '~' || strchr("\"<>\\^`{|}@", *at)))
            return false;
    }
    return true;
}

const struct option_form
    form_name = {.allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
                 .refusal = "may only contain A-Z a-z 0-9 _ -"},
    form_dicom = {.fits = form_fits_dicom, .refusal = "must not contain a backslash, which separates values in DICOM"},
    form_ae = {.fits = form_fits_ae,
               .refusal = "must be printable ASCII without backslash, and without blanks at its ends"},
    form_address = {.fits = form_fits_address, .refusal = "must be an IPv4 or IPv6 address"},
    form_host = {.allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-",
                 .refusal = "must be a host name without a port"},
    form_caller = {.fits = form_fits_address, .refusal = "must be an IPv4 or IPv6 address", .tidy = form_tidy_address},
    form_fingerprint = {.fits = form_fits_fingerprint,
                        .refusal = "must be 32 bytes in hexadecimal",
                        .tidy = form_tidy_fingerprint},
    form_gpu = {.fits = form_fits_gpu, .refusal = "must be the index of a GPU, or its UUID (\"GPU-...\")"},
    form_absolute = {.fits = form_fits_absolute, .refusal = "must be an absolute path"},
    form_url = {.fits = form_fits_url,
                .refusal = "must be https://HOST/... or http://HOST/..., without a user, a query or a fragment"},
    form_mode = {.fits = form_fits_mode, .refusal = "must be octal permissions from 0600 to 0666"},
    form_zone = {.fits = form_fits_zone, .refusal = "must be the name of a time zone, such as Europe/Berlin"},
    form_viewer = {.fits = form_fits_viewer,
                   .refusal = "must be https://HOST/..., http://HOST/... or weasis://..., without a user, and without "
                              "other braces than {study_uid} and {series_uid}"};

int
read_copy(const char *text, void *field)
{
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    memcpy(field, &copy, sizeof(copy));
    return 0; // cppcheck-suppress memleak ; the field has it now
}

void
write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void
write_string(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    (void)row;
    write_text(writer->out, *(const char *const *)field);
}

void
write_text_of(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    write_string(writer, row, *(const void *const *)field);
}

int
read_text(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const char *text = config_setting_get_string(setting);
    if (config_setting_type(setting) != CONFIG_TYPE_STRING)
        return read_fail(reader, setting, "must be a string in quotes");
    size_t characters = 0;
    for (const char *at = text; *at; at += text_utf8_length(at), characters++) {
        if (text_utf8_length(at) == 0)
            return read_fail(reader, setting, "is not valid UTF-8");
        if (text_line_length(at) == 0)
            return read_fail(reader, setting, "must not contain a control character");
    }
    if ((double)characters < row->min || (double)characters > row->max)
        return read_fail(reader, setting, "has %zu characters; it must have %.0f .. %.0f", characters, row->min,
                         row->max);
    const struct option_form *form = row->form;
    if (form && ((form->fits && !form->fits(text)) || (form->allowed && text[strspn(text, form->allowed)])))
        return read_fail(reader, setting, "%s", form->refusal);
    int rc = read_copy(text, field);
    return rc == 0 && form && form->tidy ? form->tidy(field) : rc;
}

const struct option_kind option_text = {.read = read_text,
                                        .write = write_string,
                                        .has = option_not_null,
                                        .clear = option_free,
                                        .type = "string",
                                        .limits = " characters"};

int
option_make_absolute(char **path, const char *folder)
{
    if ((*path)[0] != '/') {
        char *absolute;
        if (asprintf(&absolute, "%s/%s", folder, *path) < 0)
            return -ENOMEM;
        free(*path);
        *path = absolute;
    }
    /* Remove "//", "/./" and a trailing slash from an absolute path, so that paths can be
     * compared. */
    char *to = *path;
    for (const char *from = *path; *from;) {
        from += strspn(from, "/");
        size_t length = strcspn(from, "/");
        bool is_dot = length == 1 && from[0] == '.';
        if (length > 0 && !is_dot) {
            *to++ = '/';
            memmove(to, from, length);
            to += length;
        }
        from += length;
    }
    if (to == *path)
        *to++ = '/';
    *to = '\0';
    return 0;
}

static int
path_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    int rc = read_text(reader, row, setting, field);
    return rc == 0 && *reader->root ? option_make_absolute(field, *reader->root) : rc;
}

const struct option_kind option_path = {.read = path_read,
                                        .write = write_string,
                                        .has = option_not_null,
                                        .clear = option_free,
                                        .type = "string",
                                        .limits = " characters"};

/* Reads a string of the row's form. */
static int
name_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    const struct option_row element = {.form = row->form, .min = 1, .max = row->kind == &option_strings ? 4000 : 64};
    return read_text(reader, &element, setting, field);
}

static int
names_read(const struct option_reader *reader, const struct option_row *row, config_setting_t *setting, void *field)
{
    if (!read_is_sequence(setting))
        return read_fail(reader, setting, "must be an array [ \"...\", \"...\" ]");
    return read_elements(reader, row, setting, row->min, row->max, sizeof(char *), field, name_read);
}

static void
names_write(const struct option_writer *writer, const struct option_row *row, const void *field)
{
    const struct option_elements elements = option_elements(row, field);
    char *const *names = (char *const *)(const void *)elements.at;
    fputs("[ ", writer->out);
    for (size_t i = 0; i < elements.count; i++) {
        fputs(i ? ", " : "", writer->out);
        write_text(writer->out, names[i]);
    }
    fputs(" ]", writer->out);
}

static void
names_clear(const struct option_row *row, void *field)
{
    const struct option_elements elements = option_elements(row, field);
    char **names = (char **)(void *)elements.at;
    for (size_t i = 0; i < elements.count; i++)
        free(names[i]);
    free(names);
}

const struct option_kind option_names = {.read = names_read,
                                         .write = names_write,
                                         .has = option_not_null,
                                         .clear = names_clear,
                                         .type = "names",
                                         .limits = " elements"};

const struct option_kind option_strings = {.read = names_read,
                                           .write = names_write,
                                           .has = option_not_null,
                                           .clear = names_clear,
                                           .type = "strings",
                                           .limits = " elements"};
