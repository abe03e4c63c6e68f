/* concepts.hh - the coded concepts of a segment or a region; private to dicom/, C++. */
#ifndef NOCTULE_CONCEPTS_HH
#define NOCTULE_CONCEPTS_HH

#include "dicom/read/header.hh"
#include "dicom/value/charset.hh"

/*
 * Reads category, type, modifier and anatomic region (PS3.3 C.8.20.2, C.8.8.8) of an item. `type` is the sequence that has the
 * type, whose item has the modifier. A concept without Code Value, Coding Scheme Designator or Code Meaning counts as absent.
 */
void header_read_concepts(const Header &item, const DcmTagKey &type, Charset &charset,
                          struct dicom_concepts &concepts);

#endif
