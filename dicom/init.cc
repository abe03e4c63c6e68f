/* init.cc - initialises DCMTK once per process: dictionary, decoders, logger. */
#include "dicom/dicom.h"

#include "dicom/value/charset.hh"
#include "dicom/value/uid.h"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmdata/dcdeftag.h>
#include <dcmtk/dcmdata/dcdict.h>
#include <dcmtk/dcmdata/dcvr.h>
#include <dcmtk/dcmjpeg/djdecode.h>
#include <dcmtk/dcmjpls/djdecode.h>
#include <dcmtk/oflog/oflog.h>
#include <openssl/crypto.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include <sysexits.h>

static void
end_for_want_of(const char *what)
{
    /* DCMTK is only partly initialised. Exit handlers must not run either. */
    std::fprintf(stderr, "There is %s. Try again.\n", what);
    std::_Exit(EX_TEMPFAIL);
}

/* Checks for two entries: if memory is short for the file name, DCMTK reports a dictionary as loaded that is not. */
static bool
has_dictionary()
{
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const bool has = dictionary.isDictionaryLoaded() && dictionary.findEntry(DCM_PatientName, nullptr) &&
                     dictionary.findEntry(DCM_PixelData, nullptr);
    dcmDataDict.rdunlock();
    return has;
}

static bool
init_libraries()
{
    /* DCMTK must not log. Errors return as struct error. */
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    /* Load the dictionary now. Otherwise the first file loads it, under a lock. Without it
     * attributes have no names, and results lack the attributes they inherit. */
    if (!has_dictionary())
        end_for_want_of("no data dictionary of DCMTK (dicom.dic, see DCMDICTPATH), or not enough memory to load it");
    /* Without them, texts would count as unreadable, and results would lack the names and IDs they inherit. */
    try {
        charset_load_converters();
    } catch (const std::bad_alloc &) {
        end_for_want_of("no converter of character sets (glibc's gconv modules: ISO-8859-1, GB18030, EUC-KR, "
                        "ISO-2022-JP-2, ISO-2022-JP-3), no locale C.UTF-8, or not enough memory to load one");
    }
    /* Standard attributes with VR UN get the VR of the dictionary. */
    dcmEnableUnknownVRConversion.set(OFTrue);
    DJDecoderRegistration::registerCodecs();
    DJLSDecoderRegistration::registerCodecs();
    /* Compute one digest: if memory is short at the first one, OpenSSL crashes at the next. */
    static const char *const texts[] = {"", nullptr};
    char uid[DICOM_UID_SIZE];
    if (!OSSL_LIB_CTX_get0_global_default() || uid_from_texts(uid, texts) != 0)
        end_for_want_of("not enough memory to start");
    return true;
}

bool
dicom_has_dictionary(void)
{
    try {
        OFLog::configure(OFLogger::OFF_LOG_LEVEL);
        return has_dictionary();
    } catch (const std::bad_alloc &) {
        return false;
    }
}

void
dicom_init(void)
{
    /* Not std::call_once: an exception would pass through the C library, which needs memory for it or aborts. */
    try {
        static const bool ready = init_libraries();
        (void)ready;
    } catch (const std::bad_alloc &) {
        end_for_want_of("not enough memory to start");
    }
}
