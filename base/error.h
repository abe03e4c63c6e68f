/*
 * error.h - why something failed: a stable code, a message, and the files concerned.
 *
 * Functions that can fail return 0 or a negative errno and take a struct error last, which may be
 * NULL; on success they leave it alone. The errno says what becomes of the work (retry, give up),
 * the code and the message say it to people and scripts. No patient names or IDs.
 */
#ifndef NOCTULE_ERROR_H
#define NOCTULE_ERROR_H

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

/* The code of a name out of a frame or a database; CODE_NONE for "" and for a name that is none. */
enum code code_find(const char *name);

/* Whether it may be gone at the next try. */
bool code_passing(enum code code);

/* What somebody can do about it, in words of docs/codes.md; "" for CODE_NONE. */
const char *code_remedy(enum code code);

struct error {
    enum code code;
    char message[512];
    char file[2][1024]; /* "": none */
};

/*
 * Sets code and message, forgets the files, and returns `rc`, so that a failing call reads `return
 * error_set(...)`. Messages that come out too long are cut.
 */
int error_set(struct error *error, int rc, enum code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same with the files concerned; NULL for none. */
int error_set_files(struct error *error, int rc, enum code code, const char *file0,
                    const char *file1, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The same for a failure of this machine: DISK_FULL, OUT_OF_MEMORY, OUTPUT_UNWRITABLE or IO_ERROR,
 * as `rc` says; `what` is what could not be done: "write seg.dcm". */
int error_set_system(struct error *error, int rc, const char *what);

/*
 * Makes failures of this machine look alike wherever they came from: a full disk is DISK_FULL and
 * want of memory OUT_OF_MEMORY, whatever the part that met it calls it; a part's own code for an
 * I/O error (FILE_UNREADABLE) says more and stays. Messages and files stay.
 */
void error_normalise(struct error *error, int rc);

#ifdef __cplusplus
}
#endif
#endif
