/*
 * rtstruct_sample.h - structure sets byte by byte, valid or invalid on purpose.
 *
 * Three regions: 1 "GTV-1" with two closed contours, 7 with a point and an open line, 3 without contours. Also
 * contours of a region 99 that is not in the set.
 */
#ifndef NOCTULE_RTSTRUCT_SAMPLE_H
#define NOCTULE_RTSTRUCT_SAMPLE_H

#include "dicom/read/annotation/rtstruct.h"
#include "tests/unit/dicom_bytes.h"

/* Tests must start from SAMPLE_SET. */
struct sample_set {
    const char *syntax, *class_uid, *charset, *name;
    uint32_t tag; /* its value, anywhere, is replaced by `instead`; NULL: it is removed */
    const char *instead;
    bool unknown_vr;
    void (*rois)(struct dicom_bytes *bytes);     /* replaces the regions; writes items */
    void (*contours)(struct dicom_bytes *bytes); /* replaces the ROI Contour Sequence */
};

#define SAMPLE_SET                                                                                                     \
    ((struct sample_set){                                                                                              \
        .syntax = SYNTAX_EXPLICIT, .class_uid = RTSTRUCT_CLASS_UID, .charset = "ISO_IR 100", .name = "L\xF6we"})

static inline void
set_text(struct dicom_bytes *bytes, const struct sample_set *set, uint32_t tag, const char *vr, const char *text)
{
    text = set && tag == set->tag ? set->instead : text;
    if (text)
        bytes_text(bytes, tag, vr, text);
}

static inline void
set_roi(struct dicom_bytes *bytes, const struct sample_set *set, const char *number, const char *name)
{
    bytes_item(bytes);
    set_text(bytes, set, 0x30060022, "IS", number);
    set_text(bytes, set, 0x30060024, "UI", "1.2.3.9");
    set_text(bytes, set, 0x30060026, "LO", name);
    bytes_item_end(bytes);
}

static inline void
set_contour(struct dicom_bytes *bytes, const struct sample_set *set, const char *type, const char *image,
            const char *count, const char *data)
{
    bytes_item(bytes);
    if (image) {
        bytes_sequence(bytes, 0x30060016);
        bytes_item(bytes);
        bytes_text(bytes, 0x00081150, "UI", CLASS_CT);
        set_text(bytes, set, 0x00081155, "UI", image);
        bytes_item_end(bytes);
        bytes_sequence_end(bytes);
    }
    set_text(bytes, set, 0x30060042, "CS", type);
    set_text(bytes, set, 0x30060046, "IS", count);
    set_text(bytes, set, 0x30060050, "DS", data);
    bytes_item_end(bytes);
}

static inline void
set_open_contours(struct dicom_bytes *bytes, const struct sample_set *set, const char *color)
{
    bytes_item(bytes);
    set_text(bytes, set, 0x3006002A, "IS", color);
    bytes_sequence(bytes, 0x30060040);
}

static inline void
set_close_contours(struct dicom_bytes *bytes, const struct sample_set *set, const char *number)
{
    bytes_sequence_end(bytes);
    set_text(bytes, set, 0x30060084, "IS", number);
    bytes_item_end(bytes);
}

static inline void
set_default_contours(struct dicom_bytes *bytes, const struct sample_set *set)
{
    set_open_contours(bytes, set, "0\\0\\255");
    set_contour(bytes, NULL, "POINT", NULL, "1", "1\\2\\3");
    set_contour(bytes, NULL, "OPEN_PLANAR", NULL, "2", "1\\2\\3\\4\\5\\6");
    set_close_contours(bytes, NULL, "7");
    set_open_contours(bytes, set, "255\\128\\0");
    set_contour(bytes, set, "CLOSED_PLANAR", "1.2.3.5", "4", "-1\\+2.5\\ 3 \\1e1\\2.5\\3\\10\\-.5\\3\\-1\\-0.50\\3");
    set_contour(bytes, set, "CLOSEDPLANAR_XOR", NULL, "3", "0\\0\\6\\1\\0\\6\\0\\1\\6.125");
    set_close_contours(bytes, set, "1");
    set_open_contours(bytes, NULL, NULL);
    set_close_contours(bytes, NULL, "99");
}

static inline void
set_references(struct dicom_bytes *bytes, const struct sample_set *set)
{
    bytes_sequence(bytes, 0x30060010);
    bytes_item(bytes);
    set_text(bytes, set, 0x00200052, "UI", "1.2.3.9");
    bytes_sequence(bytes, 0x30060012);
    bytes_item(bytes);
    bytes_sequence(bytes, 0x30060014);
    for (int i = 0; i < 2; i++) {
        bytes_item(bytes);
        bytes_text(bytes, 0x0020000E, "UI", i ? "1.2.3.8" : "1.2.3.7");
        bytes_item_end(bytes);
    }
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static inline void
set_observation(struct dicom_bytes *bytes, const char *number, const char *type)
{
    bytes_item(bytes);
    bytes_text(bytes, 0x30060084, "IS", number);
    bytes_text(bytes, 0x300600A4, "CS", type);
    bytes_item_end(bytes);
}

/* Writes only the data set. */
static inline void
set_data_set(struct dicom_bytes *bytes, const struct sample_set *set)
{
    set_text(bytes, set, 0x00080005, "CS", set->charset);
    set_text(bytes, set, 0x00080016, "UI", set->class_uid);
    set_text(bytes, set, 0x00080018, "UI", "1.2.3.1");
    set_text(bytes, set, 0x0020000D, "UI", "1.2.3.2");
    set_text(bytes, set, 0x0020000E, "UI", "1.2.3.3");
    set_text(bytes, set, 0x30060002, "SH", "Plan");
    set_references(bytes, set);
    bytes_sequence(bytes, 0x30060020);
    if (set->rois) {
        set->rois(bytes);
    } else {
        set_roi(bytes, set, "1", "GTV-1");
        set_roi(bytes, NULL, "7", set->name);
        set_roi(bytes, NULL, "3", "empty");
    }
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x30060039);
    if (set->contours)
        set->contours(bytes);
    else
        set_default_contours(bytes, set);
    bytes_sequence_end(bytes);
    bytes_sequence(bytes, 0x30060080);
    set_observation(bytes, "7", "ORGAN");
    set_observation(bytes, "1", "GTV");
    set_observation(bytes, "98", "PTV");
    bytes_sequence_end(bytes);
}

static inline void
set_write(const struct sample_set *set, const char *path)
{
    struct dicom_bytes bytes = {0};
    bytes_begin_file(&bytes, set->syntax, RTSTRUCT_CLASS_UID, "1.2.3.1");
    bytes.unknown_vr = set->unknown_vr;
    set_data_set(&bytes, set);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

#endif
