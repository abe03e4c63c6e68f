/*
 * sr_walk.hh - reads the content tree of a report as bytes, in document order, and compares each element of each item
 * with the expected one; private to dicom/, C++.
 *
 * An item has exactly the elements of its type of value, in Explicit VR Little Endian, with lengths. Another element, VR,
 * length or padding is a difference, too. The first difference is thrown (read_back.hh), with its place.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_WALK_HH
#define NOCTULE_DICOM_OBJECTS_SR_SR_WALK_HH

#include "dicom/write/read_back.hh"
#include "dicom/write/written_file.hh"

#include "dcmtk/dcmsr/dsrcodvl.h"

#include <set>
#include <string>
#include <vector>

namespace read_back
{

/* An expected code, made from the request's texts or from DCMTK's tables. */
struct Code {
    std::string value, scheme, meaning;
    bool is_long; /* Long Code Value (0008,0119) */

    Code(const DSRBasicCodedEntry &entry);
    Code(std::string its_value, std::string its_scheme, std::string its_meaning);
};

/* An object to which an item refers. */
struct Reference {
    std::string class_uid, instance_uid;
    uint16_t segment;            /* 0 if it is not a reference to a segment */
    std::vector<int32_t> frames; /* empty for all frames */
};

class Walk
{
  public:
    /* Starts with the children of the root. */
    explicit Walk(const char *path);

    /* Place in the report, for messages. */
    std::string where = "the report";

    /* Move to the children of the item read last, if any, and back when all have been read. */
    void down();
    void up();

    /* Checks that all items have been read, and that nothing follows. */
    void finish();

    /* Checks the next item and moves to its children. */
    void container(const Code &concept);

    /* Check the next item. It must have no children, unless down() follows. */
    void code(DSRTypes::E_RelationshipType relation, const Code &concept, const Code &expected);
    void number(DSRTypes::E_RelationshipType relation, const Code &concept, double expected, const Code &unit);
    void text(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected);
    void path(const Code &concept, const double (&expected)[2][3], const std::string &frame_of_reference);
    void uid(DSRTypes::E_RelationshipType relation, const Code &concept, const std::string &expected);
    /* `concept` is NULL for an item without name. */
    void image(const Code *concept, const Reference &expected);
    void composite(const Code *concept, const Reference &expected);

    /* Returns the schemes of all codes read so far. */
    const std::set<std::string> &schemes() const;

  private:
    void begin_item(const char *name);
    void end_item();
    void head(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code *concept);
    void reference(DSRTypes::E_ValueType type, const Code *concept, const Reference &expected);
    void refer(const Reference &expected);

    void take(void *destination, size_t size);
    /* Reads the header of an element, which must be this one. Returns the length of its value. */
    uint32_t element(const DcmTagKey &tag, const char *vr);
    /* Opens a sequence or an item. */
    void open(const DcmTagKey &tag);
    void close();
    void open_only_item(const DcmTagKey &tag);
    void close_only_item();
    std::string value(const DcmTagKey &tag, const char *vr);
    void expect(const DcmTagKey &tag, const char *vr, const std::string &expected, const char *what);
    void expect(const DcmTagKey &tag, const Code &expected, const char *what);

    WrittenFile file_;
    std::vector<uint32_t> left_; /* bytes not yet read of each open sequence and item */
    std::string name_;           /* of the item, for messages */
    std::set<std::string> schemes_;
    bool leaf_ = false; /* an item is open, and its children have not been read */
};

} // namespace read_back

#endif
