/*
 * attribute.h - kinds of DICOM attributes, and the text form of their values.
 */
#ifndef NOCTULE_BASE_ATTRIBUTE_H
#define NOCTULE_BASE_ATTRIBUTE_H

enum attribute_kind {
    ATTRIBUTE_UNKNOWN,  /* the dictionary has no such keyword or tag of a data set */
    ATTRIBUTE_VALUE,    /* text or numbers */
    ATTRIBUTE_SEQUENCE, /* items */
    ATTRIBUTE_BYTES,    /* other */
    ATTRIBUTE_PRIVATE,  /* defined by its private creator */
};

/* The first character of a line of dicom_read_values. The place in an enhanced image follows the value after a tab. */
enum attribute_told {
    ATTRIBUTE_TOLD_ABSENT = '-',   /* missing or empty */
    ATTRIBUTE_TOLD_VALUE = '=',    /* the value follows */
    ATTRIBUTE_TOLD_IDENTITY = '~', /* likewise; it identifies the patient and must not be shown */
    ATTRIBUTE_TOLD_UNREAD = '!',   /* the value cannot be compared */
};

#endif
