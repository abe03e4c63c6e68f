/* uid_name.cc - what UIDs of the standard are called. */
#include "dicom/dicom.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcuid.h>

const char *
dicom_uid_name(const char *uid)
{
    return dcmFindNameOfUID(uid, uid);
}
