/*
 * commitment.hh - the data set of a storage commitment report (N-EVENT-REPORT, PS3.4 J.3.3), which
 * comes to both sides of the network; private to dicom/, C++.
 *
 * A peer's bytes, so no parser of files sees them: DCMTK's recurses with their nesting. Here nothing
 * does, depth is bounded, and what is read costs time and memory in proportion to its size.
 */
#ifndef NOCTULE_DICOM_COMMITMENT_H
#define NOCTULE_DICOM_COMMITMENT_H

#include "dicom/net/scp.h"

#include <vector>

/* A report that owns its references. */
struct commitment {
    struct dicom_commitment view = {};
    std::vector<struct dicom_commitment_reference> references;
};

/*
 * False when it is no whole data set in this transfer syntax (one without compression), is nested
 * deeply, has no transaction, or an instance without UID: then it is no report.
 */
bool commitment_read(const uint8_t *bytes, size_t size, const char *transfer_syntax,
                     struct commitment &commitment);

#endif
