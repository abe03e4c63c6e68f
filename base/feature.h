/*
 * feature.h - a measured feature with all settings that define it. The worker sends it, the database stores it, and
 * features.json, features.csv and the SR contain it.
 */
#ifndef NOCTULE_BASE_FEATURE_H
#define NOCTULE_BASE_FEATURE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One value, or the reason for a missing value. Strings are borrowed, and never NULL. */
struct feature {
    int32_t segment;            /* Segment Number, from 1; 0: the whole volume */
    const char *label;          /* of the segment; "" for the whole volume */
    const char *family;         /* "first-order", "shape", "glcm" */
    const char *name;           /* "joint_entropy" */
    const char *meaning;        /* "Joint entropy" */
    const char *ibsi;           /* "TU9B"; "" where IBSI has no code */
    double value;               /* finite; 0 when missing */
    const char *missing_reason; /* "" if there is a value, else "EMPTY_REGION" ... (terms.def) */
    const char *unit;           /* UCUM */
    const char *settings;       /* "aggregation=3d-merged;distance=1": see below */
    bool has_path;              /* a length, measured between two points in mm (LPS) */
    double path[2][3];
};

/*
 * Settings have one text form: key=value pairs in ascending order of keys, separated by semicolons. Numbers have the
 * fewest digits that read back as the same double. Settings that do not affect a feature are absent.
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

/* Adds a setting to `settings`, which must not contain it yet. Begin with "". */
void feature_put_text(char settings[FEATURE_SETTINGS], enum feature_setting setting, const char *value);
void feature_put_integer(char settings[FEATURE_SETTINGS], enum feature_setting setting, int64_t value);
void feature_put_number(char settings[FEATURE_SETTINGS], enum feature_setting setting, double value);
void feature_put_boolean(char settings[FEATURE_SETTINGS], enum feature_setting setting, bool value);

/* Copies the value of a setting. Returns false and sets "" if it is absent. */
bool feature_get(const char *settings, enum feature_setting setting, char value[FEATURE_SETTING]);
double feature_get_number(const char *settings, enum feature_setting setting); /* 0: absent */

/* Reads the setting at *at and advances *at. Returns false at the end. Keys have up to 63 characters. */
bool feature_next_setting(const char **at, char key[64], char value[FEATURE_SETTING]);

/* Checks the text form. Accepts unknown keys. */
bool feature_settings_are_sound(const char *settings);

#ifdef __cplusplus
}
#endif
#endif
