/* suv.c - rules from attributes to factors; see suv.h. */
#include "dicom/read/suv/suv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DAY_SECONDS       86400.0
#define MAX_HALF_LIVES    10.0
#define MAX_START_SECONDS 60.0 /* between two attributes of one start */

/* Values outside these limits are used, and a person must check the result. */
static const double plausible_kg[2] = {1, 300}, plausible_m[2] = {0.3, 2.5}, plausible_bq[2] = {1e6, 1e10},
                    plausible_half_lives[2] = {0, 4};

/* The factor of a slice is `scale` times that of activity (Bq/ml), or of an SUV in the stored unit. */
struct suv_rule {
    const char *name;
    enum suv_values values;
    bool is_activity;
    enum suv_unit stored;                             /* SUV_NO_UNIT: that of the header */
    double (*scale)(const struct suv_header *header); /* NAN: the rule does not apply */
};

static double
suv_scale_one(const struct suv_header *header)
{
    (void)header;
    return 1;
}

static double
suv_scale_philips(const struct suv_header *header)
{
    return header->philips_suv;
}

static double
suv_scale_philips_activity(const struct suv_header *header)
{
    return header->philips_activity;
}

/* The first rule that applies counts. */
static const struct suv_rule suv_rules[] = {
    /* PS3.3 C.8.9.1.1.3 and SUV Type (0054,1006), which is BW if absent; CM2ML is SUVbsa */
    {"stored SUV", SUV_VALUES_SUV, false, SUV_NO_UNIT, suv_scale_one},
    /* QIBA: Units BQML */
    {"activity", SUV_VALUES_ACTIVITY, true, SUV_NO_UNIT, suv_scale_one},
    /* QIBA: Units CNTS of Philips: (7053,1000) gives SUVbw */
    {"Philips SUV Scale Factor (7053,1000)", SUV_VALUES_COUNTS, false, SUV_BW, suv_scale_philips},
    /* QIBA: else (7053,1009) gives Bq/ml */
    {"Philips Activity Concentration Scale Factor (7053,1009)", SUV_VALUES_COUNTS, true, SUV_NO_UNIT,
     suv_scale_philips_activity},
};

/* ------------------------------------------------------------------------------- checks ---- */

static int
suv_refuse(struct error *error, enum code code, const char *message)
{
    return error_set(error, -EINVAL, code, "%s", message);
}

static bool
suv_same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Returns the attribute in which two slices differ, or NULL. */
static const char *
suv_difference(const struct suv_header *a, const struct suv_header *b)
{
    const struct {
        const char *name;
        double a, b;
    } numbers[] = {
        {"Patient's Weight", a->weight, b->weight},
        {"Patient's Size", a->size, b->size},
        {"Patient's Sex", a->sex, b->sex},
        {"Radionuclide Total Dose", a->dose, b->dose},
        {"Radionuclide Half Life", a->half_life, b->half_life},
        {"Radiopharmaceutical Start DateTime", a->start, b->start},
        {"Radiopharmaceutical Start Time", a->start_of_day, b->start_of_day},
        {"Units", a->values, b->values},
        {"SUV Type", a->stored, b->stored},
        {"Decay Correction", a->decay, b->decay},
        {"Corrected Image", a->attenuated + 2 * a->decayed, b->attenuated + 2 * b->decayed},
        {"Series Time", a->series, b->series},
        {"the scan time of GE (0009,100D)", a->ge_scan, b->ge_scan},
        {"Decay Correction DateTime", a->reference, b->reference},
        {"Real World Value Mapping", a->mapped, b->mapped},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (!suv_same_number(numbers[i].a, numbers[i].b))
            return numbers[i].name;
    return NULL;
}

static int
suv_check_slices(const struct suv_header *slices, size_t count, struct error *error)
{
    const char *difference = NULL;
    for (size_t i = 1; i < count && !difference; i++)
        difference = suv_difference(&slices[0], &slices[i]);
    if (!difference)
        return 0;
    return error_set(error, -EINVAL, CODE_SUV_SLICES_DIFFER, "slices differ in %s, so they have no common SUV",
                     difference);
}

static int
suv_check_corrected(const struct suv_header *header, struct error *error)
{
    if (header->decay == SUV_DECAY_NONE)
        return suv_refuse(error, CODE_SUV_NOT_CORRECTED, "Decay Correction (0054,1102) is NONE");
    if (!header->attenuated || !header->decayed)
        return suv_refuse(error, CODE_SUV_NOT_CORRECTED,
                          header->attenuated ? "Corrected Image (0028,0051) has no DECY: the decay is not corrected"
                          : header->decayed
                              ? "Corrected Image (0028,0051) has no ATTN: the attenuation is not corrected"
                              : "Corrected Image (0028,0051) has neither ATTN nor DECY");
    return 0;
}

/* ---------------------------------------------------------------------------------- time ---- */

/* Finds the time to which values are decay corrected (QIBA). */
static int
suv_find_clock(const struct suv_header *header, double earliest, struct suv_found *found, double *clock,
               struct error *error)
{
    if (header->decay == SUV_DECAY_TIME) {
        *clock = header->reference;
        found->clock = "Decay Correction DateTime (0018,9701)";
    } else if (isnan(earliest)) {
        return suv_refuse(error, CODE_SUV_TIMES_MISSING, "no image has Acquisition Date and Time (0008,0032)");
    } else if (header->series <= earliest) {
        *clock = header->series;
        found->clock = "Series Time (0008,0031)";
    } else if (!isnan(header->ge_scan)) {
        *clock = header->ge_scan; /* the series was processed after the scan */
        found->clock = "scan time of GE (0009,100D)";
    } else {
        *clock = earliest; /* the series was processed, or a scanner changed its time */
        found->clock = "earliest Acquisition Time (0008,0032)";
    }
    if (isnan(*clock))
        return suv_refuse(error, CODE_SUV_TIMES_MISSING, "Decay Correction DateTime (0018,9701) is missing");
    return 0;
}

/* Sets the seconds from the injection to the time of the values. A start without date is on the day of that time, or
 * on the day before. */
static int
suv_find_seconds(const struct suv_header *header, double clock, struct suv_found *found, struct error *error)
{
    const double most = MAX_HALF_LIVES * header->half_life;
    if (!isnan(header->start)) {
        found->seconds = clock - header->start;
        found->start = "Radiopharmaceutical Start DateTime (0018,1078)";
    } else if (!isnan(header->start_of_day)) {
        found->seconds = clock - floor(clock / DAY_SECONDS) * DAY_SECONDS - header->start_of_day;
        if (found->seconds < 0)
            found->seconds += DAY_SECONDS;
        found->start = "Radiopharmaceutical Start Time (0018,1072)";
        if (found->seconds + DAY_SECONDS <= most)
            return suv_refuse(error, CODE_SUV_TIMES_MISSING,
                              "Radiopharmaceutical Start DateTime (0018,1078) is missing, and the half-life is so long "
                              "that the time alone leaves the day open");
    } else {
        return suv_refuse(error, CODE_SUV_TIMES_MISSING,
                          "Radiopharmaceutical Start DateTime (0018,1078) and Start Time (0018,1072) are missing");
    }
    if (found->seconds < 0 || found->seconds > most)
        return error_set(error, -EINVAL, CODE_SUV_TIMES_IMPLAUSIBLE,
                         "the %s is %.0f seconds after the injection, expected 0 to %.0f (10 half-lives)", found->clock,
                         found->seconds, most);
    return 0;
}

/* Sets the part of the injected activity that is left at the time of the values. */
static int
suv_find_left(const struct suv_header *header, double earliest, struct suv_found *found, double *left,
              struct error *error)
{
    double clock = NAN;
    *left = 1;
    if (header->decay == SUV_DECAY_UNKNOWN)
        return suv_refuse(error, CODE_SUV_NOT_CORRECTED, "Decay Correction (0054,1102) is neither START nor ADMIN");
    if (header->decay == SUV_DECAY_ADMIN) {
        found->clock = "injection (Decay Correction ADMIN)";
        found->seconds = 0;
        return 0;
    }
    if (isnan(header->half_life))
        return suv_refuse(error, CODE_SUV_DOSE_MISSING, "Radionuclide Half Life (0018,1075) is missing");
    int rc = suv_find_clock(header, earliest, found, &clock, error);
    if (rc == 0)
        rc = suv_find_seconds(header, clock, found, error);
    if (rc == 0)
        *left = exp2(-found->seconds / header->half_life);
    return rc;
}

/* ------------------------------------------------------------------------------- factors ---- */

static int
suv_find_body(enum suv_unit unit, const struct suv_header *header, double *body, struct error *error)
{
    *body = suv_body(unit, header);
    if (!isnan(*body))
        return 0;
    if (isnan(header->weight) && unit != SUV_IBW)
        return suv_refuse(error, CODE_SUV_WEIGHT_MISSING, "Patient's Weight (0010,1030) is missing");
    if (isnan(header->size))
        return suv_refuse(error, CODE_SUV_SIZE_MISSING, "Patient's Size (0010,1020) is missing");
    if (header->sex == 0 && unit != SUV_BSA)
        return suv_refuse(error, CODE_SUV_SIZE_MISSING, "Patient's Sex (0010,0040) is neither M nor F");
    return suv_refuse(error, CODE_SUV_SIZE_MISSING,
                      "Patient's Weight, Size and Sex give a body mass that is not positive");
}

/* Notes an implausible value that was used. */
static void
suv_doubt(struct suv_found *found, const char *name, const char *unit, double value, const double range[2])
{
    const size_t used = strlen(found->doubt);
    if (isnan(value) || (value >= range[0] && value <= range[1]))
        return;
    snprintf(found->doubt + used, sizeof found->doubt - used, "%s%s %g %s, expected %g to %g", used ? "; " : "", name,
             value, unit, range[0], range[1]);
}

/* Notes start times that contradict each other. The one with a date was used. */
static void
suv_doubt_start(struct suv_found *found)
{
    const struct suv_header *used = &found->used;
    const size_t length = strlen(found->doubt);
    const double of_day = used->start - floor(used->start / DAY_SECONDS) * DAY_SECONDS;
    if (fabs(of_day - used->start_of_day) > MAX_START_SECONDS)
        snprintf(found->doubt + length, sizeof found->doubt - length,
                 "%sRadiopharmaceutical Start DateTime and Start Time differ", length ? "; " : "");
}

static void
suv_find_doubts(const struct suv_rule *rule, enum suv_unit from, struct suv_found *found)
{
    const struct suv_header *used = &found->used;
    const bool needs_body = rule->is_activity || from != found->unit;
    const bool only_weight = found->unit == SUV_BW && (rule->is_activity || from == SUV_BW);
    if (needs_body && (found->unit != SUV_IBW || !rule->is_activity))
        suv_doubt(found, "Patient's Weight", "kg", used->weight, plausible_kg);
    if (needs_body && !only_weight)
        suv_doubt(found, "Patient's Size", "m", used->size, plausible_m);
    if (rule->is_activity)
        suv_doubt(found, "Radionuclide Total Dose", "Bq", used->dose, plausible_bq);
    if (rule->is_activity && !isnan(used->half_life))
        suv_doubt(found, "decay for", "half-lives", found->seconds / used->half_life, plausible_half_lives);
    if (found->start[0])
        suv_doubt_start(found);
}

/* Finds the first rule that applies to the slice. */
static const struct suv_rule *
suv_find_rule(const struct suv_header *header)
{
    for (size_t i = 0; i < sizeof suv_rules / sizeof suv_rules[0]; i++)
        if (suv_rules[i].values == header->values && !isnan(suv_rules[i].scale(header)))
            return &suv_rules[i];
    return NULL;
}

/* Sets the factor from the values of the rule, without its scale. */
static int
suv_find_common(const struct suv_rule *rule, double earliest, struct suv_found *found, double *common,
                struct error *error)
{
    const struct suv_header *header = &found->used;
    const enum suv_unit from = rule->stored == SUV_NO_UNIT ? header->stored : rule->stored;
    double left = 1, other = NAN;
    int rc = 0;
    *common = 1;
    if (!rule->is_activity && from == found->unit)
        return 0;
    rc = suv_find_body(found->unit, header, &found->body, error);
    if (rc == 0 && rule->is_activity && header->doses > 1)
        rc = error_set(error, -EINVAL, CODE_SUV_DOSE_MISSING,
                       "Radiopharmaceutical Information Sequence (0054,0016) has %d items: the dose is not known",
                       header->doses);
    if (rc == 0 && rule->is_activity && isnan(header->dose))
        rc = suv_refuse(error, CODE_SUV_DOSE_MISSING, "Radionuclide Total Dose (0018,1074) is missing");
    if (rc == 0 && rule->is_activity)
        rc = suv_find_left(header, earliest, found, &left, error);
    if (rc == 0 && !rule->is_activity)
        rc = suv_find_body(from, header, &other, error);
    if (rc == 0)
        *common = found->body / (rule->is_activity ? header->dose * left : other);
    if (rc == 0)
        suv_find_doubts(rule, from, found);
    return rc;
}

int
suv_factors(const struct suv_header *slices, size_t count, double earliest, enum suv_unit unit, double *factors,
            struct suv_found *found, struct error *error)
{
    double common;
    *found = (struct suv_found){.unit = unit, .clock = "", .start = "", .body = NAN, .seconds = NAN, .used = slices[0]};
    const struct suv_rule *rule = suv_find_rule(&slices[0]);
    if (!rule)
        return error_set(error, -EINVAL, CODE_SUV_UNITS_UNKNOWN, "values in %s cannot be converted to SUV%s",
                         slices[0].units[0] ? slices[0].units : "no known unit",
                         slices[0].values == SUV_VALUES_COUNTS ? " without the factors of Philips (7053,1000) or "
                                                                 "(7053,1009)"
                                                               : "");
    found->rule = rule->name;
    int rc = suv_check_corrected(&slices[0], error);
    if (rc == 0)
        rc = suv_check_slices(slices, count, error);
    if (rc == 0)
        rc = suv_find_common(rule, earliest, found, &common, error);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        if (suv_find_rule(&slices[i]) != rule)
            return suv_refuse(error, CODE_SUV_SLICES_DIFFER, "slices differ in the factors of Philips");
        factors[i] = common * rule->scale(&slices[i]);
        found->lowest = i == 0 ? factors[i] : fmin(found->lowest, factors[i]);
        found->highest = i == 0 ? factors[i] : fmax(found->highest, factors[i]);
    }
    return rc;
}
