#include "service/common/deidentification.h"

#include "base/array.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Texts that Noctule writes into its objects, besides those of pipelines: names, descriptions, and units. */
static const char own_words[] =
    "Noctule noctuled segment removed lesion region hnsf U HU Bq ml g cm2 " NOCTULE_VERSION
    " Background segmentation fractional label map structures measurements and their settings "
    "LBP TLBAP LANADP code Image Biomarker Standardisation Initiative";

static bool
is_of_word(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Adds the words of a text, as cleaned_words() splits them. */
static int
add_words(struct deidentification *made, const char *text)
{
    for (const char *at = text; *at;) {
        const char *end = at;
        while (is_of_word(*end))
            end++;
        if (end == at) {
            at++;
            continue;
        }
        char **grown = array_grow(made->words, &made->room, made->how.word_count + 1, sizeof *grown);
        if (!grown)
            return -ENOMEM;
        made->words = grown;
        char *word = strndup(at, (size_t)(end - at));
        if (!word)
            return -ENOMEM;
        for (char *c = word; *c; c++)
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        made->words[made->how.word_count++] = word;
        at = end;
    }
    return 0;
}

static int
compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int
deidentification_of(const struct conf *conf, const struct conf_deidentify *settings, const struct pseudonym_key *key,
                    struct deidentification *made)
{
    *made = (struct deidentification){.how = {.keep = settings->keep,
                                              .no_patient = settings->patient == CONF_PATIENT_EMPTY,
                                              .digest = pseudonym_digest,
                                              .key = key}};
    int rc = add_words(made, own_words);
    for (size_t i = 0; i < settings->word_count && !rc; i++)
        rc = add_words(made, settings->words[i]);
    for (size_t i = 0; i < conf->pipeline_count && !rc; i++) {
        char *text = conf_pipeline_to_text(&conf->pipelines[i]);
        rc = text ? add_words(made, text) : -ENOMEM;
        free(text);
    }
    if (rc)
        return rc;
    qsort(made->words, made->how.word_count, sizeof *made->words, compare_words);
    made->how.words = (const char *const *)made->words;
    return 0;
}

void
deidentification_free(struct deidentification *made)
{
    for (size_t i = 0; i < made->how.word_count; i++)
        free(made->words[i]);
    free(made->words);
    *made = (struct deidentification){0};
}
