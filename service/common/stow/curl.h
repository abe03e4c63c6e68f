/*
 * curl.h - the calls of libcurl that STOW-RS needs, loaded when they are first asked for: libcurl brings
 * twenty libraries along, which nobody else needs (a program of the service starts in two thirds of the
 * time without them, and no worker has them in memory).
 */
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

/* NULL: it is not there; why, until the end of the process, is in *why. From any thread. */
const struct curl_calls *curl_calls(const char **why);

#endif
