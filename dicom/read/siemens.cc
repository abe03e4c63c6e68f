/* siemens.cc - what Siemens' software writes twice: see source.hh. */
#include "dicom/read/csa.h"
#include "dicom/read/source.hh"

namespace
{

constexpr char creator[] = "SIEMENS MR HEADER";

constexpr struct private_attribute csa_header {
    0x0029, 0x10, "SIEMENS CSA HEADER", EVR_OB
};

bool
csa_number(const Header &dataset, const char *name, double *value, unsigned long index)
{
    char values[6][CSA_VALUE];
    Uint8 *bytes = nullptr;
    DcmElement *element = dataset.find(header_private(dataset, csa_header));
    if (!element || !header_is_good(element->getUint8Array(bytes)) || !bytes ||
        index >= std::size(values))
        return false;
    return csa_values(bytes, element->getLength(), name, values, index + 1) == index + 1 &&
           header_parse_number(values[index], value);
}

} // namespace

const struct siemens_attribute siemens_tiles = {{0x0019, 0x0A, creator, EVR_US},
                                                "NumberOfImagesInMosaic"};
const struct siemens_attribute siemens_b_value = {{0x0019, 0x0C, creator, EVR_IS}, "B_value"};
const struct siemens_attribute siemens_direction = {{0x0019, 0x0E, creator, EVR_FD},
                                                    "DiffusionGradientDirection"};
const struct siemens_attribute siemens_b_matrix = {{0x0019, 0x27, creator, EVR_FD}, "B_matrix"};

bool
siemens_number(const Source &source, const struct siemens_attribute &attribute, double *value,
               unsigned long index)
{
    const Header &dataset = source.dataset();
    return header_private_number(dataset, attribute.element, value, index) ||
           (!source.has_groups() && csa_number(dataset, attribute.csa, value, index));
}
