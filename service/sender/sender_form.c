#include "service/sender/sender_form.h"

#include "base/error.h"
#include "base/test_hook.h"
#include "dicom/objects/convert/convert.h"
#include "dicom/objects/seg/seg.h"
#include "service/common/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
is_uncompressed(const char *syntax)
{
    return strcmp(syntax, DICOM_EXPLICIT_LITTLE) == 0 || strcmp(syntax, DICOM_IMPLICIT_LITTLE) == 0;
}

bool
sender_form_applies(enum sender_form_kind kind, const struct dicom_form *own)
{
    if (kind == SENDER_FORM_UNCOMPRESSED)
        return !is_uncompressed(own->transfer_syntax);
    return kind == SENDER_FORM_OWN || strcmp(own->sop_class, SEG_LABELMAP_SOP_CLASS_UID) == 0;
}

bool
sender_form_is_accepted(enum sender_form_kind kind, const struct dicom_form *own,
                        const struct dicom_association *association)
{
    const char *sop_class = kind == SENDER_FORM_BINARY ? SEG_SOP_CLASS_UID : own->sop_class;
    if (!sender_form_applies(kind, own))
        return false;
    if (kind == SENDER_FORM_OWN && !is_uncompressed(own->transfer_syntax))
        return dicom_accepts(association, sop_class, own->transfer_syntax);
    return dicom_accepts(association, sop_class, DICOM_EXPLICIT_LITTLE) ||
           dicom_accepts(association, sop_class, DICOM_IMPLICIT_LITTLE);
}

/* A file system without O_TMPFILE, such as NFS, gets a file that is unlinked at once. */
int
sender_form_unnamed(const char *root, struct error *error)
{
    char folder[SENDER_PATH], name[sizeof folder + 8];
    snprintf(folder, sizeof folder, "%s/" LAYOUT_CONVERTED, root);
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
        snprintf(name, sizeof name, "%s/XXXXXX", folder);
        fd = mkostemp(name, O_CLOEXEC);
        if (fd >= 0)
            unlink(name);
    }
    return fd >= 0
               ? fd
               : error_set(error, -errno, errno == ENOSPC || errno == EDQUOT ? CODE_DISK_FULL : CODE_WRITE_FAILED,
                           "An object cannot be converted: no file can be made in %s (%s).", folder, strerror(errno));
}

int
sender_form_open(enum sender_form_kind kind, const struct dicom_form *own, const char *file, const char *root,
                 struct sender_form *form, struct error *error)
{
    struct converted made;
    form->is = *own;
    form->fd = -1;
    if (kind == SENDER_FORM_OWN) {
        if ((size_t)snprintf(form->path, sizeof form->path, "%s", file) < sizeof form->path)
            return 0;
        return error_set_system(error, -ENAMETOOLONG, "open an object");
    }
    const int fd = sender_form_unnamed(root, error);
    if (fd < 0)
        return fd;
    int rc = kind == SENDER_FORM_BINARY ? convert_to_binary(file, fd, &made, error)
                                        : convert_to_uncompressed(file, fd, &made, error);
    crash_point("courier_in_conversion");
    if (rc) {
        close(fd);
        return rc;
    }
    form->fd = fd;
    memcpy(form->is.sop_class, made.sop_class_uid, sizeof form->is.sop_class);
    memcpy(form->is.sop_instance, made.sop_instance_uid, sizeof form->is.sop_instance);
    snprintf(form->is.transfer_syntax, sizeof form->is.transfer_syntax, "%s", DICOM_EXPLICIT_LITTLE);
    snprintf(form->path, sizeof form->path, "/proc/self/fd/%d", fd);
    return 0;
}

void
sender_form_close(struct sender_form *form)
{
    if (form->fd >= 0)
        close(form->fd);
}

/* PS3.4 B.2.3 and PS3.18 I.2.2: 0x0122: the class; 0xC122: the transfer syntax; 0xA9xx and 0xCxxx: the data set. HTTP
 * 400 and 409 are answers of services that cannot read the data set or store no instance. */
bool
sender_form_is_refused(enum code code, const struct dicom_answer *answer, long http)
{
    const int32_t status = answer->status;
    if (code == CODE_STORE_REFUSED)
        return status == 0x0122 || (status & 0xff00) == 0xa900 || (status & 0xf000) == 0xc000;
    return code == CODE_HTTP_REFUSED && (http == 400 || http == 409 || http == 415);
}

bool
sender_form_is_unknown(const struct dicom_answer *answer, long http)
{
    return http == 415 || answer->status == 0x0122 || answer->status == 0xc122;
}

/* Returns the row of this class and transfer syntax, or SENDER_REFUSALS. */
static size_t
find_refusal(const struct sender_refusals *refusals, const struct dicom_form *own)
{
    size_t i = 0;
    while (i < SENDER_REFUSALS && (strcmp(refusals->rows[i].sop_class, own->sop_class) != 0 ||
                                   strcmp(refusals->rows[i].transfer_syntax, own->transfer_syntax) != 0))
        i++;
    return i;
}

enum sender_form_kind
sender_form_first(const struct sender_refusals *refusals, const struct dicom_form *own, double now)
{
    const size_t i = find_refusal(refusals, own);
    return i < SENDER_REFUSALS && now - refusals->rows[i].since < SENDER_REFUSAL_SECONDS ? refusals->rows[i].stored
                                                                                         : SENDER_FORM_OWN;
}

void
sender_form_remember(struct sender_refusals *refusals, const struct dicom_form *own, enum sender_form_kind stored,
                     double now)
{
    size_t i = find_refusal(refusals, own);
    if (i == SENDER_REFUSALS)
        i = refusals->next++ % SENDER_REFUSALS;
    memcpy(refusals->rows[i].sop_class, own->sop_class, sizeof own->sop_class);
    memcpy(refusals->rows[i].transfer_syntax, own->transfer_syntax, sizeof own->transfer_syntax);
    refusals->rows[i].stored = stored;
    refusals->rows[i].since = now;
}
