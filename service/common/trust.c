#include "service/common/trust.h"

#include "service/common/slurm/slurm_digest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
trust_thickness(double slice_mm)
{
    /* Positions in decimal digits may be off by a micrometre. */
    const double thickness = round(slice_mm * 1000) / 1000;
    return thickness <= 1.25  ? "up to 1.25 mm"
           : thickness <= 2.5 ? "1.25 to 2.5 mm"
           : thickness <= 5   ? "2.5 to 5 mm"
                              : "above 5 mm";
}

enum trust_field {
    TRUST_MANUFACTURER,
    TRUST_MODEL,
    TRUST_KERNEL,
    TRUST_THICKNESS,
    TRUST_LOW,
    TRUST_HIGH,
    TRUST_FIELDS
};

/* Splits a line. Returns the next one. Missing fields are "". */
static char *
trust_split(char *line, const char *fields[TRUST_FIELDS])
{
    char *next = line + strcspn(line, "\n");
    if (*next)
        *next++ = '\0';
    for (int i = 0; i < TRUST_FIELDS; i++) {
        fields[i] = line;
        line += strcspn(line, "\t");
        if (*line)
            *line++ = '\0';
    }
    return next;
}

/* Returns the number of fields, from the first, that the images match; TRUST_FIELDS: all. */
static int
trust_match(const char *const fields[TRUST_FIELDS], const struct trust_images *images)
{
    const char *const own[] = {images->manufacturer, images->model, images->kernel, trust_thickness(images->slice_mm)};
    int matched = 0;
    while (matched <= TRUST_THICKNESS && strcmp(fields[matched], own[matched]) == 0)
        matched++;
    if (matched <= TRUST_THICKNESS)
        return matched;
    return !*fields[TRUST_HIGH] || images->noise <= strtod(fields[TRUST_HIGH], NULL) ? TRUST_FIELDS : matched;
}

bool
trust_covers(const char *ranges, const struct trust_images *images, char why[TRUST_WHY])
{
    char *text = strdup(ranges ? ranges : "");
    int best = -1;
    double highest = 0;
    for (char *line = text; line && *line;) {
        const char *fields[TRUST_FIELDS];
        line = trust_split(line, fields);
        const int matched = trust_match(fields, images);
        if (matched == TRUST_LOW)
            highest = fmax(highest, strtod(fields[TRUST_HIGH], NULL));
        best = matched > best ? matched : best;
    }
    free(text);
    if (best == TRUST_FIELDS)
        return true;
    const char *kernel = *images->kernel ? images->kernel : "not stated";
    if (best < TRUST_MANUFACTURER)
        snprintf(why, TRUST_WHY, "not validated at this site (noctule validate)");
    else if (best < TRUST_KERNEL)
        snprintf(why, TRUST_WHY, "not validated for this scanner (%.60s %.60s)", images->manufacturer, images->model);
    else if (best == TRUST_KERNEL)
        snprintf(why, TRUST_WHY, "not validated for this kernel (%.60s)", kernel);
    else if (best == TRUST_THICKNESS)
        snprintf(why, TRUST_WHY, "not validated for slices of %.4g mm", images->slice_mm);
    else if (isnan(images->noise))
        snprintf(why, TRUST_WHY, "not validated for this noise, which is not known");
    else
        snprintf(why, TRUST_WHY, "not validated for this noise (%.3g HU, validated up to %.3g HU)", images->noise,
                 highest);
    return false;
}

int
trust_digest(const struct conf_pipeline *pipeline, char digest[TRUST_DIGEST])
{
    struct digest value;
    char *options = conf_checked_text(pipeline), *text = NULL;
    const int version = (int)(strrchr(NOCTULE_VERSION, '.') - NOCTULE_VERSION);
    const int size = options ? asprintf(&text, "%.*s\n%s", version, NOCTULE_VERSION, options) : -1;
    int rc = size < 0 ? -ENOMEM : digest_bytes(text, (size_t)size, &value);
    free(options);
    if (size >= 0)
        free(text);
    if (rc == 0)
        memcpy(digest, value.sha256, TRUST_DIGEST);
    return rc;
}
