/* dataset_cleaner.hh - cleans the elements of a data set, at each depth; private to dicom/, C++. */
#ifndef NOCTULE_DICOM_DEIDENTIFY_DATASET_CLEANER_HH
#define NOCTULE_DICOM_DEIDENTIFY_DATASET_CLEANER_HH

#include "dicom/deidentify/cleaned_value.hh"
#include "dicom/value/charset.hh"

#include <map>

/* A rule of table E.1-1 (attributes.def). */
enum class Profile { X, Z, D, U, ZD, XZ, XD, XZD, XZU };

struct ProfileRow {
    uint32_t tag;
    Profile action;
    const char *options;
};

class DatasetCleaner
{
  public:
    explicit DatasetCleaner(const struct deidentify &how) : how_(how)
    {
    }

    /* Throws std::bad_alloc. */
    void run(DcmDataset &dataset);

  private:
    enum class Act { Remove, Empty, Dummy, MapUid, Shift, Words, Keep };

    std::string decoded(DcmElement &element, const std::string &set);
    void collect(DcmItem &item, const std::string &inherited_set);
    void choose_patient(DcmItem &dataset);

    void clean_item(DcmItem &item, const std::string &inherited_set, int depth);
    bool keeps_private(DcmItem &item, DcmElement &element, std::set<uint32_t> &blocks) const;
    Act act_of_option(const ProfileRow &row, bool &decided) const;
    Act act_of(const DcmElement &element, const ProfileRow *row) const;
    Act act_without_rule(const DcmElement &element, int depth) const;
    void clean_element(DcmItem &item, DcmElement &element, const std::string &set, int depth);
    void clean_sequence(DcmElement &element, Act act, const std::string &set, int depth);

    void clean_value(DcmItem &item, DcmElement &element, const std::string &set, bool by_words, const ProfileRow *row);
    void shift(DcmItem &item, DcmElement &element, const ProfileRow *row);
    void map_uids(DcmItem &item, DcmElement &element, const ProfileRow *row) const;
    void put_dummy(DcmItem &item, DcmElement &element) const;

    void put_identity(DcmItem &dataset) const;
    void put_method(DcmItem &dataset) const;

    bool keeps(unsigned option) const
    {
        return (how_.keep & option) != 0;
    }

    const struct deidentify &how_;
    std::map<std::string, Charset> sets_;
    Identifiers identifiers_;
    std::string pseudonym_;
    int32_t days_ = 0;
    bool is_report_ = false;
};

#endif
