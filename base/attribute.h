/*
 * attribute.h - what DICOM's dictionary says of an attribute that is named by its keyword or its tag.
 */
#ifndef NOCTULE_ATTRIBUTE_H
#define NOCTULE_ATTRIBUTE_H

enum attribute_kind {
    ATTRIBUTE_UNKNOWN,  /* no keyword or tag of a data set that the dictionary has */
    ATTRIBUTE_VALUE,    /* text or numbers */
    ATTRIBUTE_SEQUENCE, /* items */
    ATTRIBUTE_BYTES,    /* neither */
    ATTRIBUTE_PRIVATE,  /* its creator says what it is */
};

/* How the value of an attribute that was asked for is told: a line that begins with one of these
 * (dicom_read_values); behind a tab it says where in an enhanced image the value stands. */
enum attribute_told {
    ATTRIBUTE_TOLD_ABSENT = '-', /* or without a value */
    ATTRIBUTE_TOLD_VALUE = '=',  /* which follows */
    ATTRIBUTE_TOLD_IDENTITY =
        '~',                     /* likewise, and says who somebody is: to be compared, not shown */
    ATTRIBUTE_TOLD_UNREAD = '!', /* there is one, which cannot be compared */
};

#endif
