/*
 * sr_walk.hh - the content tree of a report as dcmsr read it, item by item in document order, each
 * compared with what has to come next; private to dicom/, C++.
 *
 * The first difference is thrown (read_back.hh), with the place that it is in.
 */
#ifndef NOCTULE_DICOM_SR_WALK_H
#define NOCTULE_DICOM_SR_WALK_H

#include "dicom/write/read_back.hh"

#include "dcmtk/dcmsr/dsrdoc.h"

#include <set>
#include <string>
#include <vector>

namespace read_back
{

/* A code as it is expected; made of the request's texts or of DCMTK's tables. */
struct Code {
    std::string value, scheme, meaning;

    Code(const DSRBasicCodedEntry &entry);
    Code(std::string its_value, std::string its_scheme, std::string its_meaning);
};

/* An object that an item refers to. */
struct Reference {
    std::string class_uid, instance_uid;
    uint16_t segment;            /* 0: none in particular */
    std::vector<int32_t> frames; /* empty: none in particular */
};

class Walk
{
  public:
    /* The cursor stands on the root. */
    explicit Walk(DSRDocumentTree &tree);

    /* What is being read, for messages. */
    std::string where = "the report";

    void title(const Code &expected);

    /* To the children of the item that was read last, if any, and back, when there is none left. */
    void down();
    void up();

    /* The next item, and its children. */
    void container(const Code &concept);

    /* The next item, which has no children where down() does not follow. */
    void code(DSRTypes::E_RelationshipType relation, const Code &concept, const Code &expected);
    void number(DSRTypes::E_RelationshipType relation, const Code &concept, double expected,
                const Code &unit);
    void text(DSRTypes::E_RelationshipType relation, const Code &concept,
              const std::string &expected);
    void uid(DSRTypes::E_RelationshipType relation, const Code &concept,
             const std::string &expected);
    /* concept NULL: it has no name. */
    void image(const Code *concept, const Reference &expected);
    void composite(const Code &concept, const Reference &expected);

    /* Of all codes so far. */
    const std::set<std::string> &schemes() const;

  private:
    DSRContentItem &next(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type,
                         const Code *concept);
    void string(DSRTypes::E_RelationshipType relation, DSRTypes::E_ValueType type,
                const Code &concept, const std::string &expected);
    void end_item();
    void expect(const DSRCodedEntryValue &code, const Code &expected, const char *what);
    void expect(const DSRNumericMeasurementValue &value, const char *name, double expected) const;

    DSRDocumentTree &tree_;
    std::set<std::string> schemes_;
    bool fresh_ = false; /* the cursor stands on an item that has not been looked at */
    bool empty_ = false; /* it stands above the children that there are none of */
    bool leaf_ = false;  /* it stands on an item whose children have not been looked at */
};

} // namespace read_back

#endif
