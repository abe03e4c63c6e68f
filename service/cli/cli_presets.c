/*
 * cli_presets.c - `noctule presets` and `noctule profiles`: list the installed files of
 * share/noctule/presets and profiles from their head comments.
 *
 * A head comment has "# NAME: title", then "# Key: text" for each key of its shelf in this order. A
 * line "#   text" continues the text above.
 */
#include "service/cli/cli.h"

#include "base/text.h"
#include "service/cli/profile_pyradiomics.h"
#include "service/common/file_ops.h"
#include "service/common/json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_TEXT 2048
#define MAX_KEYS 5

/* A folder of presets or profiles. */
struct shelf {
    const char *folder, *one; /* "presets", "preset" */

    struct {
        const char *head, *json, *shown; /* in the file, in JSON, in the list */
    } keys[MAX_KEYS];                    /* unused entries are NULL */

    bool included;    /* used by @include; JSON then has the path */
    const char *last; /* printed after the list */
};

static const struct shelf presets = {
    "presets",
    "preset",
    {{"# Modality: ", "modality", "modality: "},
     {"# Segments: ", "segments", "segments: "},
     {"# Gate: ", "gate", "expectations: "},
     {"# Evidence: ", "evidence", "evidence: "},
     {"# Limits: ", "limits", "limits: "}},
    true,
    "A preset is the list of segments of a pipeline. Include it in a pipeline of your own:\n"
    "    { name = \"my-lungs\"; deliver = [ \"PACS\" ];\n"
    "@include \"presets/lung.conf\"\n"
    "    }"};

static const struct shelf profiles = {
    "profiles",
    "profile",
    {{"# Source: ", "source", "source: "}, {"# Limits: ", "limits", "limits: "}},
    false,
    "A profile has settings for the group texture of a pipeline, or for a program. Options of the group replace "
    "those of the profile:\n"
    "    texture = { profile = \"ibsi-c\"; range = [ -500.0, 200.0 ]; };\n"
    "    programs = ( { name = \"lobes\"; profile = \"nnunet\"; command = [ ... ]; algorithm = { ... }; } );"};

struct shipped {
    const struct shelf *shelf;
    char name[256], path[4096];
    char title[MAX_TEXT], texts[MAX_KEYS][MAX_TEXT];
};

#define EACH_KEY(i, shelf) for (size_t i = 0; i < MAX_KEYS && (shelf)->keys[i].head; i++)

/* ------------------------------------------------------------------------------ reading ---- */

static void
shipped_append(char text[MAX_TEXT], const char *line)
{
    const size_t used = strlen(text);
    snprintf(text + used, MAX_TEXT - used, "%s%.*s", used > 0 ? " " : "", (int)strcspn(line, "\n"), line);
}

/* Returns 0 or -errno. */
static int
shipped_read(struct shipped *shipped)
{
    char line[512], *into = NULL;
    FILE *file = fopen(shipped->path, "re");
    if (!file)
        return -errno;
    const size_t length = strlen(shipped->name);
    while (fgets(line, sizeof(line), file) && line[0] == '#') {
        if (strncmp(line, "#   ", 4) == 0 && into) { /* it continues the text of the last line */
            shipped_append(into, line + 4);
            continue;
        }
        if (strncmp(line, "# ", 2) == 0 && strncmp(line + 2, shipped->name, length) == 0 &&
            strncmp(line + 2 + length, ": ", 2) == 0) {
            into = shipped->title;
            shipped_append(into, line + 4 + length);
        }
        EACH_KEY(i, shipped->shelf)
        {
            const char *head = shipped->shelf->keys[i].head;
            if (strncmp(line, head, strlen(head)) == 0) {
                into = shipped->texts[i];
                shipped_append(into, line + strlen(head));
            }
        }
    }
    const int rc = ferror(file) ? -EIO : 0;
    fclose(file);
    return rc;
}

/* ----------------------------------------------------------------------------- printing ---- */

/* Prints an indented text in lines of at most 100 characters. */
static void
print_wrapped(const char *head, const char *text)
{
    int column = printf("    %s", head);
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column + word >= 100)
            column = printf("\n      ") - 1;
        column += printf("%.*s ", word, text);
        text += word + (text[word] == ' ');
    }
    putchar('\n');
}

/* ------------------------------------------------------------------------------ the list ---- */

static int
is_shipped(const struct dirent *entry)
{
    return text_ends_in(entry->d_name, ".conf");
}

static int
shelf_list_one(const struct shelf *shelf, const char *folder, const char *file, struct json *json)
{
    struct shipped shipped = {.shelf = shelf};
    snprintf(shipped.name, sizeof(shipped.name), "%.*s", (int)(strlen(file) - strlen(".conf")), file);
    snprintf(shipped.path, sizeof(shipped.path), "%s/%s", folder, file);
    int rc = shipped_read(&shipped);
    if (rc < 0) {
        cli_print_error("%s: %s", shipped.path, strerror(-rc));
        return EXIT_PARTIAL;
    }
    if (json) {
        json_begin_object(json, NULL);
        json_string(json, "name", shipped.name);
        json_string(json, "title", shipped.title);
    } else {
        printf("%s\n", shipped.name);
        print_wrapped("", shipped.title);
    }
    EACH_KEY(i, shelf)
    if (json)
        json_string(json, shelf->keys[i].json, shipped.texts[i]);
    else
        print_wrapped(shelf->keys[i].shown, shipped.texts[i]);
    if (json && shelf->included)
        json_string(json, "include",
                    shipped.path + strlen(shipped.path) - strlen(shipped.name) - strlen(shelf->folder) -
                        strlen("/.conf"));
    if (json)
        json_end_object(json);
    else
        putchar('\n');
    return EXIT_OK;
}

static int
shelf_list(const struct shelf *shelf, const char *folder, bool as_json)
{
    struct dirent **entries;
    struct json json = {.out = stdout};
    int count = scandir(folder, &entries, is_shipped, alphasort), status = EXIT_OK;
    if (count < 0) {
        cli_print_error("%s: %s", folder, strerror(errno));
        return EXIT_PARTIAL;
    }
    if (as_json)
        json_begin_array(&json, NULL);
    for (int i = 0; i < count; i++) {
        if (shelf_list_one(shelf, folder, entries[i]->d_name, as_json ? &json : NULL) != EXIT_OK)
            status = EXIT_PARTIAL;
        free(entries[i]);
    }
    free(entries);
    if (as_json)
        json_end_array(&json);
    else
        puts(shelf->last);
    return status;
}

/* Prints the file itself. */
static int
shelf_print_one(const struct shelf *shelf, const char *folder, const char *name)
{
    char *path, line[512];
    if (strchr(name, '/') || asprintf(&path, "%s/%s.conf", folder, name) < 0)
        return cli_usage_error(shelf->folder, "takes the name of one %s", shelf->one);
    FILE *file = fopen(path, "re");
    free(path);
    if (!file) {
        cli_print_error("there is no %s \"%s\": noctule %s lists them", shelf->one, name, shelf->folder);
        return EXIT_NOT_FOUND;
    }
    while (fgets(line, sizeof(line), file))
        fputs(line, stdout);
    fclose(file);
    return EXIT_OK;
}

int
cli_load_preset(const char *name, struct conf **conf)
{
    struct error error;
    char path[64], *folder = conf_share_path(presets.folder), *file = NULL;
    const int fd = memfd_create("preset", MFD_CLOEXEC);
    *conf = NULL;
    if (!folder || fd < 0 || asprintf(&file, "%s/%s.conf", folder, name) < 0)
        file = NULL;
    free(folder);
    int rc = !file ? -ENOMEM : strchr(name, '/') ? -ENOENT : access(file, R_OK) == 0 ? 0 : -errno;
    if (rc == -ENOENT)
        error_set(&error, rc, CODE_NONE, "there is no pipeline and no preset \"%s\": noctule presets lists them", name);
    else if (rc)
        error_set(&error, rc, CODE_NONE, "preset \"%s\" cannot be read: %s", name, strerror(-rc));
    else if (dprintf(fd, "pipelines = ( { name = \"%s\";\n@include \"%s\"\n} );\n", name, file) < 0)
        rc = error_set_system(&error, -errno, "read a preset");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rc == 0)
        rc = conf_load(path, conf, &error);
    if (rc)
        cli_print_error("%s", error.message);
    free(file);
    if (fd >= 0)
        close(fd);
    return rc ? EXIT_NOT_FOUND : EXIT_OK;
}

/* ------------------------------------------------------------------------------- testing ---- */

struct shelf_options {
    bool json;
    char *test, *output; /* presets only */
    char *pyradiomics;   /* profiles only */
};

/* Writes a configuration with the preset as its only pipeline. */
static int
test_write_conf(const char *path, const char *preset)
{
    const bool is_file = strchr(preset, '/') != NULL;
    char *file = is_file ? realpath(preset, NULL) : NULL;
    FILE *out = is_file && !file ? NULL : fopen(path, "we");
    int rc = out ? 0 : -errno;
    if (out)
        fprintf(out,
                "# Segments that are held until the site has validated them are delivered: only the checks count.\n"
                "pipelines = ( { name = \"preset\"; unreviewed = true;\n@include \"%s%s%s\"\n} );\n",
                is_file ? "" : "presets/", is_file ? file : preset, is_file ? "" : ".conf");
    if (out && fclose(out) != 0)
        rc = -errno;
    free(file);
    return rc;
}

/* Runs a preset on all series of a folder: `noctule run` with a configuration in the output folder. */
static int
test_run(struct cli_call *call)
{
    const struct shelf_options *options = call->options;
    struct cli_context *context = call->context;
    struct cli_call run;
    char *path = NULL;
    int rc = file_make_path(options->output);
    if (rc == 0 && asprintf(&path, "%s/noctule.conf", options->output) < 0)
        rc = -ENOMEM;
    if (rc == 0)
        rc = test_write_conf(path, call->arguments[0]);
    if (rc) {
        cli_print_error("%s: %s", path ? path : options->output, strerror(-rc));
        free(path);
        return EXIT_PARTIAL;
    }
    struct conf *conf = cli_load_conf(context, path, NULL);
    char name[] = "noctule", command[] = "run", json[] = "--json", table[] = "--table",
         pipeline[] = "--pipeline=preset", output[] = "--output";
    char *words[] = {name, command, options->json ? json : table, pipeline, output, options->output, options->test};
    context->conf = conf;
    int status = conf ? cli_parse((int)(sizeof words / sizeof words[0]), words, context, &run) : EXIT_CONFIG;
    if (conf && status == EXIT_OK)
        status = run.command->run(&run);
    if (conf)
        cli_release(&run);
    conf_free(conf);
    context->conf = NULL;
    free(path);
    return status;
}

/* ------------------------------------------------------------------------------ commands ---- */

static const struct cli_option preset_rows[] = {
    CLI_JSON(struct shelf_options),
    {"test", 0, &cli_folder, CLI_AT(struct shelf_options, test),
     .help = "run the preset, or the file NAME with a slash, on every series below this folder, and print a table of "
             "the outcomes of its checks"},
    {"output", 'o', &cli_folder, CLI_AT(struct shelf_options, output), .help = "folder for the results of --test"},
    {0}};
static const struct cli_option shelf_rows[] = {CLI_JSON(struct shelf_options),
                                               {"pyradiomics", 0, &cli_file, CLI_AT(struct shelf_options, pyradiomics),
                                                .help = "print the texture groups that measure as this parameter file "
                                                        "of pyradiomics (YAML) does, or name the settings "
                                                        "that are not available"},
                                               {0}};

static int
shelf_check(struct cli_call *call)
{
    const struct shelf_options *options = call->options;
    const char *name = call->command->name;
    if (!options->test != !options->output)
        return cli_usage_error(name, "--test and --output require each other");
    if (options->test && call->count == 0)
        return cli_usage_error(name, "--test needs a preset");
    if (options->pyradiomics && (options->json || call->count > 0))
        return cli_usage_error(name, "--pyradiomics takes no name and no --json");
    return options->json && call->count > 0 && !options->test ? cli_usage_error(name, "takes one name, or --json")
                                                              : EXIT_OK;
}

/* Runs `presets` and `profiles`. */
static int
shelf_run(struct cli_call *call)
{
    const struct shelf *shelf = call->command == &cli_presets ? &presets : &profiles;
    const struct shelf_options *options = call->options;
    if (options->test)
        return test_run(call);
    if (options->pyradiomics)
        return profile_pyradiomics_print(options->pyradiomics);
    char *folder = conf_share_path(shelf->folder);
    if (!folder) {
        cli_print_error("out of memory");
        return EXIT_PARTIAL;
    }
    const int status =
        call->count > 0 ? shelf_print_one(shelf, folder, call->arguments[0]) : shelf_list(shelf, folder, options->json);
    free(folder);
    return status;
}

const struct cli_command cli_presets = {.name = "presets",
                                        .help = "list installed presets with their evidence and limits, print one, or "
                                                "test one",
                                        .usage = {"[--json]", "NAME", "NAME --test FOLDER --output DIR [--json]"},
                                        .options = preset_rows,
                                        .size = sizeof(struct shelf_options),
                                        .kind = &cli_preset,
                                        .max_arguments = 1,
                                        .needs = "at most one preset name",
                                        .without_conf = true,
                                        .check = shelf_check,
                                        .run = shelf_run};

const struct cli_command cli_profiles = {.name = "profiles",
                                         .help = "list installed profiles with their sources, or print one",
                                         .usage = {"[--json]", "NAME", "--pyradiomics FILE"},
                                         .options = shelf_rows,
                                         .size = sizeof(struct shelf_options),
                                         .kind = &cli_profile,
                                         .max_arguments = 1,
                                         .needs = "at most one profile name",
                                         .without_conf = true,
                                         .check = shelf_check,
                                         .run = shelf_run};
