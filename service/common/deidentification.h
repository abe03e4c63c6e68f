/*
 * deidentification.h - settings of de-identified copies, from the configuration and the key of the installation.
 */
#ifndef NOCTULE_SERVICE_COMMON_DEIDENTIFICATION_H
#define NOCTULE_SERVICE_COMMON_DEIDENTIFICATION_H

#include "config/config.h"
#include "dicom/deidentify/deidentify.h"
#include "service/common/pseudonym.h"

struct deidentification {
    struct deidentify how;
    char **words; /* of the configuration; private */
    size_t room;
};

/* Fills the settings of a destination. The settings keep a pointer to the key. They allow the words of all pipelines,
 * because texts of the configuration identify no patient. Returns 0 or -ENOMEM. The caller must call
 * deidentification_free() in both cases. */
int deidentification_of(const struct conf *conf, const struct conf_deidentify *settings,
                        const struct pseudonym_key *key, struct deidentification *made);
void deidentification_free(struct deidentification *made);

#endif
