#include "charset.h"

#include "dcmtk/config/osconfig.h"
#include "dcmtk/dcmdata/dcistrmb.h"
#include "dcmtk/dcmdata/dcostrmb.h"
#include "dcmtk/dcmdata/dcwcache.h"
#include "dcmtk/dcmdata/dctk.h"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>

namespace
{

OFCondition
parse(const struct dicom_inherited &inherited, DcmDataset &dataset)
{
    std::string bytes;
    for (size_t i = 0; i < inherited.count; i++)
        bytes.append(reinterpret_cast<const char *>(inherited.elements[i].bytes),
                     inherited.elements[i].size);
    DcmInputBufferStream stream;
    stream.setBuffer(bytes.data(), static_cast<offile_off_t>(bytes.size()));
    stream.setEos();
    dataset.transferInit();
    OFCondition status = dataset.read(stream, EXS_LittleEndianExplicit);
    dataset.transferEnd();
    return status;
}

/* Explicit VR Little Endian bytes of one element; the caller has room for `size`. */
OFCondition
encode(DcmElement &element, uint8_t *bytes, size_t size, size_t &written)
{
    DcmWriteCache cache;
    DcmOutputBufferStream stream(bytes, static_cast<offile_off_t>(size));
    element.transferInit();
    OFCondition status =
        element.write(stream, EXS_LittleEndianExplicit, EET_ExplicitLength, &cache);
    element.transferEnd();
    void *place = nullptr;
    offile_off_t length = 0;
    stream.flushBuffer(place, length);
    written = static_cast<size_t>(length);
    return status;
}

int
collect(DcmDataset &dataset, struct dicom_inherited &out)
{
    const size_t size =
        dataset.calcElementLength(EXS_LittleEndianExplicit, EET_ExplicitLength) + 16;
    const size_t count = dataset.card();
    out.count = 0;
    out.storage = static_cast<uint8_t *>(malloc(size));
    out.elements = static_cast<struct dicom_element *>(calloc(count + 1, sizeof(*out.elements)));
    if (!out.storage || !out.elements)
        return -ENOMEM;
    size_t used = 0;
    for (DcmObject *object = dataset.nextInContainer(nullptr); object;
         object = dataset.nextInContainer(object)) {
        DcmElement &element = *static_cast<DcmElement *>(object);
        size_t written = 0;
        if (encode(element, out.storage + used, size - used, written).bad())
            return -EIO;
        const uint32_t tag = static_cast<uint32_t>(element.getGTag()) << 16 | element.getETag();
        out.elements[out.count++] = {tag, out.storage + used, written};
        used += written;
    }
    return 0;
}

} // namespace

extern "C" int
charset_to_utf8(struct dicom_inherited *inherited)
try {
    DcmDataset dataset;
    if (parse(*inherited, dataset).bad() || dataset.convertToUTF8().bad())
        return -EILSEQ;
    struct dicom_inherited converted = {};
    const int error = collect(dataset, converted);
    if (error) {
        dicom_inherited_free(&converted);
        return error;
    }
    dicom_inherited_free(inherited);
    *inherited = converted;
    return 0;

} catch (const std::bad_alloc &) {
    return -ENOMEM;

} catch (...) {

    return -EIO;
}
