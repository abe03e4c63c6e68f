/*
 * commitment.hh - data set of a storage commitment report (N-EVENT-REPORT, PS3.4 J.3.3), which both
 * sides of the network receive; private to dicom/, C++.
 *
 * The bytes come from a peer and must not reach DCMTK's parser, which recurses with their nesting.
 * This reader does not recurse. Depth is limited. Time and memory are proportional to the size.
 */
#ifndef NOCTULE_DICOM_NET_COMMITMENT_HH
#define NOCTULE_DICOM_NET_COMMITMENT_HH

#include "dicom/net/scp.h"

#include <vector>

/* A report with its references. */
struct commitment {
    struct dicom_commitment view = {};
    std::vector<struct dicom_commitment_reference> references;
};

/* Reads a report. Returns false if the bytes are not a complete data set in this uncompressed
 * transfer syntax, are nested too deeply, lack the transaction UID, or have an instance without
 * UID. */
bool commitment_read(const uint8_t *bytes, size_t size, const char *transfer_syntax, struct commitment &commitment);

#endif
