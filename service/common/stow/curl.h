/* curl.h - the functions of libcurl that STOW-RS needs, loaded on first use. libcurl depends on
 * twenty libraries that no other part needs. Without them a program of the service starts in two
 * thirds of the time, and workers do not load them. */
#ifndef NOCTULE_SERVICE_COMMON_STOW_CURL_H
#define NOCTULE_SERVICE_COMMON_STOW_CURL_H

#include <curl/curl.h>

struct curl_calls {
    CURL *(*init)(void);
    void (*cleanup)(CURL *curl);
    void (*reset)(CURL *curl);
    CURLcode (*set)(CURL *curl, CURLoption option, ...);
    CURLcode (*get)(CURL *curl, CURLINFO info, ...);
    CURLcode (*perform)(CURL *curl);
    const char *(*words)(CURLcode result);
    struct curl_slist *(*append)(struct curl_slist *list, const char *text);
    void (*free_all)(struct curl_slist *list);
};

/* Returns the functions, or NULL if libcurl cannot be loaded. *why then has the reason, valid until
 * the process ends. Thread-safe. */
const struct curl_calls *curl_calls(const char **why);

#endif
