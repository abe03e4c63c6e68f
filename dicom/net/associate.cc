#include "dicom/net/associate.hh"
#include "dicom/value/value.h"

#include "dicom/value/uid.h"

#include <algorithm>

namespace
{

constexpr size_t titles_at = 4; /* after protocol version and reserved bytes */
constexpr size_t titles_size = 32;
constexpr size_t title_size = 16;
constexpr size_t fixed_size = 68;
constexpr size_t item_head_size = 4; /* type, a reserved byte, length */
constexpr size_t context_head_size = 4;

enum item_type : uint8_t {
    ITEM_APPLICATION_CONTEXT = 0x10,
    ITEM_CONTEXT_RQ = 0x20,
    ITEM_CONTEXT_AC = 0x21,
    ITEM_ABSTRACT_SYNTAX = 0x30,
    ITEM_TRANSFER_SYNTAX = 0x40,
    ITEM_USER_INFORMATION = 0x50,
    ITEM_MAX_PDU = 0x51,
    ITEM_IMPLEMENTATION_UID = 0x52,
    ITEM_ROLE = 0x54,
    ITEM_IMPLEMENTATION_VERSION = 0x55,
};

struct Span {
    const uint8_t *bytes;
    size_t size;
};

/* Removes the padding that some senders add. */
std::string
text(Span value)
{
    while (value.size > 0 && (value.bytes[value.size - 1] == '\0' || value.bytes[value.size - 1] == ' '))
        value.size--;
    return std::string(value.bytes, value.bytes + value.size);
}

/* Returns the UID, or "" (which matches no UID) if it has a NUL inside. As a C string it would be a different UID. */
std::string
uid(Span value)
{
    std::string all = text(value);
    return all.find('\0') == std::string::npos ? all : std::string();
}

/* Calls take(type, value) for each item. Returns false if the lengths do not add up. */
template <typename Take>
bool
for_items(Span items, Take take)
{
    while (items.size > 0) {
        if (items.size < item_head_size)
            return false;
        const size_t length = static_cast<size_t>(items.bytes[2]) << 8 | items.bytes[3];
        if (length > items.size - item_head_size)
            return false;
        if (!take(items.bytes[0], Span{items.bytes + item_head_size, length}))
            return false;
        items.bytes += item_head_size + length;
        items.size -= item_head_size + length;
    }
    return true;
}

bool
parse_context(Span value, AssociateRequest &request)
{
    if (value.size < context_head_size)
        return false;
    PresentationContext context;
    context.id = value.bytes[0];
    for (const PresentationContext &other : request.contexts)
        if (other.id == context.id)
            return false;
    const Span items = {value.bytes + context_head_size, value.size - context_head_size};
    const bool whole = for_items(items, [&context](uint8_t type, Span item) {
        if (type == ITEM_ABSTRACT_SYNTAX)
            context.abstract_syntax = uid(item);
        else if (type == ITEM_TRANSFER_SYNTAX)
            context.proposed.push_back(uid(item));
        return true;
    });
    request.contexts.push_back(std::move(context));
    return whole;
}

bool
parse_user_item(uint8_t type, Span item, AssociateRequest &request)
{
    switch (type) {
    case ITEM_MAX_PDU:
        if (item.size != 4)
            return false;
        request.max_pdu = value_u32(item.bytes, true);
        return true;
    case ITEM_IMPLEMENTATION_UID:
        request.implementation_uid = uid(item);
        return true;
    case ITEM_IMPLEMENTATION_VERSION:
        request.implementation_version = text(item);
        return true;
    case ITEM_ROLE: {
        if (item.size < 4)
            return false;
        const size_t length = static_cast<size_t>(item.bytes[0]) << 8 | item.bytes[1];
        if (length != item.size - 4)
            return false;
        request.roles.push_back(
            {uid({item.bytes + 2, length}), item.bytes[2 + length] != 0, item.bytes[3 + length] != 0});
        return true;
    }
    default:
        return true;
    }
}

/* An item under construction. The destructor fills in its length. */
class Item
{
  public:
    Item(std::vector<uint8_t> &to, uint8_t type) : to_(to), at_(to.size())
    {
        to_.insert(to_.end(), {type, 0, 0, 0});
    }

    ~Item()
    {
        const size_t length = to_.size() - at_ - item_head_size;
        to_[at_ + 2] = static_cast<uint8_t>(length >> 8);
        to_[at_ + 3] = static_cast<uint8_t>(length);
    }

    Item(const Item &) = delete;
    Item &operator=(const Item &) = delete;

  private:
    std::vector<uint8_t> &to_;
    size_t at_;
};

void
put_text_item(std::vector<uint8_t> &to, uint8_t type, const std::string &value)
{
    const Item item(to, type);
    to.insert(to.end(), value.begin(), value.end());
}

} // namespace

const char associate_application_context[] = "1.2.840.10008.3.1.1.1";

void
associate_put_u32(uint8_t *bytes, size_t number)
{
    for (int i = 3; i >= 0; i--, number >>= 8)
        bytes[i] = static_cast<uint8_t>(number);
}

bool
associate_version_is_known(const uint8_t *bytes, size_t size)
{
    return size >= 2 && (bytes[1] & 1) != 0;
}

const char *
associate_parse(const uint8_t *bytes, size_t size, AssociateRequest &request)
{
    if (size < fixed_size)
        return "the association request is too short";
    const uint8_t *titles = bytes + titles_at;
    request.titles.assign(titles, titles + titles_size);
    request.called_ae = text({titles, title_size});
    request.calling_ae = text({titles + title_size, title_size});
    const bool whole = for_items({bytes + fixed_size, size - fixed_size}, [&request](uint8_t type, Span item) {
        switch (type) {
        case ITEM_APPLICATION_CONTEXT:
            request.application_context = uid(item);
            return true;
        case ITEM_CONTEXT_RQ:
            return parse_context(item, request);
        case ITEM_USER_INFORMATION:
            return for_items(item, [&request](uint8_t user_type, Span user_item) {
                return parse_user_item(user_type, user_item, request);
            });
        default:
            return true;
        }
    });
    return whole ? nullptr : "the association request is malformed";
}

namespace
{

/* Common head of a request and its answer. */
std::vector<uint8_t>
begin_pdu(pdu_type type, const std::vector<uint8_t> &titles)
{
    std::vector<uint8_t> pdu(pdu_head_size + fixed_size);
    pdu[0] = type;
    pdu[pdu_head_size + 1] = 1; /* protocol version */
    std::copy(titles.begin(), titles.end(), &pdu[pdu_head_size + titles_at]);
    return pdu;
}

void
finish_pdu(std::vector<uint8_t> &pdu, const std::vector<RoleSelection> &roles, uint32_t max_pdu)
{
    const Item item(pdu, ITEM_USER_INFORMATION);
    pdu.insert(pdu.end(), {ITEM_MAX_PDU, 0, 0, 4, 0, 0, 0, 0});
    associate_put_u32(&pdu[pdu.size() - 4], max_pdu);
    put_text_item(pdu, ITEM_IMPLEMENTATION_UID, UID_IMPLEMENTATION_CLASS);
    for (const RoleSelection &role : roles) {
        const Item selection(pdu, ITEM_ROLE);
        pdu.insert(pdu.end(),
                   {static_cast<uint8_t>(role.sop_class.size() >> 8), static_cast<uint8_t>(role.sop_class.size())});
        pdu.insert(pdu.end(), role.sop_class.begin(), role.sop_class.end());
        pdu.insert(pdu.end(), {static_cast<uint8_t>(role.scu), static_cast<uint8_t>(role.scp)});
    }
    put_text_item(pdu, ITEM_IMPLEMENTATION_VERSION, "NOCTULE_" NOCTULE_VERSION);
    associate_put_u32(&pdu[2], pdu.size() - pdu_head_size);
}

/* Parses one answered context. A context that was not proposed is an error. */
bool
parse_answer(Span value, AssociateRequest &request)
{
    if (value.size < context_head_size)
        return false;
    std::string transfer;
    const Span items = {value.bytes + context_head_size, value.size - context_head_size};
    if (!for_items(items, [&transfer](uint8_t type, Span item) {
            if (type == ITEM_TRANSFER_SYNTAX)
                transfer = uid(item);
            return true;
        }))
        return false;
    for (PresentationContext &context : request.contexts) {
        const auto &proposed = context.proposed;
        if (context.id == value.bytes[0] && value.bytes[2] == CONTEXT_ACCEPTED &&
            std::find(proposed.begin(), proposed.end(), transfer) != proposed.end()) {
            context.result = CONTEXT_ACCEPTED;
            context.transfer_syntax = transfer;
        }
    }
    return true;
}

} // namespace

std::vector<uint8_t>
associate_accept(const AssociateRequest &request, const std::vector<RoleSelection> &roles, uint32_t max_pdu)
{
    std::vector<uint8_t> pdu = begin_pdu(PDU_ASSOCIATE_AC, request.titles);
    put_text_item(pdu, ITEM_APPLICATION_CONTEXT, request.application_context);
    for (const PresentationContext &context : request.contexts) {
        const Item item(pdu, ITEM_CONTEXT_AC);
        pdu.insert(pdu.end(), {context.id, 0, context.result, 0});
        put_text_item(pdu, ITEM_TRANSFER_SYNTAX, context.transfer_syntax);
    }
    finish_pdu(pdu, roles, max_pdu);
    return pdu;
}

std::vector<uint8_t>
associate_request(const AssociateRequest &request, uint32_t max_pdu)
{
    std::vector<uint8_t> titles(titles_size, ' ');
    std::copy_n(request.called_ae.begin(), std::min(request.called_ae.size(), title_size), titles.begin());
    std::copy_n(request.calling_ae.begin(), std::min(request.calling_ae.size(), title_size),
                titles.begin() + title_size);
    std::vector<uint8_t> pdu = begin_pdu(PDU_ASSOCIATE_RQ, titles);
    put_text_item(pdu, ITEM_APPLICATION_CONTEXT, associate_application_context);
    for (const PresentationContext &context : request.contexts) {
        const Item item(pdu, ITEM_CONTEXT_RQ);
        pdu.insert(pdu.end(), {context.id, 0, 0, 0});
        put_text_item(pdu, ITEM_ABSTRACT_SYNTAX, context.abstract_syntax);
        for (const std::string &proposed : context.proposed)
            put_text_item(pdu, ITEM_TRANSFER_SYNTAX, proposed);
    }
    finish_pdu(pdu, {}, max_pdu);
    return pdu;
}

const char *
associate_parse_accept(const uint8_t *bytes, size_t size, AssociateRequest &request)
{
    if (size < fixed_size)
        return "the answer to the association request is too short";
    const bool whole = for_items({bytes + fixed_size, size - fixed_size}, [&request](uint8_t type, Span item) {
        if (type == ITEM_CONTEXT_AC)
            return parse_answer(item, request);
        if (type == ITEM_USER_INFORMATION)
            return for_items(item, [&request](uint8_t user_type, Span user_item) {
                return parse_user_item(user_type, user_item, request);
            });
        return true;
    });
    return whole ? nullptr : "the answer to the association request is malformed";
}
