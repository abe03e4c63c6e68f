/*
 * groups.hh - an attribute in the functional groups of an enhanced frame (PS3.3 C.7.6.16), wherever it
 * stands in them; private to dicom/read/.
 */
#ifndef NOCTULE_DICOM_GROUPS_H
#define NOCTULE_DICOM_GROUPS_H

#include "dicom/read/header.hh"

#include <map>

/* The two sequences that hold them, the groups of CT, MR and PET images, and what enhanced images
 * call an attribute of `asked` otherwise: all that is to be kept of a file for Groups. */
std::vector<uint32_t> groups_wanted(const std::vector<uint32_t> &asked);

/* An attribute as it was found: one element of each item of a group. */
struct GroupAttribute {
    std::vector<DcmElement *> elements; /* none: it was not found */
    std::string where;                  /* "EffectiveEchoTime in MREchoSequence of frame 3" */
};

/* The attributes of the groups of one item of those two sequences, which outlives it. What it costs grows
 * with what the item holds, not with how often it is asked. */
class Groups
{
  public:
    Groups() = default;                              /* of no item: nothing is there */
    Groups(DcmItem &item, const std::string &whose); /* "frame 3" */

    GroupAttribute find(const DcmTagKey &tag) const;

  private:
    struct Found {
        DcmTagKey sequence;
        std::vector<DcmElement *> elements;
    };

    void add(const DcmTagKey &sequence, DcmItem &group);

    std::string whose_;
    std::map<uint32_t, Found> found_;
};

/* By the names that it may have: the frame's own come first, then what all frames share. */
GroupAttribute groups_find(const Groups &own, const Groups &shared, const DcmTagKey &tag);

#endif
