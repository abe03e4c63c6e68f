/*
 * associate.hh - the PDUs that negotiate an association (PS3.8 9.3.2 to 9.3.4, PS3.7 annex D), for
 * the acceptor and the requestor; private to dicom/, C++.
 *
 * Items that are not known are skipped, as the standard asks for. Only std::bad_alloc leaves.
 */
#ifndef NOCTULE_DICOM_ASSOCIATE_HH
#define NOCTULE_DICOM_ASSOCIATE_HH

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
    std::string transfer_syntax; /* the accepted one */
};

/* SCP/SCU role selection (PS3.7 D.3.3.4), of the requestor. */
struct RoleSelection {
    std::string sop_class;
    bool scu;
    bool scp;
};

struct AssociateRequest {
    std::vector<uint8_t> titles; /* called and calling AE title as they came */
    std::string called_ae;
    std::string calling_ae;
    std::string application_context;
    std::string implementation_uid;
    std::string implementation_version;
    uint32_t max_pdu = 0; /* what the requestor takes; 0: anything */
    std::vector<PresentationContext> contexts;
    std::vector<RoleSelection> roles;
};

/* The value of an A-ASSOCIATE-RQ: nullptr, or what is wrong with it. */
const char *associate_parse(const uint8_t *bytes, size_t size, AssociateRequest &request);

/* Is its protocol version one that is spoken here? `bytes` as above. */
bool associate_version_is_known(const uint8_t *bytes, size_t size);

/* The whole A-ASSOCIATE-AC: contexts as they have been answered, and the roles agreed to. */
std::vector<uint8_t> associate_accept(const AssociateRequest &request,
                                      const std::vector<RoleSelection> &roles, uint32_t max_pdu);

/* The whole A-ASSOCIATE-RQ: its AE titles and contexts, and the longest PDU taken in answer. */
std::vector<uint8_t> associate_request(const AssociateRequest &request, uint32_t max_pdu);

/*
 * The value of the A-ASSOCIATE-AC that answers a request, into its contexts (what is accepted has
 * been proposed) and what it says of the peer: nullptr, or what is wrong with it.
 */
const char *associate_parse_accept(const uint8_t *bytes, size_t size, AssociateRequest &request);

void put_u32(uint8_t *bytes, size_t number); /* most significant byte first */
uint32_t get_u32(const uint8_t *bytes);

#endif
