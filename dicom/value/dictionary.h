/*
 * dictionary.h - forms of attributes that carry no VR: in implicit VR, and in UN.
 *
 * DCMTK parses by its dictionary. Code that checks data before DCMTK does must use the same one.
 */
#ifndef NOCTULE_DICOM_VALUE_DICTIONARY_H
#define NOCTULE_DICOM_VALUE_DICTIONARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dictionary_form {
    DICTIONARY_UNKNOWN, /* also private: the parser needs the private creator */
    DICTIONARY_SEQUENCE,
    DICTIONARY_VALUE,
};

/* Returns the form of the attribute (gggg,eeee), given as 0xggggeeee. Any thread. */
enum dictionary_form dictionary_form(uint32_t tag);

#ifdef __cplusplus
}
#endif
#endif
