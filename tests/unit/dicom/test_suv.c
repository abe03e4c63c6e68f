/* SUV: factors from headers, of vendors' files and of cases computed by hand. */
#include "tests/unit/dicom/peek_sample.h"

#include "dicom/read/suv/suv.h"

#include <errno.h>
#include <math.h>

#define DAY    86400.0
#define MIDDAY (20000 * DAY + DAY / 2) /* a time of the scan, seconds since 1970 */
#define HALF   6600.0                  /* half-life, s */

/* A man of 70 kg and 1.75 m. Half of 350 MBq is left. */
static struct suv_header
sound_header(void)
{
    return (struct suv_header){.values = SUV_VALUES_ACTIVITY,
                               .stored = SUV_NO_UNIT,
                               .decay = SUV_DECAY_START,
                               .attenuated = true,
                               .decayed = true,
                               .sex = 'M',
                               .doses = 1,
                               .units = "BQML",
                               .weight = 70,
                               .size = 1.75,
                               .dose = 350e6,
                               .half_life = HALF,
                               .philips_suv = NAN,
                               .philips_activity = NAN,
                               .slope = NAN,
                               .intercept = NAN,
                               .start = MIDDAY - HALF,
                               .start_of_day = NAN,
                               .series = MIDDAY,
                               .acquired = MIDDAY + 5,
                               .ge_scan = NAN,
                               .reference = NAN};
}

static struct suv_found found;

/* Returns the factor of one slice. */
static double
factor_of(const struct suv_header *header, enum suv_unit unit)
{
    double factor = NAN;
    struct error error;
    const int rc = suv_factors(header, 1, header->acquired, unit, &factor, &found, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    ck_assert(found.lowest == factor && found.highest == factor);
    return factor;
}

static void
expect_refusal(const struct suv_header *header, enum suv_unit unit, enum code code)
{
    double factor;
    struct error error;
    ck_assert_int_eq(suv_factors(header, 1, header->acquired, unit, &factor, &found, &error), -EINVAL);
    ck_assert_msg(error.code == code, "%s, not %s: %s", code_name(error.code), code_name(code), error.message);
    ck_assert_uint_gt(strlen(error.message), 10);
}

static void
expect_near(double value, double expected)
{
    ck_assert_msg(fabs(value - expected) <= 1e-12 * expected, "%.17g, not %.17g", value, expected);
}

/* ---- by hand ---- */

START_TEST(body_weight)
{
    struct suv_header header = sound_header();
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    expect_near(found.seconds, HALF);
    ck_assert_str_eq(found.clock, "Series Time (0008,0031)");
    ck_assert_str_eq(found.doubt, "");
}

END_TEST

START_TEST(measures_of_the_body)
{
    static const struct {
        enum suv_unit unit;
        char sex;
        double body;
    } cases[] = {
        {SUV_BW, 'M', 70000},
        {SUV_LBM, 'M', 56520},
        {SUV_LBM, 'F', 51220},
        {SUV_LBM_120, 'M', 57800},
        {SUV_LBM_120, 'F', 51220},
        {SUV_JANMA, 'M', 4542300000.0 / 81320},
        {SUV_JANMA, 'F', 4542300000.0 / 100500},
        {SUV_IBW, 'M', 72380},
        {SUV_IBW, 'F', 66430},
        {SUV_BSA, 'M', 18481.4301812134},
        {SUV_BSA, 0, 18481.4301812134},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct suv_header header = sound_header();
        header.sex = cases[i].sex;
        ck_assert_double_eq_tol(suv_body(cases[i].unit, &header), cases[i].body, 1e-6 * cases[i].body);
        if (cases[i].unit < SUV_UNIT_COUNT)
            expect_near(factor_of(&header, cases[i].unit), suv_body(cases[i].unit, &header) / 175e6);
    }
}

END_TEST

START_TEST(stored_suv)
{
    struct suv_header header = sound_header();
    header.values = SUV_VALUES_SUV;
    header.stored = SUV_BW;
    ck_assert(factor_of(&header, SUV_BW) == 1);
    expect_near(factor_of(&header, SUV_LBM), 56520.0 / 70000);
    header.stored = SUV_LBM_120;
    expect_near(factor_of(&header, SUV_BW), 70000.0 / 57800);
    header.weight = header.size = header.dose = header.start = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_WEIGHT_MISSING);
    header.stored = SUV_BW;
    ck_assert(factor_of(&header, SUV_BW) == 1);
}

END_TEST

START_TEST(counts_of_philips)
{
    struct suv_header header = sound_header();
    header.values = SUV_VALUES_COUNTS;
    expect_refusal(&header, SUV_BW, CODE_SUV_UNITS_UNKNOWN);
    header.philips_activity = 2.5;
    expect_near(factor_of(&header, SUV_BW), 0.001);
    header.philips_suv = 0.003;
    ck_assert(factor_of(&header, SUV_BW) == 0.003);
    expect_near(factor_of(&header, SUV_LBM), 0.003 * 56520 / 70000);
    header.dose = header.start = NAN;
    ck_assert(factor_of(&header, SUV_BW) == 0.003);
}

END_TEST

START_TEST(decay_correction)
{
    struct suv_header header = sound_header();
    header.decay = SUV_DECAY_ADMIN;
    expect_near(factor_of(&header, SUV_BW), 0.0002);
    header.half_life = header.start = NAN;
    expect_near(factor_of(&header, SUV_BW), 0.0002);
    header.decay = SUV_DECAY_NONE;
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
    header.decay = SUV_DECAY_UNKNOWN;
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
    header.values = SUV_VALUES_COUNTS;
    header.philips_suv = 0.001;
    header.decay = SUV_DECAY_NONE;
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
    header = sound_header();
    header.decayed = false;
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
    header = sound_header();
    header.attenuated = false;
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
}

END_TEST

START_TEST(start_without_date)
{
    struct suv_header header = sound_header();
    header.start = NAN;
    header.start_of_day = DAY / 2 - HALF;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    /* A scan at 00:30 after an injection one half-life before, on the day before. */
    header.series = 20000 * DAY + 1800;
    header.acquired = header.series;
    header.start_of_day = DAY + 1800 - HALF;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    /* A minute before the injection would be almost a day after it. */
    header.start_of_day = 1860;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_IMPLAUSIBLE);
    /* The half-life of Zr-89 leaves the day open. */
    header.start_of_day = 600;
    header.half_life = 282240;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_MISSING);
    header.start_of_day = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_MISSING);
}

END_TEST

START_TEST(time_of_the_scan)
{
    struct suv_header header = sound_header();
    header.series = MIDDAY + 3600; /* processed */
    header.acquired = MIDDAY;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    ck_assert_str_eq(found.clock, "earliest Acquisition Time (0008,0032)");
    header.acquired = MIDDAY + 1000;
    header.ge_scan = MIDDAY;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    ck_assert_str_eq(found.clock, "scan time of GE (0009,100D)");
    header.acquired = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_MISSING);
    header = sound_header();
    header.start = MIDDAY + 1;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_IMPLAUSIBLE);
    header.start = MIDDAY - 10.01 * HALF;
    expect_refusal(&header, SUV_BW, CODE_SUV_TIMES_IMPLAUSIBLE);
    header.start = MIDDAY;
    expect_near(factor_of(&header, SUV_BW), 0.0002);
}

END_TEST

/* Two bed positions: each has its own Acquisition Time, and both are corrected to the earliest one. */
START_TEST(two_bed_positions)
{
    struct suv_header slices[2] = {sound_header(), sound_header()};
    double factors[2];
    struct error error;
    slices[0].series = slices[1].series = MIDDAY + 9000;
    slices[0].acquired = MIDDAY + 180;
    slices[1].acquired = MIDDAY;
    ck_assert_int_eq(suv_factors(slices, 2, MIDDAY, SUV_BW, factors, &found, &error), 0);
    expect_near(factors[0], 0.0004);
    expect_near(factors[1], 0.0004);
}

END_TEST

START_TEST(slices_that_differ)
{
    double factors[2];
    struct error error;
    for (int i = 0; i < 8; i++) {
        struct suv_header slices[2] = {sound_header(), sound_header()}, *other = &slices[1];
        *(i == 0   ? &other->weight
          : i == 1 ? &other->dose
          : i == 2 ? &other->half_life
          : i == 3 ? &other->start
          : i == 4 ? &other->series
          : i == 5 ? &other->size
          : i == 6 ? &other->ge_scan
                   : &other->start_of_day) = 1234;
        ck_assert_int_eq(suv_factors(slices, 2, MIDDAY, SUV_BW, factors, &found, &error), -EINVAL);
        ck_assert_int_eq(error.code, CODE_SUV_SLICES_DIFFER);
    }
    struct suv_header slices[2] = {sound_header(), sound_header()};
    slices[0].values = slices[1].values = SUV_VALUES_COUNTS;
    slices[0].philips_suv = 0.001;
    slices[1].philips_suv = 0.002;
    ck_assert_int_eq(suv_factors(slices, 2, MIDDAY, SUV_BW, factors, &found, &error), 0);
    ck_assert(factors[0] == 0.001 && factors[1] == 0.002 && found.lowest == 0.001 && found.highest == 0.002);
    slices[1].philips_suv = NAN;
    slices[1].philips_activity = 1;
    ck_assert_int_eq(suv_factors(slices, 2, MIDDAY, SUV_BW, factors, &found, &error), -EINVAL);
    ck_assert_int_eq(error.code, CODE_SUV_SLICES_DIFFER);
}

END_TEST

START_TEST(missing_values)
{
    struct suv_header header = sound_header();
    header.weight = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_WEIGHT_MISSING);
    expect_near(factor_of(&header, SUV_IBW), 72380 / 175e6);
    header = sound_header();
    header.size = NAN;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    for (enum suv_unit unit = SUV_LBM; unit < SUV_UNIT_COUNT; unit++)
        expect_refusal(&header, unit, CODE_SUV_SIZE_MISSING);
    header = sound_header();
    header.sex = 0;
    expect_refusal(&header, SUV_JANMA, CODE_SUV_SIZE_MISSING);
    header = sound_header();
    header.size = 0.7; /* 1.1 W - 128 (W / h)^2 < 0 */
    expect_refusal(&header, SUV_LBM, CODE_SUV_SIZE_MISSING);
    header = sound_header();
    header.dose = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_DOSE_MISSING);
    header = sound_header();
    header.half_life = NAN;
    expect_refusal(&header, SUV_BW, CODE_SUV_DOSE_MISSING);
    header = sound_header();
    header.doses = 2;
    expect_refusal(&header, SUV_BW, CODE_SUV_DOSE_MISSING);
    header = sound_header();
    header.values = SUV_VALUES_UNKNOWN;
    expect_refusal(&header, SUV_BW, CODE_SUV_UNITS_UNKNOWN);
}

END_TEST

START_TEST(implausible_values_are_noted)
{
    struct suv_header header = sound_header();
    header.weight = 70000; /* g */
    expect_near(factor_of(&header, SUV_BW), 0.4);
    ck_assert_str_eq(found.doubt, "Patient's Weight 70000 kg, expected 1 to 300");
    header = sound_header();
    header.dose = 350e3; /* kBq */
    expect_near(factor_of(&header, SUV_BW), 0.4);
    ck_assert_str_eq(found.doubt, "Radionuclide Total Dose 350000 Bq, expected 1e+06 to 1e+10");
    header = sound_header();
    header.start = MIDDAY - 5 * HALF; /* such as a start in the evening before, without date */
    expect_near(factor_of(&header, SUV_BW), 0.0064);
    ck_assert_str_eq(found.doubt, "decay for 5 half-lives, expected 0 to 4");
    header = sound_header();
    header.start_of_day = DAY / 2 - HALF + 30;
    factor_of(&header, SUV_BW);
    ck_assert_str_eq(found.doubt, "");
    header.start_of_day = DAY / 2 - HALF + 3600;
    expect_near(factor_of(&header, SUV_BW), 0.0004);
    ck_assert_str_eq(found.doubt, "Radiopharmaceutical Start DateTime and Start Time differ");
    header = sound_header();
    header.size = 175; /* cm */
    factor_of(&header, SUV_BW);
    ck_assert_str_eq(found.doubt, "");
    factor_of(&header, SUV_LBM);
    ck_assert_str_eq(found.doubt, "Patient's Size 175 m, expected 0.3 to 2.5");
}

END_TEST

/* ---- files ---- */

struct pet_case {
    const char *units, *type, *weight, *dose, *half_life, *start_time, *start_date_time, *series, *acquired;
    const char *philips_suv, *philips_activity, *ge_scan;
    double factor;
};

/* Headers and factors of the tests of calculate-suv (cornerstonejs, MIT); tolerance 1e-6 there. */
static const struct pet_case vendors[] = {
    {"BQML", NULL, "65", "225000000", "6586.2", "114100.000000", NULL, "123515.000000", "123514.999995", NULL, NULL,
     NULL, 0.0004069156854},
    {"BQML", NULL, "69", "388000000", "6586.2", "120037.000000", NULL, "134918.000000", "130348.234000", NULL, NULL,
     NULL, 0.0002650331276},
    {"BQML", NULL, "52", "152022720", "6586.200195", "084500.00", "20201217084500.00", "095621", "095621", NULL, NULL,
     NULL, 0.0005367387682},
    {"BQML", NULL, "64", "126000000", "6586.199707", "100058", "20201217100058", "110155", "110156", "0.003515736",
     "4.709921", NULL, 0.0007463747014},
    {"CNTS", NULL, "54", "238000000", "6588", "083000", NULL, "093556", "095439", "0.000551", "1.602563", NULL,
     0.000551},
    {"CNTS", NULL, "47", "208230000", "6588", "123000", NULL, "134551", "141336", "0.000728", NULL, NULL, 0.000728},
    {"BQML", NULL, "102", "412000000", "6586.2", "125000.000000", NULL, "135431.843000", "141555.687000", NULL, NULL,
     NULL, 0.0003721089203},
    {"BQML", NULL, "67", "374000000", "6586.2", "083045.000000", "20201217083045.000000", "104829.000000",
     "104830.351370", NULL, NULL, NULL, 0.0004274831619},
};

static void
put(struct dicom_bytes *bytes, uint32_t tag, const char *vr, const char *text)
{
    if (text)
        bytes_text(bytes, tag, vr, text);
}

static void
put_dose(struct dicom_bytes *bytes, const struct pet_case *pet)
{
    bytes_sequence(bytes, 0x00540016);
    bytes_item(bytes);
    put(bytes, 0x00181072, "TM", pet->start_time);
    put(bytes, 0x00181074, "DS", pet->dose);
    put(bytes, 0x00181075, "DS", pet->half_life);
    put(bytes, 0x00181078, "DT", pet->start_date_time);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
}

static void
write_pet(const struct pet_case *pet, const char *syntax)
{
    struct dicom_bytes bytes = {0};
    bytes_begin_file(&bytes, syntax, CLASS_PT, "1.2.3.4.1");
    put(&bytes, 0x00080021, "DA", "20201217");
    put(&bytes, 0x00080022, "DA", "20201217");
    put(&bytes, 0x00080031, "TM", pet->series);
    put(&bytes, 0x00080032, "TM", pet->acquired);
    if (pet->ge_scan) {
        put(&bytes, 0x00090010, "LO", "GEMS_PETD_01");
        put(&bytes, 0x0009100D, "DT", pet->ge_scan);
    }
    put(&bytes, 0x00100040, "CS", "M");
    put(&bytes, 0x00101020, "DS", "1.75");
    put(&bytes, 0x00101030, "DS", pet->weight);
    put(&bytes, 0x00280051, "CS", "NORM\\DTIM\\ATTN\\SCAT\\DECY\\RAN");
    put_dose(&bytes, pet);
    put(&bytes, 0x00541001, "CS", pet->units);
    put(&bytes, 0x00541006, "CS", pet->type);
    put(&bytes, 0x00541102, "CS", "START");
    put(&bytes, 0x70530010, "LO", "Philips PET Private Group");
    put(&bytes, 0x70531000, "DS", pet->philips_suv);
    put(&bytes, 0x70531009, "DS", pet->philips_activity);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

static struct suv_header
read_header(void)
{
    struct suv_header header;
    struct error error;
    const struct dicom_instance instance = {.path = path, .frame_count = 1};
    const int rc = suv_read(&instance, &header, &error);
    ck_assert_msg(rc == 0, "%s: %s", code_name(error.code), error.message);
    return header;
}

START_TEST(vendors_files)
{
    const struct pet_case *pet = &vendors[_i / 3];
    write_pet(pet, native_syntaxes[_i % 3]);
    const struct suv_header header = read_header();
    ck_assert_double_eq_tol(factor_of(&header, SUV_BW), pet->factor, 1e-6 * pet->factor);
}

END_TEST

START_TEST(ge_scan_time_is_read)
{
    struct pet_case pet = vendors[2];
    pet.series = "150000";
    pet.acquired = "100000";
    pet.ge_scan = "20201217095621.00";
    write_pet(&pet, SYNTAX_EXPLICIT);
    const struct suv_header header = read_header();
    ck_assert_double_eq_tol(factor_of(&header, SUV_BW), pet.factor, 1e-6 * pet.factor);
}

END_TEST

START_TEST(attributes_without_value)
{
    static const struct {
        struct pet_case pet;
        enum code code;
    } cases[] = {
        {{"BQML", NULL, "0", "1e8", "6586.2", "113000", NULL, "120000", "120000", .factor = 0},
         CODE_SUV_WEIGHT_MISSING},
        {{"BQML", NULL, NULL, "1e8", "6586.2", "113000", NULL, "120000", "120000", .factor = 0},
         CODE_SUV_WEIGHT_MISSING},
        {{"BQML", NULL, "70", "", "6586.2", "113000", NULL, "120000", "120000", .factor = 0}, CODE_SUV_DOSE_MISSING},
        {{"BQML", NULL, "70", "1e8", "x", "113000", NULL, "120000", "120000", .factor = 0}, CODE_SUV_DOSE_MISSING},
        {{"BQML", NULL, "70", "1e8", "6586.2", "253000", NULL, "120000", "120000", .factor = 0},
         CODE_SUV_TIMES_MISSING},
        {{"BQML", NULL, "70", "1e8", "6586.2", "113000", NULL, "120000", NULL, .factor = 0}, CODE_SUV_TIMES_MISSING},
        {{"BQML", NULL, "70", "1e8", "6586.2", NULL, "20191217113000", "120000", "120000", .factor = 0},
         CODE_SUV_TIMES_IMPLAUSIBLE},
        {{"PROPCPS", NULL, "70", "1e8", "6586.2", "113000", NULL, "120000", "120000", .factor = 0},
         CODE_SUV_UNITS_UNKNOWN},
        {{"GML", "SUL", "70", "1e8", "6586.2", "113000", NULL, "120000", "120000", .factor = 0},
         CODE_SUV_UNITS_UNKNOWN},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_pet(&cases[i].pet, SYNTAX_EXPLICIT);
        const struct suv_header header = read_header();
        expect_refusal(&header, SUV_BW, cases[i].code);
    }
}

END_TEST

START_TEST(types_of_stored_suv)
{
    static const struct {
        const char *units, *type;
        enum suv_unit unit;
    } cases[] = {{"GML", NULL, SUV_BW},          {"GML", "BW", SUV_BW},           {"GML", "LBM", SUV_LBM_120},
                 {"GML", "LBMJANMA", SUV_JANMA}, {"GML", "LBMJAMES128", SUV_LBM}, {"GML", "IBW", SUV_IBW},
                 {"CM2ML", "BSA", SUV_BSA},      {"CM2ML", NULL, SUV_BSA}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct pet_case pet = {.units = cases[i].units, .type = cases[i].type, .weight = "70"};
        write_pet(&pet, SYNTAX_EXPLICIT);
        const struct suv_header header = read_header();
        ck_assert_int_eq(header.values, SUV_VALUES_SUV);
        ck_assert_int_eq(header.stored, cases[i].unit);
        if (cases[i].unit < SUV_UNIT_COUNT)
            ck_assert(factor_of(&header, cases[i].unit) == 1);
    }
}

END_TEST

/* An offset from UTC counts if the file states its own offset, too. */
START_TEST(offsets_of_start_times)
{
    static const struct {
        const char *start, *local;
        double seconds;
    } cases[] = {{"20201217113000+0100", NULL, 1800},
                 {"20201217113000+0100", "+0100", 1800},
                 {"20201217103000+0000", "+0100", 1800},
                 {"20201217113000", "+0100", 1800}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dicom_bytes bytes = {0};
        const struct pet_case pet = {.dose = "1e8", .half_life = "6586.2", .start_date_time = cases[i].start};
        bytes_begin_file(&bytes, SYNTAX_EXPLICIT, CLASS_PT, "1.2.3.4.1");
        put(&bytes, 0x00080021, "DA", "20201217");
        put(&bytes, 0x00080031, "TM", "120000");
        put(&bytes, 0x00080201, "SH", cases[i].local);
        put_dose(&bytes, &pet);
        bytes_write(&bytes, path);
        bytes_free(&bytes);
        const struct suv_header header = read_header();
        ck_assert(header.series - header.start == cases[i].seconds);
        ck_assert(header.series == 1608206400); /* 2020-12-17 12:00 UTC */
    }
}

END_TEST

/* ---- enhanced images ---- */

static void
put_mapping(struct dicom_bytes *bytes, const char *unit, double slope)
{
    bytes_item(bytes);
    bytes_sequence(bytes, 0x004008EA);
    bytes_item(bytes);
    bytes_text(bytes, strlen(unit) > 16 ? 0x00080119 : 0x00080100, strlen(unit) > 16 ? "UC" : "SH", unit);
    bytes_item_end(bytes);
    bytes_sequence_end(bytes);
    bytes_fd(bytes, 0x00409224, 0);
    bytes_fd(bytes, 0x00409225, slope);
    bytes_item_end(bytes);
}

static void
write_enhanced(const char *const units[2], const char *corrected)
{
    struct dicom_bytes bytes = {0};
    const struct pet_case pet = {.dose = "350000000", .half_life = "6600", .start_date_time = "20201217101000"};
    bytes_begin_file(&bytes, SYNTAX_EXPLICIT, "1.2.840.10008.5.1.4.1.1.130", "1.2.3.4.1");
    put(&bytes, 0x00100040, "CS", "M");
    put(&bytes, 0x00101020, "DS", "1.75");
    put(&bytes, 0x00101030, "DS", "70");
    put(&bytes, 0x00189701, "DT", "20201217120000");
    put(&bytes, 0x00189758, "CS", corrected);
    put(&bytes, 0x00189759, "CS", "YES");
    put_dose(&bytes, &pet);
    bytes_sequence(&bytes, 0x52009229);
    bytes_item(&bytes);
    bytes_sequence(&bytes, 0x00409096);
    for (int i = 0; i < 2; i++)
        if (units[i])
            put_mapping(&bytes, units[i], i + 2);
    bytes_sequence_end(&bytes);
    bytes_item_end(&bytes);
    bytes_sequence_end(&bytes);
    bytes_write(&bytes, path);
    bytes_free(&bytes);
}

START_TEST(mappings_of_enhanced_images)
{
    static const struct {
        const char *units[2];
        double slope, factor; /* of SUVbw */
    } cases[] = {
        {{"Bq/ml", NULL}, 2, 0.0004},
        {{"Bq/ml", "{SUVbw}g/ml"}, 3, 1},
        {{"g/ml{SUVbw}", "Bq/ml"}, 2, 1},
        {{"{counts}", "g/ml{SUVlbm(James128)}"}, 3, 70000.0 / 56520},
        {{"{SUVlbm}g/ml", NULL}, 2, 70000.0 / 57800},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_enhanced(cases[i].units, "YES");
        const struct suv_header header = read_header();
        ck_assert(header.mapped && header.slope == cases[i].slope && header.intercept == 0);
        expect_near(factor_of(&header, SUV_BW), cases[i].factor);
    }
    write_enhanced(cases[0].units, "NO");
    struct suv_header header = read_header();
    expect_refusal(&header, SUV_BW, CODE_SUV_NOT_CORRECTED);
    write_enhanced((const char *const[2]){"{counts}", NULL}, "YES");
    header = read_header();
    expect_refusal(&header, SUV_BW, CODE_SUV_UNITS_UNKNOWN);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("dicom_suv");
    TCase *rules = tcase_create("rules"), *files = new_case(suite, "files");
    suite_add_tcase(suite, rules);
    tcase_add_test(rules, body_weight);
    tcase_add_test(rules, measures_of_the_body);
    tcase_add_test(rules, stored_suv);
    tcase_add_test(rules, counts_of_philips);
    tcase_add_test(rules, decay_correction);
    tcase_add_test(rules, start_without_date);
    tcase_add_test(rules, time_of_the_scan);
    tcase_add_test(rules, two_bed_positions);
    tcase_add_test(rules, slices_that_differ);
    tcase_add_test(rules, missing_values);
    tcase_add_test(rules, implausible_values_are_noted);
    tcase_add_loop_test(files, vendors_files, 0, 3 * (int)(sizeof vendors / sizeof vendors[0]));
    tcase_add_test(files, ge_scan_time_is_read);
    tcase_add_test(files, attributes_without_value);
    tcase_add_test(files, types_of_stored_suv);
    tcase_add_test(files, offsets_of_start_times);
    tcase_add_test(files, mappings_of_enhanced_images);
    return suite_run(suite);
}
