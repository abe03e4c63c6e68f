/*
 * feature.h - a number that was measured, with all settings that define it: what the worker tells,
 * the database keeps, and features.json, features.csv and the report say.
 */
#ifndef NOCTULE_BASE_FEATURE_H
#define NOCTULE_BASE_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One number, or the reason why there is none. Strings are borrowed, and never NULL. */
struct feature {
    int32_t segment;            /* Segment Number, from 1; 0: the whole volume */
    const char *label;          /* of the segment; "" for the whole volume */
    const char *family;         /* "first-order", "shape", "glcm" */
    const char *name;           /* "joint_entropy" */
    const char *meaning;        /* "Joint entropy" */
    const char *ibsi;           /* "TU9B"; "" where IBSI has no code */
    double value;               /* finite; 0 when missing */
    const char *missing_reason; /* "": there is a value; else "EMPTY_REGION" ... (terms.def) */
    const char *unit;           /* UCUM */
    const char *settings;       /* "aggregation=3d-merged;distance=1": see below */
};

/*
 * Settings are text in one form: key=value, keys in ascending order, with ; between them. Numbers
 * have as few digits as read back as the same double. What does not concern a feature is not there.
 */
#define FEATURE_SETTINGS 640 /* of all of them */
#define FEATURE_SETTING  272 /* of one value */

enum feature_kind { FEATURE_TEXT, FEATURE_INTEGER, FEATURE_NUMBER, FEATURE_BOOLEAN };

enum feature_setting {

#define SETTING(key, ...) FEATURE_##key,
#include "base/feature_settings.def"
#undef SETTING
    FEATURE_SETTING_COUNT,
};

struct feature_setting_row {
    const char *key;
    enum feature_kind kind;
};
extern const struct feature_setting_row feature_setting_rows[FEATURE_SETTING_COUNT];

/* Adds a setting that is not there yet to `settings`, "" at first. */
void feature_put_text(char settings[FEATURE_SETTINGS], enum feature_setting setting,
                      const char *value);
void feature_put_integer(char settings[FEATURE_SETTINGS], enum feature_setting setting,
                         int64_t value);
void feature_put_number(char settings[FEATURE_SETTINGS], enum feature_setting setting,
                        double value);
void feature_put_boolean(char settings[FEATURE_SETTINGS], enum feature_setting setting, bool value);

/* Copies the value of a setting; false, and "", when it is not there. */
bool feature_get(const char *settings, enum feature_setting setting, char value[FEATURE_SETTING]);
double feature_get_number(const char *settings, enum feature_setting setting); /* 0: not there */

/* The next setting at *at, which moves on; false at the end. Keys have up to 63 characters. */
bool feature_next_setting(const char **at, char key[64], char value[FEATURE_SETTING]);

/* Is it in the form above? Keys need not be known here. */
bool feature_settings_are_sound(const char *settings);

#ifdef __cplusplus
}
#endif
#endif
