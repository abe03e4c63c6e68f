#include "service/web/server/web_rate.h"

#include <stdio.h>
#include <string.h>

#define REFILL_MS (60000.0 / WEB_RATE_BURST)

static double
rate_left(const struct web_rate *rate, int i, int64_t now_ms)
{
    const double left = rate->buckets[i].left + (double)(now_ms - rate->buckets[i].at_ms) / REFILL_MS;
    return left < WEB_RATE_BURST ? left : WEB_RATE_BURST;
}

/* Returns the bucket of the key, or the longest unused one. */
static int
rate_find(const struct web_rate *rate, const char *key)
{
    int oldest = 0;
    for (int i = 0; i < WEB_RATE_KEYS; i++) {
        if (strncmp(rate->buckets[i].key, key, sizeof rate->buckets[i].key - 1) == 0)
            return i;
        if (rate->buckets[i].at_ms < rate->buckets[oldest].at_ms)
            oldest = i;
    }
    return oldest;
}

bool
web_rate_has(const struct web_rate *rate, const char *key, int64_t now_ms)
{
    const int i = rate_find(rate, key);
    return strncmp(rate->buckets[i].key, key, sizeof rate->buckets[i].key - 1) != 0 || rate_left(rate, i, now_ms) >= 1;
}

bool
web_rate_use(struct web_rate *rate, const char *key, int64_t now_ms)
{
    const int i = rate_find(rate, key);
    const bool is_new = strncmp(rate->buckets[i].key, key, sizeof rate->buckets[i].key - 1) != 0;
    const double left = is_new ? WEB_RATE_BURST : rate_left(rate, i, now_ms);
    if (left < 1)
        return false;
    snprintf(rate->buckets[i].key, sizeof rate->buckets[i].key, "%s", key);
    rate->buckets[i].left = left - 1;
    rate->buckets[i].at_ms = now_ms;
    return true;
}
