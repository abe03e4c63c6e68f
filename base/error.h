/*
 * error.h - the cause of a failure: a stable code, a message, and the files concerned.
 *
 * A function that can fail returns 0 or a negative errno. Its last parameter is a struct error, or NULL. It must not
 * change the struct on success. Callers decide by the errno whether to retry. People and scripts read the code and the
 * message, which must not contain patient names or IDs.
 */
#ifndef NOCTULE_BASE_ERROR_H
#define NOCTULE_BASE_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum code {
    CODE_NONE,

#define CODE(name, kind, where, meaning, to_do) CODE_##name,
#include "base/codes.def"
#undef CODE
};

#define CODE_NAME_SIZE 40

/* "TAG_MISSING"; "" for CODE_NONE. */
const char *code_name(enum code code);

/* Returns the code of a name, or CODE_NONE if the name is empty or unknown. */
enum code code_find(const char *name);

/* Returns true for a transient code: a retry may succeed. */
bool code_passing(enum code code);

/* Returns the remedy, as docs/codes.md has it; "" for CODE_NONE. */
const char *code_remedy(enum code code);

struct error {
    enum code code;
    char message[512];
    char file[2][1024]; /* "": none */
};

/* Sets code and message, clears the files, and returns `rc`. Cuts a message that is too long behind a word: "...". */
int error_set(struct error *error, int rc, enum code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Sets code, message and files (NULL: no file), and returns `rc`. */
int error_set_files(struct error *error, int rc, enum code code, const char *file0, const char *file1,
                    const char *format, ...) __attribute__((format(printf, 6, 7)));

/*
 * Sets the code of a failed system call: DISK_FULL, OUT_OF_MEMORY, OUTPUT_UNWRITABLE or IO_ERROR, by `rc`. `what` names
 * the operation: "write seg.dcm". Returns `rc`.
 */
int error_set_system(struct error *error, int rc, const char *what);

/*
 * Sets DISK_FULL for a full disk and OUT_OF_MEMORY for lack of memory, whichever code the caller set. A more specific
 * code of an I/O error (FILE_UNREADABLE), the message and the files do not change.
 */
void error_normalise(struct error *error, int rc);

#ifdef __cplusplus
}
#endif
#endif
