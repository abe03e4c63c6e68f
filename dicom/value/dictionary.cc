#include "dicom/value/dictionary.h"
#include "dicom/dicom.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dctag.h>
#include <dcmtk/dcmdata/dcuid.h>

enum dictionary_form
dictionary_form(uint32_t tag)
{
    const auto group = static_cast<Uint16>(tag >> 16), element = static_cast<Uint16>(tag);
    if (group % 2 != 0 && element >= 0x1000)
        return DICTIONARY_UNKNOWN;
    switch (DcmTag(group, element).getEVR()) {
    case EVR_SQ:
        return DICTIONARY_SEQUENCE;
    case EVR_UN:
    case EVR_UNKNOWN:
    case EVR_UNKNOWN2B:
        return DICTIONARY_UNKNOWN;
    default:
        return DICTIONARY_VALUE;
    }
}

const char *
dicom_uid_name(const char *uid)
{
    return dcmFindNameOfUID(uid, uid);
}
