/*
 * fitness.hh - checks attributes of a source that a result inherits; private to dicom/read/.
 */
#ifndef NOCTULE_DICOM_FITNESS_H
#define NOCTULE_DICOM_FITNESS_H

#include "dicom/read/header.hh"

/*
 * Removes values that would make the result invalid: values that violate their VR or its
 * multiplicity, items that lack attributes required by their macro, sequences without items, and
 * attributes without their required companions. In names, replaces illegal characters by '?'.
 * Declares text of an unknown set as UTF-8 if it is valid UTF-8. Returns the names of the removed
 * or changed attributes, for messages, without values; "" if none changed.
 */
std::string fitness_restore(DcmDataset &dataset);

#endif
