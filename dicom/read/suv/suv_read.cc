/* suv_read.cc - reads the attributes that SUV depends on; see suv.h. */
#include "dicom/read/suv/suv.h"

#include "dicom/read/image/source.hh"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>

namespace
{

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/* Ascending; also in items. */
constexpr uint32_t suv_tags[] = {
    0x00080021, 0x00080022, 0x0008002A, 0x00080031, 0x00080032, 0x00080100, 0x00080119, 0x00080201,
    0x00100040, 0x00101020, 0x00101030, 0x00181072, 0x00181074, 0x00181075, 0x00181078, 0x00189701,
    0x00189758, 0x00189759, 0x00280051, 0x004008EA, 0x00409096, 0x00409224, 0x00409225, 0x00540016,
    0x00541001, 0x00541006, 0x00541102, 0x52009229, 0x52009230,
};

constexpr uint32_t suv_private_tags[] = {0x0009000D, 0x70530000, 0x70530009};

/* QIBA: "GE private scan Date and Time (0x0009,0x100d, GEMS_PETD_01)" */
constexpr struct private_attribute ge_scan_time {
    0x0009, 0x0D, "GEMS_PETD_01", EVR_DT
};

constexpr struct private_attribute philips_suv_factor {
    0x7053, 0x00, "Philips PET Private Group", EVR_IS
};

constexpr struct private_attribute philips_activity_factor {
    0x7053, 0x09, "Philips PET Private Group", EVR_IS
};

double
suv_positive(bool given, double value)
{
    return given && std::isfinite(value) && value > 0 ? value : nan_value;
}

double
suv_number(const Header &header, const DcmTagKey &tag)
{
    double value = 0;
    const bool given = header_number(header, tag, &value);
    return suv_positive(given, value);
}

double
suv_private(const Header &header, const struct private_attribute &attribute)
{
    double value = 0;
    const bool given = header_private_number(header, attribute, &value);
    return suv_positive(given, value);
}

/* Reads "HHMMSS.FFFFFF"; later parts may be absent. Returns NAN if it is not a time. */
double
suv_clock_seconds(const std::string &text)
{
    const size_t digits = std::min(text.find('.'), text.size());
    double parts[3] = {0, 0, 0};
    if (digits < 2 || digits > 6 || digits % 2 || text.find_first_not_of("0123456789.") != std::string::npos)
        return nan_value;
    for (size_t i = 0; i < digits / 2; i++)
        parts[i] = (text[2 * i] - '0') * 10 + (text[2 * i + 1] - '0');
    double fraction = 0;
    if (digits < text.size() && text.size() > digits + 1 && !header_parse_number("0" + text.substr(digits), &fraction))
        return nan_value;
    if (parts[0] > 23 || parts[1] > 59 || parts[2] > 60)
        return nan_value;
    return parts[0] * 3600 + parts[1] * 60 + parts[2] + fraction;
}

/* Returns the seconds since 1970 of a date and a time of day. Both are required. */
double
suv_moment(const std::string &date, const std::string &time)
{
    if (date.size() != 8 || date.find_first_not_of("0123456789") != std::string::npos || time.empty())
        return nan_value;
    struct tm day = {};
    day.tm_year = std::stoi(date.substr(0, 4)) - 1900;
    day.tm_mon = std::stoi(date.substr(4, 2)) - 1;
    day.tm_mday = std::stoi(date.substr(6));
    if (day.tm_year < 0 || day.tm_mon < 0 || day.tm_mon > 11 || day.tm_mday < 1 || day.tm_mday > 31)
        return nan_value;
    return static_cast<double>(timegm(&day)) + suv_clock_seconds(time);
}

/* Returns the seconds of "+0130", or NAN. */
double
suv_offset(const std::string &text)
{
    if (text.size() != 5 || (text[0] != '+' && text[0] != '-') ||
        text.find_first_not_of("0123456789", 1) != std::string::npos)
        return nan_value;
    const double seconds = std::stoi(text.substr(1, 2)) * 3600 + std::stoi(text.substr(3)) * 60;
    return text[0] == '-' ? -seconds : seconds;
}

/* Returns the local time of a DT. An offset counts if the file states its own, Timezone Offset From UTC. */
double
suv_date_time(const std::string &text, double local_offset)
{
    const size_t end = std::min(text.find_first_of("+-"), text.size());
    const double seconds = end < 10 ? nan_value : suv_moment(text.substr(0, 8), text.substr(8, end - 8));
    const double offset = suv_offset(text.substr(end));
    return std::isnan(offset) || std::isnan(local_offset) ? seconds : seconds + local_offset - offset;
}

double
suv_separate(const Header &dataset, const DcmTagKey &date, const DcmTagKey &time)
{
    return suv_moment(header_text(dataset, date), header_text(dataset, time));
}

void
suv_read_person(const Header &dataset, struct suv_header &header)
{
    const std::string sex = header_text(dataset, DCM_PatientSex);
    header.weight = suv_number(dataset, DCM_PatientWeight);
    header.size = suv_number(dataset, DCM_PatientSize);
    if (sex == "M" || sex == "F")
        header.sex = sex[0];
}

void
suv_read_dose(const Header &dataset, double local_offset, struct suv_header &header)
{
    const Header dose = dataset.item(DCM_RadiopharmaceuticalInformationSequence);
    header.doses = static_cast<int32_t>(
        header_children<DcmItem>(dataset.sequence(DCM_RadiopharmaceuticalInformationSequence)).size());
    header.dose = suv_number(dose, DCM_RadionuclideTotalDose);
    header.half_life = suv_number(dose, DCM_RadionuclideHalfLife);
    header.start = suv_date_time(header_text(dose, DCM_RadiopharmaceuticalStartDateTime), local_offset);
    header.start_of_day = suv_clock_seconds(header_text(dose, DCM_RadiopharmaceuticalStartTime));
}

void
suv_read_times(const Header &dataset, double local_offset, struct suv_header &header)
{
    header.series = suv_separate(dataset, DCM_SeriesDate, DCM_SeriesTime);
    header.acquired = suv_date_time(header_text(dataset, DCM_AcquisitionDateTime), local_offset);
    if (std::isnan(header.acquired))
        header.acquired = suv_separate(dataset, DCM_AcquisitionDate, DCM_AcquisitionTime);
    header.reference = suv_date_time(header_text(dataset, DCM_DecayCorrectionDateTime), local_offset);
    DcmElement *scan = dataset.find(header_private(dataset, ge_scan_time));
    header.ge_scan = scan ? suv_date_time(header_trimmed(header_whole_text(*scan)), local_offset) : nan_value;
}

/* Reads Units, SUV Type and the corrections of a classic image. */
void
suv_read_classic(const Header &dataset, struct suv_header &header)
{
    static const struct {
        const char *term;
        enum suv_unit unit;
    } types[] = {
        {"", SUV_BW},     {"BW", SUV_BW},  {"LBM", SUV_LBM_120}, {"LBMJAMES128", SUV_LBM}, {"LBMJANMA", SUV_JANMA},
        {"BSA", SUV_BSA}, {"IBW", SUV_IBW}};

    const std::string units = header_text(dataset, DCM_Units), decay = header_text(dataset, DCM_DecayCorrection);
    const std::string type = header_text(dataset, DCM_SUVType);
    const std::vector<std::string> corrected = header_texts(dataset, DCM_CorrectedImage);
    header_copy(header.units, units);
    if (units == "BQML")
        header.values = SUV_VALUES_ACTIVITY;
    else if (units == "CNTS")
        header.values = SUV_VALUES_COUNTS;
    else if (units == "CM2ML" && (type.empty() || type == "BSA"))
        header.stored = SUV_BSA;
    for (const auto &each : types)
        if (units == "GML" && type == each.term && each.unit != SUV_BSA)
            header.stored = each.unit;
    if (header.stored != SUV_NO_UNIT)
        header.values = SUV_VALUES_SUV;
    header.decay = decay == "START"   ? SUV_DECAY_START
                   : decay == "ADMIN" ? SUV_DECAY_ADMIN
                   : decay == "NONE"  ? SUV_DECAY_NONE
                                      : SUV_DECAY_UNKNOWN;
    header.attenuated = std::find(corrected.begin(), corrected.end(), "ATTN") != corrected.end();
    header.decayed = std::find(corrected.begin(), corrected.end(), "DECY") != corrected.end();
    header.philips_suv = suv_private(dataset, philips_suv_factor);
    header.philips_activity = suv_private(dataset, philips_activity_factor);
}

/* Returns the unit of a mapping in the form of CID 85 ("g/ml{SUVbw}"); earlier editions have the annotation first. */
std::string
suv_mapping_unit(DcmItem &item)
{
    const Header code = Header(item).item(DCM_MeasurementUnitsCodeSequence);
    std::string text = header_text(code, DCM_CodeValue);
    if (text.empty())
        text = header_text(code, DCM_LongCodeValue);
    const size_t end = text.find('}');
    return !text.empty() && text[0] == '{' && end != std::string::npos ? text.substr(end + 1) + text.substr(0, end + 1)
                                                                       : text;
}

/* Reads a mapping to SUV, or to activity if there is no other. */
void
suv_read_mapping(DcmItem &item, struct suv_header &header)
{
    const std::string unit = suv_mapping_unit(item);
    enum suv_unit stored = SUV_NO_UNIT;
    for (int i = 0; i < SUV_UNIT_COUNT; i++)
        if (unit == suv_unit_rows[i].ucum)
            stored = static_cast<enum suv_unit>(i);
    if (unit == "g/ml{SUVlbm}")
        stored = SUV_LBM_120;
    const bool is_activity = unit == "Bq/ml";
    double slope, intercept;
    const Header mapping(item);
    if (header.values == SUV_VALUES_SUV || (stored == SUV_NO_UNIT && !is_activity) ||
        !header_number(mapping, DCM_RealWorldValueSlope, &slope) ||
        !header_number(mapping, DCM_RealWorldValueIntercept, &intercept) || !std::isfinite(slope) ||
        !std::isfinite(intercept) || slope == 0)
        return;
    header.values = is_activity ? SUV_VALUES_ACTIVITY : SUV_VALUES_SUV;
    header.stored = stored;
    header.slope = slope;
    header.intercept = intercept;
    header.mapped = true;
    header_copy(header.units, unit);
}

/* Reads the corrections of an enhanced image, and the mapping of its current frame. */
void
suv_read_enhanced(const Source &source, struct suv_header &header)
{
    header.attenuated = header_text(source.dataset, DCM_AttenuationCorrected) == "YES";
    header.decayed = header_text(source.dataset, DCM_DecayCorrected) == "YES";
    header.decay = SUV_DECAY_TIME;
    DcmSequenceOfItems *mappings = source.frame.sequence(DCM_RealWorldValueMappingSequence);
    if (!mappings)
        mappings = source.shared.sequence(DCM_RealWorldValueMappingSequence);
    for (DcmItem *item : header_children<DcmItem>(mappings))
        suv_read_mapping(*item, header);
}

void
suv_read_frame(const Source &source, struct suv_header &header)
{
    header = {};
    header.stored = SUV_NO_UNIT;
    header.philips_suv = header.philips_activity = header.slope = header.intercept = nan_value;
    const double offset = suv_offset(header_text(source.dataset, DCM_TimezoneOffsetFromUTC));
    suv_read_person(source.dataset, header);
    suv_read_dose(source.dataset, offset, header);
    suv_read_times(source.dataset, offset, header);
    if (source.has_groups)
        suv_read_enhanced(source, header);
    else
        suv_read_classic(source.dataset, header);
}

int
suv_read_file(const struct dicom_instance &instance, struct suv_header *headers, struct error *error)
{
    struct scan_wanted wanted = scan_wanted_of(suv_tags, std::size(suv_tags), LIMIT_TEXT_BYTES);
    wanted.nested = true;
    wanted.private_tags = suv_private_tags;
    wanted.private_count = std::size(suv_private_tags);
    wanted.max_private_bytes = LIMIT_TEXT_BYTES;
    const HeaderTurn turn;
    HeaderFile file;
    const int rc = file.read(instance.path, wanted, error);
    if (rc)
        return rc;
    const Header whole(file.dataset);
    Source source(whole, file.scan);
    for (int32_t i = 0; i < instance.frame_count; i++) {
        source.advance();
        suv_read_frame(source, headers[i]);
        if (const int late = scan_check_time(&file.scan, instance.path, error))
            return late;
    }
    return 0;
}

} // namespace

int
suv_read(const struct dicom_instance *instance, struct suv_header *headers, struct error *error)
{
    return header_guard(instance->path, error, [&] { return suv_read_file(*instance, headers, error); });
}
