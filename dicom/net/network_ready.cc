#include "dicom/net/network_ready.hh"

#include <dcmtk/config/osconfig.h>

#include <dcmtk/dcmnet/assoc.h>
#include <dcmtk/dcmtls/tlslayer.h>

#include <mutex>

void
network_ready()
{
    static std::once_flag once;
    std::call_once(once, [] {
        /* A peer's name is nobody's business here, and asking for it can take half a minute. */
        dcmDisableGethostbyaddr.set(OFTrue);
        DcmTLSTransportLayer::initializeOpenSSL();
        T_ASC_Network *network = nullptr;
        if (ASC_initializeNetwork(NET_REQUESTOR, 0, 1, &network).good())
            ASC_dropNetwork(&network);
    });
}
