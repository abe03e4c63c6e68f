/*
 * fuzz_commitment.cc - any bytes as the data set of a storage commitment report. The first byte selects the transfer
 * syntax. The report is rejected, or read as commitment.hh specifies, in time linear in its size.
 */
#include "dicom/net/commitment.hh"

#include "dicom/net/command.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

namespace
{

const char *const syntaxes[] = {"1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2"};

} // namespace

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    struct commitment commitment;
    const bool read = commitment_read(bytes + 1, size - 1, syntaxes[bytes[0] % 3], commitment);
    must(commitment.view.count == commitment.references.size());
    must(commitment.view.references == commitment.references.data());
    must(commitment.view.count <= size / 8); /* each takes at least an item header in the input */
    if (!read)
        return 0;
    must(command_uid_is_valid(commitment.view.transaction_uid));
    for (const struct dicom_commitment_reference &reference : commitment.references) {
        must(command_uid_is_valid(reference.sop_instance_uid));
        must(!reference.sop_class_uid[0] || command_uid_is_valid(reference.sop_class_uid));
    }
    return 0;
}
