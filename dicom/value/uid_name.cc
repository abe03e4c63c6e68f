/*
 * uid_name.cc - names of the standard's UIDs.
 */
#include "dicom/dicom.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcuid.h>

const char *
dicom_uid_name(const char *uid)
{
    return dcmFindNameOfUID(uid, uid);
}
