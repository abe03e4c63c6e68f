/*
 * groups.hh - finds an attribute in the functional groups of an enhanced frame (PS3.3 C.7.6.16),
 * whatever its group; private to dicom/read/.
 */
#ifndef NOCTULE_DICOM_READ_IMAGE_GROUPS_HH
#define NOCTULE_DICOM_READ_IMAGE_GROUPS_HH

#include "dicom/read/header.hh"

#include <map>

/* Returns the elements of a file that Groups needs: the two sequences, the groups of CT, MR and
 * PET images, and other names in enhanced images of the attributes in `asked`. */
std::vector<uint32_t> groups_wanted(const std::vector<uint32_t> &asked);

/* An attribute found: one element from each item of a group. */
struct GroupAttribute {
    std::vector<DcmElement *> elements; /* empty if not found */
    std::string where;                  /* "EffectiveEchoTime in MREchoSequence of frame 3" */
};

/* Attributes of the groups in one item of those two sequences. The item must outlive it. The
 * cost depends on the size of the item, not on the number of look-ups. */
class Groups
{
  public:
    Groups() = default;                              /* without item: empty */
    Groups(DcmItem &item, const std::string &whose); /* "frame 3" */

    GroupAttribute find(const DcmTagKey &tag) const;

  private:
    struct Found {
        DcmTagKey sequence;
        std::vector<DcmElement *> elements;
    };

    std::string whose_;
    std::map<uint32_t, Found> found_;
};

/* Finds the attribute under any of its names: first in the frame's own groups, then in the
 * shared ones. */
GroupAttribute groups_find(const Groups &own, const Groups &shared, const DcmTagKey &tag);

#endif
