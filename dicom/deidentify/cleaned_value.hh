/*
 * cleaned_value.hh - values of a de-identified copy; private to dicom/, C++.
 */
#ifndef NOCTULE_DICOM_DEIDENTIFY_CLEANED_VALUE_HH
#define NOCTULE_DICOM_DEIDENTIFY_CLEANED_VALUE_HH

#include "dicom/deidentify/deidentify.h"
#include "dicom/read/header.hh"

#include <set>

/* The value that stands for one that may not stay and may not be empty. */
#define CLEANED_DUMMY "REMOVED"

/* Returns the text if all of its words are on the list, where a number of up to three digits may end it. Otherwise, returns
 * those words that are on the list, without numbers and in ASCII only. */
std::string cleaned_text(const struct deidentify &how, const std::string &utf8);

/* Moves a date (DA) or date and time (DT) by this number of days. Returns false if it is none. */
bool cleaned_date(std::string &value, int32_t days);

/* Returns whether each value is in the syntax of its VR (PS3.5 6.2): DA, DT, TM, AS, DS, IS, CS and UI. */
bool cleaned_is_valid(DcmEVR vr, const std::string &values);

/* Texts that identify the persons of an object, wherever they stand. Case, accents and separators do not matter. */
class Identifiers
{
  public:
    void add_name(const std::string &utf8);
    /* Adds an identifier, and its words. */
    void add_identifier(const std::string &utf8);
    /* Adds a number if it has at least five characters, one of them a digit. */
    void add_number(const std::string &utf8);
    void add_birth_date(const std::string &date);

    /* `is_prose`: a text that a person may write; then also short names and short forms of the birth date are searched. */
    bool occur_in(const std::string &utf8, bool is_prose) const;
    /* Returns whether one of several whole numbers is an identifier. */
    bool occur_in_numbers(const std::string &values) const;

  private:
    void add_words(const std::string &utf8);
    bool occur_in_words(const std::vector<std::string> &words, bool is_prose) const;

    std::set<std::string> words_;
    std::set<std::string> short_; /* whole words, or up to three adjacent ones */
};

#endif
