/*
 * fitness.hh - what of a source's attributes may stand in a result; private to dicom/read/.
 */
#ifndef NOCTULE_DICOM_FITNESS_H
#define NOCTULE_DICOM_FITNESS_H

#include "dicom/read/header.hh"

/*
 * Takes out of the data set what would make an object invalid that inherits it: values that break
 * their VR or its multiplicity, items without what their macro requires, sequences without items,
 * attributes whose companions are missing. A name keeps its characters, with '?' for those that are
 * none; text of an unknown set that is UTF-8 is declared as such. Returns the names of what was
 * left out or changed, for people, without a value: "" where nothing was.
 */
std::string fitness_restore(DcmDataset &dataset);

#endif
