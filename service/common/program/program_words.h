/*
 * program_words.h - the placeholders in the command, the environment and the file names of a program.
 *
 *     {in} {out}            folders of the input and of the output
 *     {in_file} {out_file}  paths of the files in them
 *     {dicom}               the folder of the input, which has the instances of the series
 *     {case}                "case" for each case, so that no bytes of a program depend on a number or a UID
 *     {gpu}                 UUID of the GPU, or ""
 */
#ifndef NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_WORDS_H
#define NOCTULE_SERVICE_COMMON_PROGRAM_PROGRAM_WORDS_H

#include "config/config.h"

/* Returns a file name with {case} replaced; NULL without memory. The caller must free it. */
char *program_file_name(const char *pattern);

/* The argument vector and the environment of a program. Both end in NULL. */
struct program_words {
    char **argv, **environment;
    char *in, *out, *temporary, *shared; /* folders below the work folder */
};

/* Fills the words of a program that works in `work` on `gpu` (UUID or ""). `cpu`: takes cpu_command. Returns 0 or -ENOMEM.
 * The caller must call program_words_clear() in both cases. */
int program_words_make(const struct conf_program *program, const char *work, const char *gpu, bool cpu,
                       struct program_words *words);
void program_words_clear(struct program_words *words);

#endif
