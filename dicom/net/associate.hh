/*
 * associate.hh - PDUs that negotiate an association (PS3.8 9.3.2 to 9.3.4, PS3.7 annex D), for the
 * acceptor and the requestor; private to dicom/, C++.
 *
 * Unknown items are skipped, as the standard requires. std::bad_alloc is the only exception that leaves.
 */
#ifndef NOCTULE_DICOM_NET_ASSOCIATE_HH
#define NOCTULE_DICOM_NET_ASSOCIATE_HH

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

enum pdu_type : uint8_t {
    PDU_ASSOCIATE_RQ = 1,
    PDU_ASSOCIATE_AC = 2,
    PDU_ASSOCIATE_RJ = 3,
    PDU_DATA = 4,
    PDU_RELEASE_RQ = 5,
    PDU_RELEASE_RP = 6,
    PDU_ABORT = 7,
};

constexpr size_t pdu_head_size = 6; /* type, a reserved byte, length */

/* A-ABORT sources (PS3.8 9.3.8). */
constexpr uint8_t abort_by_user = 0;
constexpr uint8_t abort_by_provider = 2;

extern const char associate_application_context[];

/* Results of a presentation context (PS3.8 table 9-18). */
enum context_result : uint8_t {
    CONTEXT_ACCEPTED = 0,
    CONTEXT_ABSTRACT_SYNTAX = 3,
    CONTEXT_TRANSFER_SYNTAXES = 4,
};

struct PresentationContext {
    uint8_t id = 0;
    std::string abstract_syntax;
    std::vector<std::string> proposed; /* transfer syntaxes */
    context_result result = CONTEXT_ABSTRACT_SYNTAX;
    std::string transfer_syntax; /* the accepted transfer syntax */
};

/* SCP/SCU role selection (PS3.7 D.3.3.4) of the requestor. */
struct RoleSelection {
    std::string sop_class;
    bool scu;
    bool scp;
};

struct AssociateRequest {
    std::vector<uint8_t> titles; /* called and calling AE title as received */
    std::string called_ae;
    std::string calling_ae;
    std::string application_context;
    std::string implementation_uid;
    std::string implementation_version;
    uint32_t max_pdu = 0; /* longest PDU that the requestor accepts; 0: any */
    std::vector<PresentationContext> contexts;
    std::vector<RoleSelection> roles;
};

/* Parses the value of an A-ASSOCIATE-RQ. Returns nullptr, or a description of its fault. */
const char *associate_parse(const uint8_t *bytes, size_t size, AssociateRequest &request);

/* Returns whether the protocol version is supported. `bytes` as for associate_parse. */
bool associate_version_is_known(const uint8_t *bytes, size_t size);

/* Encodes the whole A-ASSOCIATE-AC: the answered contexts and the agreed roles. */
std::vector<uint8_t> associate_accept(const AssociateRequest &request, const std::vector<RoleSelection> &roles,
                                      uint32_t max_pdu);

/* Encodes the whole A-ASSOCIATE-RQ: AE titles, contexts, and max_pdu, the longest PDU accepted. */
std::vector<uint8_t> associate_request(const AssociateRequest &request, uint32_t max_pdu);

/* Parses the value of the A-ASSOCIATE-AC that answers `request`. Fills the contexts of `request`
 * (only proposed contexts may be accepted) and the peer's properties. Returns nullptr, or a
 * description of the fault. */
const char *associate_parse_accept(const uint8_t *bytes, size_t size, AssociateRequest &request);

void associate_put_u32(uint8_t *bytes, size_t number); /* most significant byte first */

#endif
