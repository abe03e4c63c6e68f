#include "base/feature.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct feature_setting_row feature_setting_rows[FEATURE_SETTING_COUNT] = {
#define SETTING(key, kind, ...) {#key, FEATURE_##kind},
#include "base/feature_settings.def"
#undef SETTING
};

bool
feature_next_setting(const char **at, char key[64], char value[FEATURE_SETTING])
{
    const char *equals = strchr(*at, '='), *end = *at + strcspn(*at, ";");
    if (!equals || equals > end || equals == *at || equals - *at > 63 || end - equals > FEATURE_SETTING)
        return false;
    memcpy(key, *at, (size_t)(equals - *at));
    key[equals - *at] = '\0';
    memcpy(value, equals + 1, (size_t)(end - equals - 1));
    value[end - equals - 1] = '\0';
    *at = *end ? end + 1 : end;
    return true;
}

/* Checks that the text is a value of the setting's kind. Accepts any text for an unknown key. */
static bool
feature_value_is_sound(const char *key, const char *value)
{
    char *end;
    for (int i = 0; i < FEATURE_SETTING_COUNT; i++) {
        if (strcmp(feature_setting_rows[i].key, key) != 0)
            continue;
        switch (feature_setting_rows[i].kind) {
        case FEATURE_INTEGER:
            return strlen(value) < 10 && !value[strspn(value, "0123456789")];
        case FEATURE_NUMBER:
            return isfinite(strtod(value, &end)) && !*end && (i != FEATURE_bin_width || *value != '-');
        case FEATURE_BOOLEAN:
            return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
        case FEATURE_TEXT:
            break;
        }
    }
    return true;
}

bool
feature_settings_are_sound(const char *settings)
{
    char key[64], last[64] = "", value[FEATURE_SETTING];
    const size_t length = strlen(settings);
    if (feature_get_number(settings, FEATURE_range_low) > feature_get_number(settings, FEATURE_range_high))
        return false;
    if (length >= FEATURE_SETTINGS || (length > 0 && settings[length - 1] == ';'))
        return false;
    while (*settings) {
        if (!feature_next_setting(&settings, key, value) || !*value || strchr(value, '=') ||
            key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")] || strcmp(last, key) >= 0 ||
            !feature_value_is_sound(key, value))
            return false;
        memcpy(last, key, sizeof last);
    }
    return true;
}

void
feature_put_text(char settings[FEATURE_SETTINGS], enum feature_setting setting, const char *value)
{
    const char *name = feature_setting_rows[setting].key, *at = settings;
    char key[64], other[FEATURE_SETTING], rest[FEATURE_SETTINGS];
    size_t before = 0;
    if (!*value)
        return;
    while (feature_next_setting(&at, key, other) && strcmp(key, name) < 0)
        before = (size_t)(at - settings);
    memcpy(rest, settings + before, strlen(settings + before) + 1);
    const bool first = before == 0 || settings[before - 1] == ';';
    snprintf(settings + before, FEATURE_SETTINGS - before, "%s%s=%s%s%s", first ? "" : ";", name, value,
             *rest ? ";" : "", rest);
}

void
feature_put_integer(char settings[FEATURE_SETTINGS], enum feature_setting setting, int64_t value)
{
    char text[TEXT_DIGITS] = "";
    if (value != 0)
        snprintf(text, sizeof text, "%lld", (long long)value);
    feature_put_text(settings, setting, text);
}

void
feature_put_number(char settings[FEATURE_SETTINGS], enum feature_setting setting, double value)
{
    char text[TEXT_DIGITS];
    text_digits(value + 0.0, text); /* plus 0: no negative zero */
    feature_put_text(settings, setting, text);
}

void
feature_put_boolean(char settings[FEATURE_SETTINGS], enum feature_setting setting, bool value)
{
    feature_put_text(settings, setting, value ? "true" : "false");
}

bool
feature_get(const char *settings, enum feature_setting setting, char value[FEATURE_SETTING])
{
    char key[64];
    while (feature_next_setting(&settings, key, value))
        if (strcmp(key, feature_setting_rows[setting].key) == 0)
            return true;
    value[0] = '\0';
    return false;
}

double
feature_get_number(const char *settings, enum feature_setting setting)
{
    char value[FEATURE_SETTING];
    return feature_get(settings, setting, value) ? strtod(value, NULL) : 0;
}
