/* accept.hh - the answer of a peer that accepts every proposed context. */
#ifndef NOCTULE_FUZZ_ACCEPT_HH
#define NOCTULE_FUZZ_ACCEPT_HH

#include "dicom/net/associate.hh"
#include "dicom/net/scu.h"

#include <vector>

/* Returns an A-ASSOCIATE-AC that accepts these contexts. */
inline std::vector<uint8_t>
accept_all(const struct dicom_context *contexts, size_t count)
{
    AssociateRequest request;
    request.titles.assign(32, ' ');
    request.application_context = associate_application_context;
    for (size_t i = 0; i < count; i++) {
        PresentationContext context;
        context.id = static_cast<uint8_t>(2 * i + 1);
        context.result = CONTEXT_ACCEPTED;
        context.transfer_syntax = contexts[i].transfer_syntax;
        request.contexts.push_back(context);
    }
    return associate_accept(request, {}, 16384);
}

#endif
