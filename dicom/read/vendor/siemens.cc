/*
 * siemens.cc - reads Siemens' attributes from group 0019 or the CSA image header, and the protocol:
 * see source.hh.
 *
 * Software XA has no CSA headers. The protocol is the value of (0021,xx19) of SIEMENS MR SDS 01. It
 * is in the data set (interoperability), or in the first item of (0021,xxFE) of the shared
 * functional groups (enhanced). Sources: dcmextras (phoenix.py), csa_header
 * (XA_ENHANCED_ANALYSIS.md), and an enhanced localizer of syngo MR XA30 in the test data of
 * heudiconv.
 */
#include "dicom/read/image/source.hh"
#include "dicom/read/vendor/csa.h"

#include <charconv>
#include <cmath>

namespace
{

constexpr char creator[] = "SIEMENS MR HEADER";

constexpr struct private_attribute csa_image_header {
    0x0029, 0x10, "SIEMENS CSA HEADER", EVR_OB
};

constexpr struct private_attribute csa_series_header {
    0x0029, 0x20, "SIEMENS CSA HEADER", EVR_OB
};

constexpr char series_creator[] = "SIEMENS MR SDS 01";

constexpr struct private_attribute xa_protocol {
    0x0021, 0x19, series_creator, EVR_OB
};

constexpr struct private_attribute xa_series {
    0x0021, 0xFE, series_creator, EVR_SQ
};

/* Returns the bytes of a value; empty if it is absent. */
std::string_view
private_bytes(const Header &dataset, const struct private_attribute &attribute)
{
    Uint8 *bytes = nullptr;
    DcmElement *element = dataset.find(header_private(dataset, attribute));
    if (!element || !header_is_good(element->getUint8Array(bytes)) || !bytes)
        return {};
    return {reinterpret_cast<const char *>(bytes), element->getLength()};
}

} // namespace

const struct siemens_attribute siemens_tiles = {{0x0019, 0x0A, creator, EVR_US}, "NumberOfImagesInMosaic"};
const struct siemens_attribute siemens_b_value = {{0x0019, 0x0C, creator, EVR_IS}, "B_value"};
const struct siemens_attribute siemens_direction = {{0x0019, 0x0E, creator, EVR_FD}, "DiffusionGradientDirection"};
const struct siemens_attribute siemens_b_matrix = {{0x0019, 0x27, creator, EVR_FD}, "B_matrix"};

std::vector<double>
siemens_csa(const Source &source, const char *name, size_t room)
{
    const std::string_view bytes = private_bytes(source.dataset, csa_image_header);

    struct Value {
        char text[CSA_VALUE];
    };

    std::vector<Value> values(room);
    std::vector<double> numbers(
        csa_values(bytes.data(), bytes.size(), name, reinterpret_cast<char(*)[CSA_VALUE]>(values.data()), room));
    for (size_t i = 0; i < numbers.size(); i++)
        if (!header_parse_number(values[i].text, &numbers[i]))
            return {};
    return numbers;
}

bool
siemens_number(const Source &source, const struct siemens_attribute &attribute, double *value, unsigned long index)
{
    if (header_private_number(source.dataset, attribute.element, value, index))
        return true;
    if (source.has_groups)
        return false;
    const std::vector<double> numbers = siemens_csa(source, attribute.csa, index + 1);
    if (numbers.size() <= index)
        return false;
    *value = numbers[index];
    return true;
}

std::string_view
siemens_protocol(const Source &source)
{
    std::string_view text = private_bytes(source.dataset, csa_series_header);
    for (const Header *place : {&source.dataset, &source.shared}) {
        if (text.empty())
            text = private_bytes(*place, xa_protocol);
        if (text.empty())
            text = private_bytes(place->item(header_private(*place, xa_series)), xa_protocol);
    }
    const size_t begin = text.find("### ASCCONV BEGIN");
    return begin == std::string_view::npos ? std::string_view()
                                           : text.substr(begin, text.find("### ASCCONV END", begin) - begin);
}

double
siemens_protocol_number(std::string_view protocol, std::string_view key)
{
    const size_t at = protocol.find(key);
    if (at == std::string_view::npos)
        return 0;
    const size_t begin = protocol.find_first_not_of(" \t=", at + key.size());
    if (begin == std::string_view::npos)
        return 0;
    const bool is_hex = protocol.substr(begin, 2) == "0x";
    const char *from = protocol.data() + begin, *end = protocol.data() + protocol.size();
    long integer = 0;
    double value = 0;
    if (is_hex)
        std::from_chars(from + 2, end, integer, 16);
    else
        std::from_chars(from, end, value);
    value = is_hex ? static_cast<double>(integer) : value;
    return std::isfinite(value) ? value : 0;
}
