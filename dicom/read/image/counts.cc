/*
 * counts.cc - number of slice locations that the header announces: see counts.def.
 *
 * Private elements: the dictionary private.dic of DCMTK. In the protocol of Siemens,
 * sSliceArray.lSize is the number of slices of a 2-D sequence, or of slabs of a 3-D one, which has
 * sKSpace.lImagesPerSlab slices per slab (NiBabel, https://nipy.org/nibabel/dicom/siemens_csa.html;
 * dcm2niix).
 */
#include "dicom/read/image/source.hh"

#include <algorithm>

namespace
{

constexpr struct private_attribute philips_slices {
    0x2001, 0x18, "Philips Imaging DD 001", EVR_SL
};

constexpr struct private_attribute philips_part_slices {
    0x0019, 0x0F, "PHILIPS MR/PART", EVR_IS
};

constexpr struct private_attribute ge_locations {
    0x0021, 0x4F, "GEMS_RELA_01", EVR_SS
};

int32_t
private_count(const Header &dataset, const struct private_attribute &attribute)
{
    double value;
    return header_private_number(dataset, attribute, &value) && value >= 1 && value <= LIMIT_FRAMES
               ? static_cast<int32_t>(value)
               : 0;
}

int32_t
protocol_number(std::string_view protocol, std::string_view key)
{
    const double value = siemens_protocol_number(protocol, key);
    return value >= 1 && value <= LIMIT_FRAMES ? static_cast<int32_t>(value) : 0;
}

} // namespace

const char *
dicom_count_name(enum dicom_count count)
{
    static const char *const names[] = {
#define COUNT(id, name) name,
#include "dicom/read/image/counts.def"
#undef COUNT
    };
    return names[count];
}

void
counts_read(const Source &source, struct dicom_instance &instance)
{
    const Header &dataset = source.dataset;
    instance.counts[DICOM_COUNT_philips] = private_count(dataset, philips_slices);
    instance.counts[DICOM_COUNT_philips_part] = private_count(dataset, philips_part_slices);
    instance.counts[DICOM_COUNT_ge] = private_count(dataset, ge_locations);
    const std::string_view protocol = siemens_protocol(source);
    constexpr int32_t three_dimensional = 4;
    int32_t slices = protocol_number(protocol, "\nsSliceArray.lSize");
    /* Slabs of a 3-D sequence overlap, so only a single slab gives a count. */
    if (protocol_number(protocol, "\nsKSpace.ucDimension") == three_dimensional)
        slices = slices == 1 ? protocol_number(protocol, "\nsKSpace.lImagesPerSlab") : 0;
    instance.counts[DICOM_COUNT_siemens] = slices;
}

void
counts_read_frame(const Source &source, struct dicom_instance &instance)
{
    int32_t position;
    if (source.has_groups &&
        header_integer(source.group(DCM_FrameContentSequence), DCM_InStackPositionNumber, &position))
        instance.counts[DICOM_COUNT_stack_positions] =
            std::max(instance.counts[DICOM_COUNT_stack_positions], std::min<int32_t>(position, LIMIT_FRAMES));
}
