/*
 * inherit.hh - collects the attributes that a result inherits, and checks them; private to dicom/,
 * C++.
 */
#ifndef NOCTULE_DICOM_READ_INHERIT_HH
#define NOCTULE_DICOM_READ_INHERIT_HH

#include "dicom/read/header.hh"

#include <cstdint>
#include <string>
#include <vector>

/* Collects elements in the form of dicom_inherit. */
class InheritedElements
{
  public:
    bool add(DcmElement &element); /* returns false if it cannot be encoded */
    struct dicom_inherited hand_over() const;

  private:
    std::vector<uint8_t> bytes_;
    std::vector<struct dicom_element> elements_;
};

/*
 * Removes values that would make the result invalid: values that violate their VR or its
 * multiplicity, items that lack attributes required by their macro, sequences without items, and
 * attributes without their required companions. In names, replaces illegal characters by '?'.
 * Declares text of an unknown set as UTF-8 if it is valid UTF-8. Returns the names of the removed
 * or changed attributes, for messages, without values; "" if none changed.
 */
std::string inherit_repair(DcmDataset &dataset);

#endif
