/*
 * init.cc - DCMTK made ready once for the process: dictionary, decoders, silence.
 */
#include "dicom/dicom.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcdict.h>
#include <dcmtk/dcmdata/dcvr.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>

#include <mutex>

void
dicom_init(void)
{
    static std::once_flag once;
    std::call_once(once, [] {
        /* Leaves are silent: what matters comes back as a struct error. */
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        /* Loaded lazily otherwise, under a lock, by the first file. */
        (void)dcmDataDict.isDictionaryLoaded();
        /* Standard attributes whose VR got lost on their way (UN) have that of the dictionary. */
        dcmEnableUnknownVRConversion.set(OFTrue);
        DJDecoderRegistration::registerCodecs();
        DJLSDecoderRegistration::registerCodecs();
    });
}
