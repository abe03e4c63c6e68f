/* web_rate.h - limits on how often a person decides, and a peer fails to log in. The caller must lock. */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_RATE_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_RATE_H

#include <stdbool.h>
#include <stdint.h>

#define WEB_RATE_BURST 60 /* at once, and per minute */
#define WEB_RATE_KEYS  64 /* the longest unused one makes room for a new one */

struct web_rate {
    struct {
        char key[96];
        double left;
        int64_t at_ms;
    } buckets[WEB_RATE_KEYS];
};

/* Counts one use of the key. Returns false above the limit. */
bool web_rate_use(struct web_rate *rate, const char *key, int64_t now_ms);
/* Returns whether the key is below the limit, without a use. */
bool web_rate_has(const struct web_rate *rate, const char *key, int64_t now_ms);

#endif
