/* sender_chain.c - see sender.h. */
#include "service/sender/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int
sender_chain_add(const struct pseudonym_key *key, const char *file, char chain[SENDER_CHAIN])
{
    uint8_t digest[PSEUDONYM_DIGEST];
    char *text = NULL;
    if (asprintf(&text, "%s %s", chain, file) < 0)
        return -ENOMEM;
    const int rc = pseudonym_digest(key, text, digest);
    free(text);
    for (size_t i = 0; i < sizeof digest && rc == 0; i++)
        snprintf(chain + 2 * i, 3, "%02x", digest[i]);
    return rc;
}

int
sender_chain_begin(const struct conf_destination *to, const struct deidentify *how, const struct pseudonym_key *key,
                   char chain[SENDER_CHAIN])
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return -ENOMEM;
    fprintf(out, "%s %s %d %s %s", to->host ? to->host : "", to->ae_title ? to->ae_title : "", to->port,
            to->folder ? to->folder : "", to->stow ? to->stow : "");
    if (to->deidentify)
        fprintf(out, " %u %d", how->keep, how->no_patient);
    for (size_t i = 0; to->deidentify && i < how->word_count; i++)
        fprintf(out, "\n%s", how->words[i]);
    if (fclose(out)) {
        free(text);
        return -ENOMEM;
    }
    chain[0] = '\0';
    const int rc = sender_chain_add(key, text, chain);
    free(text);
    return rc;
}
