/*
 * init.cc - DCMTK made ready once for the process: dictionary, decoders, silence.
 */
#include "dicom/dicom.h"

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
    /* Half made: nothing of it is used, not even to end. */
    std::fprintf(stderr, "There is %s. Try again.\n", what);
    std::_Exit(EX_TEMPFAIL);
}

/* DCMTK takes one for loaded whose file's name it had no memory for. */
static bool
has_dictionary()
{
    const DcmDataDictionary &dictionary = dcmDataDict.rdlock();
    const bool has = dictionary.isDictionaryLoaded() &&
                     dictionary.findEntry(DCM_PatientName, nullptr) &&
                     dictionary.findEntry(DCM_PixelData, nullptr);
    dcmDataDict.rdunlock();
    return has;
}

/* Made ready by the first digest, without memory for which OpenSSL crashes at the next. */
static bool
has_digests()
{
    static const char *const texts[] = {"", nullptr};
    char uid[DICOM_UID_SIZE];
    return OSSL_LIB_CTX_get0_global_default() && uid_from_texts(uid, texts) == 0;
}

static bool
init_libraries()
{
    /* Leaves are silent: what matters comes back as a struct error. */
    OFLog::configure(OFLogger::OFF_LOG_LEVEL);
    /* Loaded lazily otherwise, under a lock, by the first file. Without it names of attributes mean nothing: results
     * would lack what they inherit. */
    if (!has_dictionary())
        end_for_want_of("no data dictionary of DCMTK, or no memory to load it (dicom.dic, where "
                        "DCMDICTPATH says)");
    /* Standard attributes whose VR got lost on their way (UN) have that of the dictionary. */
    dcmEnableUnknownVRConversion.set(OFTrue);
    DJDecoderRegistration::registerCodecs();
    DJLSDecoderRegistration::registerCodecs();
    if (!has_digests())
        end_for_want_of("not enough memory to begin");
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
    try { /* no std::call_once: what is thrown passes the C library there, which needs memory for it, or aborts */
        static const bool ready = init_libraries();
        (void)ready;
    } catch (const std::bad_alloc &) {
        end_for_want_of("not enough memory to begin");
    }
}
