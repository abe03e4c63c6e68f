/*
 * fuzz_associate.cc - any bytes as the value of an A-ASSOCIATE-RQ: rejected with a reason, or read as associate.hh
 * specifies. The A-ASSOCIATE-AC that answers it must read back to the same answer.
 */
#include "dicom/net/associate.hh"

#include "dicom/dicom.h"
#include "dicom/value/value.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

constexpr size_t titles_size = 32;
constexpr size_t fixed_size = 68;
constexpr uint8_t context_rq = 0x20;
constexpr uint8_t context_ac = 0x21;
constexpr uint32_t max_pdu = 16384;

/* Checks that every text lies in the input and is read only once. */
void
check_sizes(const AssociateRequest &request, size_t size)
{
    size_t total = fixed_size;
    must(request.titles.size() == titles_size);
    must(request.called_ae.size() <= titles_size / 2);
    must(request.calling_ae.size() <= titles_size / 2);
    for (const PresentationContext &context : request.contexts) {
        total += context.abstract_syntax.size();
        for (const std::string &proposed : context.proposed)
            total += proposed.size();
    }
    for (const RoleSelection &role : request.roles)
        total += role.sop_class.size();
    must(total <= size);
}

void
check_ids(const AssociateRequest &request)
{
    bool seen[256] = {};
    for (const PresentationContext &context : request.contexts) {
        must(!seen[context.id]);
        seen[context.id] = true;
    }
}

/* Accepts the first proposal of each context. */
void
answer_contexts(AssociateRequest &request)
{
    for (PresentationContext &context : request.contexts) {
        const bool takes = !context.proposed.empty();
        context.result = takes ? CONTEXT_ACCEPTED : CONTEXT_TRANSFER_SYNTAXES;
        if (takes)
            context.transfer_syntax = context.proposed[0];
    }
}

/* Returns the first role with a possible UID of a SOP class. The acceptor must not agree to an unknown name. */
std::vector<RoleSelection>
answer_roles(const AssociateRequest &request)
{
    for (const RoleSelection &role : request.roles)
        if (role.sop_class.size() < DICOM_UID_SIZE)
            return {role};
    return {};
}

/*
 * Turns an A-ASSOCIATE-AC into a request. Its items differ only in the type of the contexts. Aborts unless their
 * lengths add up to the length of the PDU.
 */
void
turn_into_request(std::vector<uint8_t> &pdu)
{
    size_t at = pdu_head_size + fixed_size;
    must(pdu.size() >= at);
    must(pdu[0] == PDU_ASSOCIATE_AC && value_u32(&pdu[2], true) == pdu.size() - pdu_head_size);
    while (at < pdu.size()) {
        must(pdu.size() - at >= 4);
        if (pdu[at] == context_ac)
            pdu[at] = context_rq;
        at += 4 + (static_cast<size_t>(pdu[at + 2]) << 8 | pdu[at + 3]);
    }
    must(at == pdu.size());
}

void
check_contexts(const AssociateRequest &request, const AssociateRequest &again)
{
    must(again.contexts.size() == request.contexts.size());
    for (size_t i = 0; i < request.contexts.size(); i++) {
        const PresentationContext &context = again.contexts[i];
        must(context.id == request.contexts[i].id && context.abstract_syntax.empty());
        must(context.proposed.size() == 1);
        must(context.proposed[0] == request.contexts[i].transfer_syntax);
    }
}

void
check_roles(const std::vector<RoleSelection> &roles, const AssociateRequest &again)
{
    must(again.roles.size() == roles.size());
    for (size_t i = 0; i < roles.size(); i++)
        must(again.roles[i].sop_class == roles[i].sop_class && again.roles[i].scu == roles[i].scu &&
             again.roles[i].scp == roles[i].scp);
}

void
check_answer(AssociateRequest &request)
{
    answer_contexts(request);
    const std::vector<RoleSelection> roles = answer_roles(request);
    std::vector<uint8_t> pdu = associate_accept(request, roles, max_pdu);
    turn_into_request(pdu);
    const uint8_t *value = pdu.data() + pdu_head_size;
    const size_t size = pdu.size() - pdu_head_size;
    AssociateRequest again;
    must(associate_version_is_known(value, size));
    must(!associate_parse(value, size, again));
    must(again.titles == request.titles && again.max_pdu == max_pdu);
    must(again.application_context == request.application_context);
    check_contexts(request, again);
    check_roles(roles, again);
}

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    AssociateRequest request;
    (void)associate_version_is_known(bytes, size); /* a sanitizer checks its reads */
    if (const char *reason = associate_parse(bytes, size, request)) {
        must(reason[0] != '\0');
        return 0;
    }
    check_sizes(request, size);
    check_ids(request);
    check_answer(request);
    return 0;
}
