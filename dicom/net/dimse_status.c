/*
 * dimse_status.c - the only place that decides the outcome of a failed delivery.
 *
 * Statuses: PS3.7 Annex C and PS3.4 Table B.2-1. Retries if in doubt: an extra attempt costs an
 * association, a lost delivery costs a result.
 */
#include "dicom/net/scu.h"

/* Returns whether the peer stored the instance or had it already. */
static bool
is_accepted(int32_t status)
{
    switch (status) {
    case 0x0000:
    case 0x0001: /* warning, general */
    case 0x0107: /* attribute list error, a warning */
    case 0x0111: /* duplicate SOP instance: the peer has it */
    case 0x0116: /* attribute value out of range, a warning */
        return true;
    default:
        return (status & 0xF000) == 0xB000;
    }
}

/* Returns whether a retry would get the same status: the fault is in the object or in the sender. */
static bool
is_final(int32_t status)
{
    switch (status) {
    case 0x0105: /* no such attribute */
    case 0x0106: /* invalid attribute value */
    case 0x0112: /* no such SOP instance */
    case 0x0115: /* invalid argument value */
    case 0x0117: /* invalid SOP instance */
    case 0x0118: /* no such SOP class */
    case 0x0119: /* class-instance conflict */
    case 0x0120: /* missing attribute */
    case 0x0121: /* missing attribute value */
    case 0x0122: /* SOP class not supported */
    case 0x0123: /* no such action */
    case 0x0124: /* not authorised */
    case 0x0211: /* unrecognised operation */
    case 0x0212: /* mistyped argument */
        return true;
    default:
        return (status & 0xFF00) == 0xA900 || (status & 0xF000) == 0xC000;
    }
}

enum dicom_outcome
dicom_outcome_of(enum code code, const struct dicom_answer *answer)
{
    /* The standard calls a rejection permanent (PS3.8 9.3.4). An unknown AE title is an exception, because a site may
     * still have to add it. */
    const bool by_title = answer->reject_source == 1 && (answer->reject_reason == 3 || answer->reject_reason == 7);
    if ((code != CODE_NONE && !code_passing(code)) || (answer->reject_result == 1 && !by_title))
        return DICOM_PERMANENT;
    if (answer->status >= 0 && is_final(answer->status))
        return DICOM_PERMANENT;
    if (code == CODE_NONE && answer->status >= 0 && is_accepted(answer->status))
        return DICOM_SENT;
    return DICOM_TRANSIENT;
}
