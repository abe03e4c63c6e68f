/* phantom_edit.c - changes the attributes of an image by lines of text (phantom.h). */
#include "tests/tools/phantom.h"

#include "tests/tools/part10.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH  4
#define MAX_VALUE 4096

struct line {
    enum phantom_place place;
    char act; /* '-', '?', or ' ' to put */
    uint32_t path[MAX_PATH];
    int depth;
    char vr[3];
    const char *values;
};

/* ----------------------------------------------------------------------------- parsing ---- */

static bool
skip_word(const char **text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*text, word, length) != 0)
        return false;
    *text += length;
    return true;
}

static bool
parse_path(const char **text, struct line *line)
{
    do {
        unsigned group, element;
        int used = 0;
        if (line->depth == MAX_PATH || sscanf(*text, "%4x,%4x%n", &group, &element, &used) != 2)
            return false;
        line->path[line->depth++] = (uint32_t)group << 16 | element;
        *text += used;
    } while (skip_word(text, "/"));
    return true;
}

static bool
parse_line(const char *text, struct line *line)
{
    *line = (struct line){.place = PHANTOM_FILE, .act = ' '};
    if (skip_word(&text, "shared "))
        line->place = PHANTOM_SHARED;
    else if (skip_word(&text, "frame "))
        line->place = PHANTOM_FRAME;
    if (*text == '-' || *text == '?')
        line->act = *text++;
    if (!parse_path(&text, line))
        return false;
    if (line->act != ' ')
        return *text == '\0';
    if (text[0] != ' ' || !text[1] || !text[2])
        return false;
    memcpy(line->vr, text + 1, 2);
    line->values = text[3] == ' ' ? text + 4 : text + 3;
    return true;
}

/* ------------------------------------------------------------------------------ values ---- */

/* Picks the index-th of the values between separators; wraps around at the end. */
static void
pick(const char *values, char separator, int32_t index, char picked[MAX_VALUE])
{
    int32_t count = 1;
    for (const char *c = values; *c; c++)
        count += *c == separator;
    const char *start = values;
    for (int32_t skip = index % count; skip > 0; skip--)
        start = strchr(start, separator) + 1;
    const char *end = strchr(start, separator);
    snprintf(picked, MAX_VALUE, "%.*s", (int)(end ? end - start : (ptrdiff_t)strlen(start)), start);
}

/* Evaluates the text after a brace: a letter, arithmetic, and a format. Returns its end, or NULL on error. */
static const char *
evaluate(const char *text, const struct phantom_plane *plane, char number[64])
{
    double value = *text == 'v'   ? plane->volume + 1
                   : *text == 's' ? plane->slice + 1
                   : *text == 'n' ? plane->number
                                  : -1;
    if (value < 0)
        return NULL;
    for (text++; *text == '*' || *text == '+' || *text == '-';) {
        char *end;
        const double operand = strtod(text + 1, &end);
        value = *text == '*' ? value * operand : *text == '+' ? value + operand : value - operand;
        text = end;
    }
    int width = 0, decimals = 0, used = 0;
    if (*text == ':' && sscanf(text, ":%2d.%2d%n", &width, &decimals, &used) == 2)
        snprintf(number, 64, "%0*.*f", width, decimals, value);
    else
        snprintf(number, 64, "%.10g", value);
    text += used;
    return *text == '}' ? text + 1 : NULL;
}

static bool
expand(const char *template, const struct phantom_plane *plane, char text[MAX_VALUE])
{
    size_t length = 0;
    while (*template && length < MAX_VALUE - 64) {
        if (*template != '{') {
            text[length++] = *template ++;
            continue;
        }
        char number[64];
        template = evaluate(template + 1, plane, number);
        if (!template)
            return false;
        length += (size_t)sprintf(text + length, "%s", number);
    }
    text[length] = '\0';
    return *template == '\0';
}

/* Encodes a number in a binary VR. Returns the number of bytes. */
static size_t
encode_number(const char *vr, double value, uint8_t bytes[8])
{
    uint64_t bits;
    size_t size = 2;
    if (strcmp(vr, "FD") == 0) {
        memcpy(&bits, &value, sizeof(bits));
        size = 8;
    } else if (strcmp(vr, "FL") == 0) {
        const float single = (float)value;
        uint32_t word;
        memcpy(&word, &single, sizeof(word));
        bits = word;
        size = 4;
    } else {
        bits = (uint64_t)(int64_t)value;
        if (strcmp(vr, "UL") == 0 || strcmp(vr, "SL") == 0)
            size = 4;
    }
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(bits >> 8 * i);
    return size;
}

static void
put_numbers(struct part10 *set, uint32_t tag, const char *vr, char *text)
{
    uint8_t bytes[512];
    size_t size = 0;
    char *rest = text;
    for (const char *number; (number = strsep(&rest, "\\")) && size + 8 <= sizeof(bytes);)
        size += encode_number(vr, strtod(number, NULL), bytes + size);
    part10_bytes(set, tag, vr, bytes, size);
}

/* Finds the line's value for this image. Returns false if there is none. */
static bool
find_value(struct part10 *set, const struct line *line, const struct phantom_plane *plane, char text[MAX_VALUE])
{
    char by_volume[MAX_VALUE], template[MAX_VALUE];
    pick(line->values, '|', plane->volume, by_volume);
    pick(by_volume, ';', plane->slice, template);
    if (!expand(template, plane, text))
        set->error = -EINVAL;
    return strcmp(template, "-") != 0;
}

static void
put_u32(uint8_t **at, size_t value)
{
    for (int i = 0; i < 4; i++)
        *(*at)++ = (uint8_t)(value >> 8 * i);
}

/* Writes one attribute of a CSA header of six items, "name=value\\value". */
static void
put_csa_attribute(uint8_t **at, char *text)
{
    char *rest = text;
    const char *name = strsep(&rest, "=");
    strncpy((char *)*at, name, 64);
    *at += 64;
    put_u32(at, 6);
    memcpy(*at, "FD\0", 4);
    *at += 4;
    put_u32(at, 4);
    put_u32(at, 6);
    put_u32(at, 77);
    for (int i = 0; i < 6; i++) {
        const char *value = rest && *rest ? strsep(&rest, "\\") : "";
        const size_t length = *value ? 16 : 0; /* padded as by Siemens */
        put_u32(at, length);
        put_u32(at, length);
        put_u32(at, 77);
        put_u32(at, length);
        if (length)
            strncpy((char *)*at, value, length);
        *at += length;
    }
}

/* Puts a CSA2 header of "name=values,name=values". */
static void
put_csa(struct part10 *set, uint32_t tag, char *text)
{
    uint8_t bytes[8 * 1024] = "SV10\4\3\2\1", *at = bytes + 8;
    size_t count = 1;
    for (const char *c = text; *c; c++)
        count += *c == ',';
    put_u32(&at, count);
    put_u32(&at, 77);
    char *rest = text;
    for (char *attribute; (attribute = strsep(&rest, ",")) && at < bytes + sizeof(bytes) - 512;)
        put_csa_attribute(&at, attribute);
    part10_bytes(set, tag, "OB", bytes, (size_t)(at - bytes));
}

static void
put_value(struct part10 *set, uint32_t tag, const char *vr, char *text)
{
    if (strcmp(vr, "SQ") == 0)
        part10_sequence(set, tag, NULL, 0);
    else if (strcmp(vr, "CA") == 0) /* not a VR: Siemens' CSA header */
        put_csa(set, tag, text);
    else if (strstr("US SS UL SL FL FD", vr))
        put_numbers(set, tag, vr, text);
    else
        part10_bytes(set, tag, vr, text, strlen(text));
}

/* Edits the item at the path from `depth` on. */
static void
edit_at(struct part10 *set, const struct line *line, int depth, char *text)
{
    const uint32_t tag = line->path[depth];
    if (depth < line->depth - 1) {
        struct part10 item = {0};
        part10_first_item(set, tag, &item);
        edit_at(&item, line, depth + 1, text);
        part10_sequence(set, tag, &item, 1);
        part10_release(&item);
    } else if (line->act == '-') {
        part10_remove(set, tag);
    } else if (line->act == '?') {
        part10_forget_vr(set, tag);
    } else {
        put_value(set, tag, line->vr, text);
    }
}

void
phantom_edit(struct part10 *set, const char *const *lines, enum phantom_place place, const struct phantom_plane *plane)
{
    for (; lines && *lines; lines++) {
        struct line line;
        char text[MAX_VALUE] = "";
        if (!parse_line(*lines, &line))
            set->error = -EINVAL;
        else if (line.place == place && (line.act != ' ' || find_value(set, &line, plane, text)))
            edit_at(set, &line, 0, text);
    }
}
