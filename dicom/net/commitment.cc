#include "dicom/net/commitment.hh"

#include "dicom/read/header.hh"

/* PS3.3 C.14.1.1: "processing failure", for a failed item that gives no reason. */
static constexpr uint16_t reason_unknown = 0x0110;

static bool
read_reference(DcmItem &item, bool failed, struct dicom_commitment_reference &reference)
{
    header_copy(reference.sop_class_uid, header_text(item, DCM_ReferencedSOPClassUID));
    header_copy(reference.sop_instance_uid, header_text(item, DCM_ReferencedSOPInstanceUID));
    int32_t reason = 0;
    if (failed &&
        (!header_integer(item, DCM_FailureReason, &reason) || reason <= 0 || reason > UINT16_MAX))
        reason = reason_unknown;
    reference.failure_reason = static_cast<uint16_t>(reason);
    return reference.sop_instance_uid[0] != '\0';
}

static bool
read_sequence(DcmDataset &dataset, const DcmTagKey &tag, bool failed,
              std::vector<struct dicom_commitment_reference> &references)
{
    DcmSequenceOfItems *sequence = nullptr;
    if (dataset.findAndGetSequence(tag, sequence).bad() || !sequence)
        return true;
    for (unsigned long i = 0; i < sequence->card(); i++) {
        struct dicom_commitment_reference reference = {};
        if (!read_reference(*sequence->getItem(i), failed, reference))
            return false;
        references.push_back(reference);
    }
    return true;
}

bool
commitment_read(DcmDataset &dataset, struct commitment &commitment)
{
    commitment.references.clear();
    header_copy(commitment.view.transaction_uid, header_text(dataset, DCM_TransactionUID));
    const bool whole =
        read_sequence(dataset, DCM_ReferencedSOPSequence, false, commitment.references) &&
        read_sequence(dataset, DCM_FailedSOPSequence, true, commitment.references);
    commitment.view.count = commitment.references.size();
    commitment.view.references = commitment.references.data();
    return whole && commitment.view.transaction_uid[0] != '\0';
}
