/*
 * dictionary.h - what an attribute is where its VR is not written: in implicit VR, and in UN. The parser, DCMTK, goes by its
 * dictionary, and who judges before it has to go by the same.
 */
#ifndef NOCTULE_DICOM_DICTIONARY_H
#define NOCTULE_DICOM_DICTIONARY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dictionary_form {
    DICTIONARY_UNKNOWN, /* also what is private: whose it is, the parser tells by its item */
    DICTIONARY_SEQUENCE,
    DICTIONARY_VALUE,
};

/* Of (gggg,eeee) as ggggeeee. Any thread. */
enum dictionary_form dictionary_form(uint32_t tag);

#ifdef __cplusplus
}
#endif
#endif
