#include "dicom/deidentify/cleaned_value.hh"
#include "dicom/value/charset.hh"

#include <cstdio>
#include <cstring>

namespace
{

bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool
is_word_character(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

bool
is_number(const std::string &word)
{
    return std::all_of(word.begin(), word.end(), is_digit);
}

bool
is_ascii(const std::string &word)
{
    return std::all_of(word.begin(), word.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/* Returns at least one part. */
std::vector<std::string>
split_at(const std::string &text, const char *separators)
{
    std::vector<std::string> parts;
    for (size_t start = 0; start <= text.size();) {
        const size_t end = std::min(text.find_first_of(separators, start), text.size());
        parts.push_back(text.substr(start, end - start));
        start = end + 1;
    }
    return parts;
}

bool
is_listed(const struct deidentify &how, const std::string &word)
{
    return std::binary_search(how.words, how.words + how.word_count, word.c_str(),
                              [](const char *a, const char *b) { return strcmp(a, b) < 0; });
}

/* Days since 1 March 0000 of a date of the Gregorian calendar, and back (H. Hinnant, "chrono-compatible low-level date
 * algorithms"). */
int64_t
day_number(int64_t year, int64_t month, int64_t day)
{
    const int64_t y = month <= 2 ? year - 1 : year, m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
}

std::string
date_text(int64_t days)
{
    const int64_t era = days / 146097, of_era = days % 146097;
    const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;
    const int64_t month = m < 10 ? m + 3 : m - 9;
    char text[32];
    snprintf(text, sizeof text, "%04d%02d%02d", static_cast<int>(year + era * 400 + (month <= 2)),
             static_cast<int>(month), static_cast<int>(of_year - (153 * m + 2) / 5 + 1));
    return text;
}

/* Returns whether all characters are in the set, and their number in the limits. */
bool
has_form(const std::string &value, size_t least, size_t most, const char *characters)
{
    return value.size() >= least && value.size() <= most && value.find_first_not_of(characters) == std::string::npos;
}

/* Returns whether a date (YYYYMMDD, or YYYY.MM.DD of ACR-NEMA) has no more characters. */
bool
is_date(const std::string &value)
{
    return is_number(value) ? value.size() == 8 : value.size() == 10 && value[4] == '.' && value[7] == '.';
}

/* Returns whether a date and time is YYYY[MM[DD[HH[MM[SS[.F]]]]]] with an optional offset from UTC: no second date. */
bool
is_date_time(const std::string &value)
{
    const size_t zone = std::min(value.find_first_of("+-"), value.size());
    const size_t point = std::min(value.find('.'), zone);
    const std::string offset = value.substr(std::min(zone + 1, value.size()));
    const std::string fraction = value.substr(std::min(point + 1, zone), zone - std::min(point + 1, zone));
    return point >= 4 && point <= 14 && point % 2 == 0 && is_number(value.substr(0, point)) && is_number(fraction) &&
           fraction.size() <= 6 && is_number(offset) && offset.size() == (zone < value.size() ? 4 : 0);
}

bool
value_is_valid(DcmEVR vr, const std::string &value)
{
    static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _";
    switch (vr) {
    case EVR_DA:
        return has_form(value, 8, 10, "0123456789.") && is_date(value);
    case EVR_DT:
        return has_form(value, 4, 26, "0123456789.+-") && is_date_time(value);
    case EVR_TM:
        return has_form(value, 2, 16, "0123456789.:");
    case EVR_AS:
        return has_form(value, 4, 4, "0123456789DWMY") && is_number(value.substr(0, 3));
    case EVR_DS:
        return has_form(value, 1, DICOM_DS_SIZE, "0123456789+-.eE ");
    case EVR_IS:
        return has_form(value, 1, 13, "0123456789+- ");
    case EVR_CS:
        return has_form(value, 1, 16, capitals);
    case EVR_UI:
        return has_form(value, 1, 64, "0123456789.");
    default:
        return false;
    }
}

} // namespace

/* Words of a text in UTF-8: runs of ASCII letters and digits, in lower case, and of other characters as they are. */
static std::vector<std::string>
cleaned_words(const std::string &utf8)
{
    std::vector<std::string> words;
    std::string word;
    for (const char c : utf8 + ' ') {
        if (is_word_character(c)) {
            word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        } else if (!word.empty()) {
            words.push_back(word);
            word.clear();
        }
    }
    return words;
}

std::string
cleaned_text(const struct deidentify &how, const std::string &utf8)
{
    const std::vector<std::string> words = cleaned_words(utf8);
    size_t numbers = 0;
    for (const std::string &word : words)
        numbers += is_number(word) && !is_listed(how, word);
    std::string kept;
    size_t count = 0;
    for (const std::string &word : words) {
        const bool is_last_number = numbers == 1 && &word == &words.back() && is_number(word) && word.size() <= 3;
        if (!is_listed(how, word) && !is_last_number)
            continue;
        count++;
        if (is_ascii(word) && !is_number(word)) /* a part of a date; the character set of the rest is not known here */
            kept += (kept.empty() ? "" : " ") + word;
    }
    return count == words.size() ? utf8 : kept;
}

bool
cleaned_date(std::string &value, int32_t days)
{
    std::string digits = value;
    if (value.size() == 10 && value[4] == '.' && value[7] == '.') /* of ACR-NEMA */
        digits = value.substr(0, 4) + value.substr(5, 2) + value.substr(8);
    if (digits.size() < 8 || !is_number(digits.substr(0, 8)))
        return false;
    const int year = std::stoi(digits.substr(0, 4)), month = std::stoi(digits.substr(4, 2));
    const int day = std::stoi(digits.substr(6, 2));
    if (year < 100 || month < 1 || month > 12 || day < 1 || day > 31)
        return false;
    value = date_text(day_number(year, month, day) + days) + digits.substr(8);
    return true;
}

bool
cleaned_is_valid(DcmEVR vr, const std::string &values)
{
    for (size_t start = 0; start <= values.size();) {
        const size_t end = std::min(values.find('\\', start), values.size());
        const std::string value = header_trimmed(values.substr(start, end - start));
        if (!value.empty() && !value_is_valid(vr, value))
            return false;
        start = end + 1;
    }
    return true;
}

void
Identifiers::add_words(const std::string &utf8)
{
    for (const Folding folding : {Folding::Base, Folding::Spelled})
        for (const std::string &word : cleaned_words(charset_folded(utf8, folding)))
            if (word.size() >= 3)
                words_.insert(word);
}

/* Family and given name are also found without a separator, in both orders. A family name of two letters is a word of too
 * many other meanings for a value in capitals, such as SE. */
void
Identifiers::add_name(const std::string &utf8)
{
    add_words(utf8);
    for (const Folding folding : {Folding::Base, Folding::Spelled})
        for (const std::string &group : split_at(charset_folded(utf8, folding), "=\\")) {
            const std::vector<std::string> parts = split_at(group, "^");
            std::string family, given;
            for (const std::string &word : cleaned_words(parts[0]))
                family += word;
            for (const std::string &word : parts.size() > 1 ? cleaned_words(parts[1]) : std::vector<std::string>())
                given += word;
            if (family.size() == 2)
                short_.insert(family);
            if (!family.empty() && !given.empty() && family.size() + given.size() >= 4)
                words_.insert({family + given, given + family});
        }
}

void
Identifiers::add_identifier(const std::string &utf8)
{
    std::string joined;
    for (const std::string &word : cleaned_words(charset_folded(utf8, Folding::Base)))
        joined += word;
    if (joined.size() >= 4)
        words_.insert(joined);
    add_words(utf8);
}

void
Identifiers::add_number(const std::string &utf8)
{
    if (utf8.size() >= 5 && utf8.find_first_of("0123456789") != std::string::npos)
        add_identifier(utf8);
}

/* Adds the orders in which people write a date, with and without zeros, and with English months. */
void
Identifiers::add_birth_date(const std::string &date)
{
    static const char *const months[] = {"january", "february", "march",     "april",   "may",      "june",
                                         "july",    "august",   "september", "october", "november", "december"};
    add_identifier(date);
    const std::string digits = header_trimmed(date);
    const int number = digits.size() == 8 && is_number(digits) ? std::stoi(digits.substr(4, 2)) : 0;
    if (number < 1 || number > 12)
        return;
    const std::string year = digits.substr(0, 4), name = months[number - 1];
    const std::string month = digits.substr(4, 2), day = digits.substr(6);
    words_.insert({day + month + year, month + day + year});
    for (const std::string &y : {year, year.substr(2)})
        for (const std::string &m : {month, std::to_string(number), name, name.substr(0, 3)})
            for (const std::string &d : {day, std::to_string(std::stoi(day))})
                short_.insert({d + m + y, m + d + y, y + m + d});
}

/* Long ones are also found within words and across separators. */
bool
Identifiers::occur_in_words(const std::vector<std::string> &words, bool is_prose) const
{
    std::string joined;
    for (size_t i = 0; i < words.size(); i++) {
        std::string adjacent;
        for (size_t j = i; j < std::min(i + 3, words.size()); j++) {
            adjacent += words[j];
            if (words_.count(adjacent) || (is_prose && short_.count(adjacent)))
                return true;
        }
        joined += words[i];
    }
    return std::any_of(words_.begin(), words_.end(), [&joined](const std::string &word) {
        return word.size() >= 6 && joined.find(word) != std::string::npos;
    });
}

bool
Identifiers::occur_in(const std::string &utf8, bool is_prose) const
{
    return !words_.empty() && (occur_in_words(cleaned_words(charset_folded(utf8, Folding::Base)), is_prose) ||
                               occur_in_words(cleaned_words(charset_folded(utf8, Folding::Spelled)), is_prose));
}

bool
Identifiers::occur_in_numbers(const std::string &values) const
{
    const std::vector<std::string> words = cleaned_words(values);
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string &word) { return word.size() >= 6 && words_.count(word); });
}
