/* sender_copy.c - see sender_form.h. */
#include "service/sender/sender_form.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LABELS_MAX (16 << 20) /* bytes of a list of labels */

int
sender_copy_object(const struct deidentify *how, const char *file, const char *root, struct sender_form *copy,
                   struct error *error)
{
    struct dicom_form own;
    struct sender_form plain;
    int rc = dicom_read_form(file, &own, error);
    if (rc)
        return rc;
    /* The parser would hold a deflated data set in memory. Only an object of Noctule can be inflated as a stream. */
    const bool inflates = strcmp(own.transfer_syntax, DICOM_DEFLATED_LITTLE) == 0 &&
                          sender_form_open(SENDER_FORM_UNCOMPRESSED, &own, file, root, &plain, error) == 0;
    const int fd = sender_form_unnamed(root, error);
    rc = fd < 0 ? fd : deidentify_file(how, inflates ? plain.path : file, fd, &copy->is, error);
    if (inflates)
        sender_form_close(&plain);
    if (rc && fd >= 0)
        close(fd);
    if (rc)
        return rc;
    copy->fd = fd;
    snprintf(copy->path, sizeof copy->path, "/proc/self/fd/%d", fd);
    return 0;
}

/* Returns the end of a JSON string that begins at `at`, behind its quotation mark. */
static const char *
string_end(const char *at)
{
    while (*at && *at != '"')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return at;
}

/* Writes JSON with its texts cleaned. Names of members stay. A text with an escape is removed. */
static void
write_labels(const struct deidentify *how, const char *text, FILE *out)
{
    char cleaned[4096];
    while (*text) {
        const char *begin = strchr(text, '"');
        if (!begin) {
            fputs(text, out);
            return;
        }
        const char *end = string_end(begin + 1);
        const char *next = end + (*end != '\0');
        const size_t length = (size_t)(end - begin - 1);
        fwrite(text, 1, (size_t)(begin - text), out);
        if (next[strspn(next, " \n")] == ':')
            fwrite(begin, 1, (size_t)(next - begin), out);
        else if (deidentify_text(how, begin + 1, length, cleaned, sizeof cleaned))
            fprintf(out, "\"%s\"", cleaned);
        else
            fputs("\"REMOVED\"", out);
        text = next;
    }
}

int
sender_copy_file(const struct deidentify *how, const char *file, const char *root, struct sender_form *copy,
                 struct error *error)
{
    if (text_ends_in(file, ".nii.gz"))
        return sender_form_open(SENDER_FORM_OWN, &(struct dicom_form){"", "", ""}, file, root, copy, error);
    if (!text_ends_in(file, ".json"))
        return error_set(error, -EBADMSG, CODE_DEIDENTIFY_CLASS,
                         "%s is no NIfTI file and no list of labels, and cannot be de-identified. It was not sent.",
                         text_base_name(file));
    char *text = calloc(1, LABELS_MAX + 1);
    const int from = open(file, O_RDONLY | O_CLOEXEC);
    const ssize_t size = text && from >= 0 ? read(from, text, LABELS_MAX) : -1;
    const int fd = size >= 0 ? sender_form_unnamed(root, error) : -1;
    FILE *out = fd >= 0 ? fdopen(dup(fd), "w") : NULL;
    int rc = size < 0 ? error_set(error, -EIO, CODE_FILE_UNREADABLE, "%s cannot be read.", file)
             : fd < 0 ? fd
             : !out   ? error_set_system(error, -ENOMEM, "copy a list of labels")
                      : 0;
    if (out) {
        write_labels(how, text, out);
        if (fclose(out))
            rc = error_set(error, -EIO, CODE_WRITE_FAILED, "A copy of %s cannot be written.", text_base_name(file));
    }
    if (from >= 0)
        close(from);
    free(text);
    if (rc && fd >= 0)
        close(fd);
    if (rc)
        return rc;
    *copy = (struct sender_form){.fd = fd};
    snprintf(copy->path, sizeof copy->path, "/proc/self/fd/%d", fd);
    return 0;
}

int
sender_copy_source(const struct deidentify *how, const char *source, char *replaced, size_t size)
{
    const char *job = strrchr(source, '.'), *pipeline = job;
    char uid[DICOM_UID_SIZE], mapped[DICOM_UID_SIZE];
    while (pipeline && pipeline > source && pipeline[-1] != '.')
        pipeline--;
    const size_t length = pipeline ? (size_t)(pipeline - source) : 0;
    if (length < 2 || length > sizeof uid)
        return -EINVAL;
    snprintf(uid, sizeof uid, "%.*s", (int)length - 1, source);
    const int rc = deidentify_uid(how, uid, mapped);
    if (!rc)
        snprintf(replaced, size, "%s.%s", mapped, pipeline);
    return rc;
}
