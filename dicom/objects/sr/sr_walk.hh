/*
 * sr_walk.hh - walks the content tree of a report that dcmsr has read, in document order, and
 * compares each item with the expected one; private to dicom/, C++.
 *
 * The first difference is thrown (read_back.hh), with its place.
 */
#ifndef NOCTULE_DICOM_OBJECTS_SR_SR_WALK_HH
#define NOCTULE_DICOM_OBJECTS_SR_SR_WALK_HH

#include "dicom/write/read_back.hh"

#include "dcmtk/dcmsr/dsrdoc.h"

#include <set>
#include <string>
#include <vector>

namespace read_back
{

/* An expected code, made from the request's texts or from DCMTK's tables. */
struct Code {
    std::string value, scheme, meaning;

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
    /* Starts with the cursor on the root. */
    explicit Walk(DSRDocumentTree &tree);

    /* Place in the report, for messages. */
    std::string where = "the report";

    void title(const Code &expected);

    /* Move to the children of the item read last, if any, and back when all have been read. */
    void down();
    void up();

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
    DSRContentItem &next(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code *concept);
    void string(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type, const Code &concept,
                const std::string &expected);
    void end_item();
    void expect(const DSRCodedEntryValue &code, const Code &expected, const char *what);
    void expect(const DSRNumericMeasurementValue &value, const char *name, double expected) const;

    DSRDocumentTree &tree_;
    std::set<std::string> schemes_;
    bool fresh_ = false; /* the item at the cursor has not been read */
    bool empty_ = false; /* the cursor is above an empty list of children */
    bool leaf_ = false;  /* the children of the item at the cursor have not been read */
};

} // namespace read_back

#endif
