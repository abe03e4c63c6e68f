/*
 * fuzz_object_peek.c - any bytes as an annotation object (RTSTRUCT, SEG, SR): rejected with a reason, or summarized
 * as object_peek.h specifies.
 */
#include "dicom/read/annotation/object_peek.h"
#include "tests/fuzz/must.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool
is_kind(const char *kind)
{
    return strcmp(kind, "rtstruct") == 0 || strcmp(kind, "seg") == 0 || strcmp(kind, "sr") == 0;
}

/* Checks one line of the references: its kind and UID. */
static void
check_reference(const char *line)
{
    static const char *const heads[] = {OBJECT_OF_SERIES, OBJECT_OF_INSTANCE, OBJECT_OF_FRAME, OBJECT_OF_PREDECESSOR};
    size_t i = 0;
    while (i < sizeof heads / sizeof heads[0] && strncmp(line, heads[i], strlen(heads[i])) != 0)
        i++;
    must(i < sizeof heads / sizeof heads[0] && is_uid(line + strlen(heads[i])));
}

static void
check_peek(const struct object_peek *peek)
{
    must(is_kind(peek->kind) && is_uid(peek->sop_class_uid) && is_uid(peek->sop_instance_uid));
    must(is_uid(peek->study_uid) && is_uid(peek->series_uid));
    must(memchr(peek->modality, '\0', sizeof peek->modality) != NULL);
    must(memchr(peek->description, '\0', sizeof peek->description) != NULL);
    must(memchr(peek->label, '\0', sizeof peek->label) != NULL);
    must(memchr(peek->made, '\0', sizeof peek->made) != NULL);
    must(peek->references && peek->references[0]);
    char *rest = peek->references;
    for (const char *line; (line = strsep(&rest, "\n"));)
        if (*line || rest)
            check_reference(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dicom_init();
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    struct object_peek *peek = NULL;
    struct error error = {0};
    int rc = object_peek_open(fd, "fuzz", NULL, &peek, &error);
    close(fd);
    if (rc) {
        must_be_error(rc, &error);
        return 0;
    }
    check_peek(peek);
    object_peek_free(peek);
    return 0;
}
