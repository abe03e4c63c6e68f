/* provenance.hh - reads a provenance from the items of an object; private to dicom/, C++. */
#ifndef NOCTULE_PROVENANCE_HH
#define NOCTULE_PROVENANCE_HH

#include "dicom/read/header.hh"
#include "dicom/read/provenance.h"
#include "dicom/value/charset.hh"

/* An item of the Segment Sequence, or of the Structure Set ROI Sequence. Only std::bad_alloc leaves. */
const struct provenance *provenance_of_segment(const Header &dataset, const Header &item,
                                               Charset &charset);
const struct provenance *provenance_of_roi(const Header &dataset, const Header &item,
                                           Charset &charset);
/* Adds the codes of an item of the RT ROI Observations Sequence (PS3.3 C.8.8.8). No other holder may have the provenance yet. */
void provenance_add_codes(const struct provenance *provenance, const Header &item,
                          Charset &charset);

#endif
