#include "service/common/program/program_words.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CASE "case"

struct word_value {
    const char *name, *value;
};

/* Returns the word with placeholders replaced, or NULL without memory. Other text in braces is not changed. */
static char *
word_make(const char *word, const struct word_value *values)
{
    struct text_stream text;
    if (text_open(&text) != 0)
        return NULL;
    while (*word) {
        const struct word_value *value = values;
        while (value->name && strncmp(word, value->name, strlen(value->name)) != 0)
            value++;
        fputs(value->name ? value->value : "", text.out);
        if (!value->name)
            putc(*word, text.out);
        word += value->name ? strlen(value->name) : 1;
    }
    return text_close(&text) == 0 ? text.bytes : NULL;
}

char *
program_file_name(const char *pattern)
{
    static const struct word_value values[] = {{"{case}", CASE}, {NULL, NULL}};
    return word_make(pattern, values);
}

/* Returns the path of a file in a folder. */
static char *
word_path(const char *folder, const char *pattern)
{
    char *name = program_file_name(pattern), *path = NULL;
    if (name && asprintf(&path, "%s/%s", folder, name) < 0)
        path = NULL;
    free(name);
    return path;
}

/* Returns an array of words that ends in NULL, with `extra` NULLs in addition; NULL without memory. */
static char **
words_expand(char *const *from, size_t count, size_t extra, const struct word_value *values)
{
    char **made = calloc(count + extra + 1, sizeof *made);
    for (size_t i = 0; made && i < count; i++) {
        made[i] = word_make(from[i], values);
        if (!made[i]) {
            while (i > 0)
                free(made[--i]);
            free(made);
            return NULL;
        }
    }
    return made;
}

/* Appends NAME=VALUE unless the site has set NAME. */
static int
words_add_default(char **environment, const char *name, const char *value)
{
    const size_t length = strlen(name);
    size_t count = 0;
    for (; environment[count]; count++)
        if (strncmp(environment[count], name, length) == 0 && environment[count][length] == '=')
            return 0;
    return asprintf(&environment[count], "%s=%s", name, value) < 0 ? -ENOMEM : 0;
}

static int
words_environment(const struct conf_program *program, const struct word_value *values, const char *gpu,
                  struct program_words *words)
{
    const struct word_value defaults[] = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                          {"LANG", "C.UTF-8"},
                                          {"HOME", words->temporary},
                                          {"TMPDIR", words->temporary},
                                          {"PWD", words->out}, /* bubblewrap sets it */
                                          {"CUDA_VISIBLE_DEVICES", gpu}};
    const size_t count = sizeof defaults / sizeof *defaults;
    words->environment = words_expand(program->environment, program->environment_count, count, values);
    int rc = words->environment ? 0 : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = words_add_default(words->environment, defaults[i].name, defaults[i].value);
    return rc;
}

int
program_words_make(const struct conf_program *program, const char *work, const char *gpu, bool cpu,
                   struct program_words *words)
{
    static const char *const outputs[] = {
        [CONF_OUTPUT_NIFTI] = "{case}.nii.gz",
        [CONF_OUTPUT_NRRD] = "{case}.nrrd",
        [CONF_OUTPUT_SEG] = "{case}.dcm",
        [CONF_OUTPUT_RTSTRUCT] = "{case}.dcm",
    };
    *words = (struct program_words){.in = word_path(work, "in"),
                                    .out = word_path(work, "out"),
                                    .temporary = word_path(work, "tmp"),
                                    .shared = word_path(work, "tmp/shm")};
    if (!words->in || !words->out || !words->temporary || !words->shared)
        return -ENOMEM;
    char *in_file = word_path(words->in, program->input_file ? program->input_file : "");
    char *out_file = word_path(words->out, program->output_file[0] ? program->output_file : outputs[program->output]);
    const struct word_value values[] = {
        {"{in}", words->in},      {"{out}", words->out}, {"{in_file}", in_file}, {"{dicom}", words->in},
        {"{out_file}", out_file}, {"{case}", CASE},      {"{gpu}", gpu},         {NULL, NULL}};
    int rc = in_file && out_file ? 0 : -ENOMEM;
    if (!rc) {
        words->argv = cpu ? words_expand(program->cpu_command, program->cpu_command_count, 0, values)
                          : words_expand(program->command, program->command_count, 0, values);
        rc = words->argv ? words_environment(program, values, gpu, words) : -ENOMEM;
    }
    free(in_file);
    free(out_file);
    return rc;
}

void
program_words_clear(struct program_words *words)
{
    for (size_t i = 0; words->argv && words->argv[i]; i++)
        free(words->argv[i]);
    for (size_t i = 0; words->environment && words->environment[i]; i++)
        free(words->environment[i]);
    free(words->argv);
    free(words->environment);
    free(words->in);
    free(words->out);
    free(words->temporary);
    free(words->shared);
    *words = (struct program_words){0};
}
