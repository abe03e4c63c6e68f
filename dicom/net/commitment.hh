/*
 * commitment.hh - the data set of a storage commitment report (N-EVENT-REPORT, PS3.4 J.3.3), which
 * comes to both sides of the network; private to dicom/, C++.
 */
#ifndef NOCTULE_DICOM_COMMITMENT_H
#define NOCTULE_DICOM_COMMITMENT_H

#include "dicom/net/scp.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dctk.h>

#include <vector>

/* A report that owns its references. */
struct commitment {
    struct dicom_commitment view = {};
    std::vector<struct dicom_commitment_reference> references;
};

/* False when it has no transaction, or an instance without UID: then it is no report. */
bool commitment_read(DcmDataset &dataset, struct commitment &commitment);

#endif
