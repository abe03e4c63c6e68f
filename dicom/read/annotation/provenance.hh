/* provenance.hh - reads a provenance from the items of an object; private to dicom/, C++. */
#ifndef NOCTULE_DICOM_READ_ANNOTATION_PROVENANCE_HH
#define NOCTULE_DICOM_READ_ANNOTATION_PROVENANCE_HH

#include "dicom/read/annotation/provenance.h"
#include "dicom/read/header.hh"
#include "dicom/value/charset.hh"

/* Tags of a provenance in the items of a sequence. */
struct provenance_tags {
    DcmTagKey type, names, algorithms;
    DcmTagKey code; /* codes of the property or of the RT ROI */
};

/* For items of the Segment Sequence, and of the Structure Set ROI and RT ROI Observations
 * Sequences. */
extern const struct provenance_tags provenance_of_segment, provenance_of_roi;

/* Reads all but the codes. std::bad_alloc is the only exception that leaves. */
const struct provenance *provenance_read(const struct provenance_tags &tags, const Header &dataset, const Header &item,
                                         Charset &charset);
/* Adds the codes of an item. Those of an RT ROI are in its observations (PS3.3 C.8.8.8). The
 * provenance must not have other holders yet. */
void provenance_add_codes(const struct provenance *provenance, const struct provenance_tags &tags, const Header &item,
                          Charset &charset);

#endif
