/*
 * cli_presets.c - `noctule presets`: what is shipped in share/noctule/presets, as the heads of the files
 * say it.
 *
 * A head is the comment that a file begins with: "# NAME: what it is", then "# Key: text" for each of
 * preset_keys, in this order, where a line "#   text" goes on.
 */
#include "service/cli/cli.h"

#include "base/text.h"
#include "config/share.h"
#include "service/common/json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TEXT 2048

enum { PRESET_MODALITY, PRESET_SEGMENTS, PRESET_GATE, PRESET_EVIDENCE, PRESET_LIMITS, PRESET_KEYS };

static const struct {
    const char *head, *json; /* in a file, and in JSON */
} preset_keys[PRESET_KEYS] = {
    [PRESET_MODALITY] = {"# Modality: ", "modality"},
    [PRESET_SEGMENTS] = {"# Segments: ", "segments"},
    [PRESET_GATE] = {"# Gate: ", "gate"},
    [PRESET_EVIDENCE] = {"# Evidence: ", "evidence"},
    [PRESET_LIMITS] = {"# Limits: ", "limits"},
};

struct preset {
    char name[256], path[4096];
    char title[MAX_TEXT], texts[PRESET_KEYS][MAX_TEXT];
};

/* ------------------------------------------------------------------------------ reading ---- */

static void
preset_append(char text[MAX_TEXT], const char *line)
{
    const size_t used = strlen(text);
    snprintf(text + used, MAX_TEXT - used, "%s%.*s", used > 0 ? " " : "", (int)strcspn(line, "\n"),
             line);
}

/* A line of the head; *into is the text that it goes on with. */
static void
preset_read_line(struct preset *preset, const char *line, char **into)
{
    const size_t length = strlen(preset->name);
    if (strncmp(line, "#   ", 4) == 0 && *into) {
        preset_append(*into, line + 4);
        return;
    }
    if (strncmp(line, "# ", 2) == 0 && strncmp(line + 2, preset->name, length) == 0 &&
        strncmp(line + 2 + length, ": ", 2) == 0) {
        *into = preset->title;
        preset_append(*into, line + 4 + length);
    }
    for (size_t i = 0; i < PRESET_KEYS; i++)
        if (strncmp(line, preset_keys[i].head, strlen(preset_keys[i].head)) == 0) {
            *into = preset->texts[i];
            preset_append(*into, line + strlen(preset_keys[i].head));
        }
}

/* 0 or -errno. */
static int
preset_read(struct preset *preset)
{
    char line[512], *into = NULL;
    FILE *file = fopen(preset->path, "re");
    if (!file)
        return -errno;
    while (fgets(line, sizeof(line), file) && line[0] == '#')
        preset_read_line(preset, line, &into);
    const int rc = ferror(file) ? -EIO : 0;
    fclose(file);
    return rc;
}

/* ----------------------------------------------------------------------------- printing ---- */

/* A text from column `indent` on, in lines of 100 characters. */
static void
print_wrapped(const char *head, const char *text, int indent)
{
    int column = printf("%*s%s", indent, "", head);
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column + word >= 100)
            column = printf("\n%*s", indent + 2, "") - 1;
        column += printf("%.*s ", word, text);
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

static void
preset_print(const struct preset *preset)
{
    printf("%s\n", preset->name);
    print_wrapped("", preset->title, 4);
    print_wrapped("modality: ", preset->texts[PRESET_MODALITY], 4);
    print_wrapped("segments: ", preset->texts[PRESET_SEGMENTS], 4);
    print_wrapped("gate: ", preset->texts[PRESET_GATE], 4);
    print_wrapped("rests on: ", preset->texts[PRESET_EVIDENCE], 4);
    print_wrapped("limits: ", preset->texts[PRESET_LIMITS], 4);
    putchar('\n');
}

static void
preset_print_json(struct json *json, const struct preset *preset)
{
    json_begin_object(json, NULL);
    json_string(json, "name", preset->name);
    json_string(json, "title", preset->title);
    for (size_t i = 0; i < PRESET_KEYS; i++)
        json_string(json, preset_keys[i].json, preset->texts[i]);
    json_string(json, "include",
                preset->path + strlen(preset->path) - strlen(preset->name) -
                    strlen("presets/.conf"));
    json_end_object(json);
}

/* ------------------------------------------------------------------------------ the list ---- */

static int
is_preset(const struct dirent *entry)
{
    return text_ends_in(entry->d_name, ".conf");
}

static int
presets_list_one(const char *folder, const char *file, struct json *json)
{
    struct preset preset = {.title = ""};
    snprintf(preset.name, sizeof(preset.name), "%.*s", (int)(strlen(file) - strlen(".conf")), file);
    snprintf(preset.path, sizeof(preset.path), "%s/%s", folder, file);
    int rc = preset_read(&preset);
    if (rc < 0) {
        cli_complain("%s: %s", preset.path, strerror(-rc));
        return EXIT_PARTIAL;
    }
    if (json)
        preset_print_json(json, &preset);
    else
        preset_print(&preset);
    return EXIT_OK;
}

static int
presets_list(const char *folder, bool as_json)
{
    struct dirent **entries;
    struct json json = {.out = stdout};
    int count = scandir(folder, &entries, is_preset, alphasort), status = EXIT_OK;
    if (count < 0) {
        cli_complain("%s: %s", folder, strerror(errno));
        return EXIT_PARTIAL;
    }
    if (as_json)
        json_begin_array(&json, NULL);
    for (int i = 0; i < count; i++) {
        if (presets_list_one(folder, entries[i]->d_name, as_json ? &json : NULL) != EXIT_OK)
            status = EXIT_PARTIAL;
        free(entries[i]);
    }
    free(entries);
    if (as_json)
        json_end_array(&json);
    else
        puts("A preset is the segments of a pipeline, which gets its name and all else from you:\n"
             "    { name = \"my-lungs\"; deliver = [ \"PACS\" ];\n"
             "@include \"presets/lung.conf\"\n"
             "    }");
    return status;
}

/* The file itself. */
static int
print_one(const char *folder, const char *name)
{
    char *path, line[512];
    if (strchr(name, '/') || asprintf(&path, "%s/%s.conf", folder, name) < 0)
        return cli_usage_error("presets", "takes the name of one preset");
    FILE *file = fopen(path, "re");
    free(path);
    if (!file) {
        cli_complain("there is no preset \"%s\": noctule presets names those there are", name);
        return EXIT_NOT_FOUND;
    }
    while (fgets(line, sizeof(line), file))
        fputs(line, stdout);
    fclose(file);
    return EXIT_OK;
}

struct presets_options {
    bool json;
};

static int
presets_check(struct cli_call *call)
{
    const struct presets_options *options = call->options;
    return options->json && call->count > 0
               ? cli_usage_error(call->command->name, "takes one name, or --json")
               : EXIT_OK;
}

static int
presets_run(struct cli_call *call)
{
    const struct presets_options *options = call->options;
    char *folder = share_path("presets");
    if (!folder) {
        cli_complain("out of memory");
        return EXIT_PARTIAL;
    }
    const int status = call->count > 0 ? print_one(folder, call->arguments[0])
                                       : presets_list(folder, options->json);
    free(folder);
    return status;
}

const struct cli_command cli_presets = {
    .name = "presets",
    .help = "list the presets that are shipped, what they rest on and their limits; or print one",
    .usage = {"[--json]", "NAME"},
    .options = (const struct cli_option[]){CLI_JSON(struct presets_options), {0}},
    .size = sizeof(struct presets_options),
    .kind = &cli_preset,
    .most = 1,
    .needs = "the name of one preset at most",
    .without_conf = true,
    .check = presets_check,
    .run = presets_run};
