/* provenance.hh - reads a provenance from the items of an object; private to dicom/, C++. */
#ifndef NOCTULE_PROVENANCE_HH
#define NOCTULE_PROVENANCE_HH

#include "dicom/read/header.hh"
#include "dicom/read/provenance.h"
#include "dicom/value/charset.hh"

/* Where the items of a sequence have a provenance. */
struct provenance_tags {
    DcmTagKey type, names, algorithms;
    DcmTagKey code; /* the property or the RT ROI that is identified */
};

/* Items of the Segment Sequence, and of the Structure Set ROI and RT ROI Observations Sequences. */
extern const struct provenance_tags provenance_of_segment, provenance_of_roi;

/* Reads all but the codes. Only std::bad_alloc leaves. */
const struct provenance *provenance_read(const struct provenance_tags &tags, const Header &dataset,
                                         const Header &item, Charset &charset);
/* Adds the codes of an item; those of an RT ROI are in its observations (PS3.3 C.8.8.8). No other holder may have the
 * provenance yet. */
void provenance_add_codes(const struct provenance *provenance, const struct provenance_tags &tags,
                          const Header &item, Charset &charset);

#endif
