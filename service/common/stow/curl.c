#include "service/common/stow/curl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

static once_flag curl_once = ONCE_FLAG_INIT;
static struct curl_calls calls;
static bool curl_is_there;
static char curl_why[256];

static bool
curl_find(void *library, const char *name, void *call, size_t size)
{
    void *found = dlsym(library, name);
    memcpy(call, &found, size); /* POSIX guarantees that a function pointer fits */
    return found != NULL;
}

#define FIND(member, name) curl_find(library, name, &calls.member, sizeof calls.member)

static void
curl_load(void)
{
    CURLcode (*begin)(long flags) = NULL;
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    curl_is_there = library && FIND(init, "curl_easy_init") && FIND(cleanup, "curl_easy_cleanup") &&
                    FIND(reset, "curl_easy_reset") && FIND(set, "curl_easy_setopt") && FIND(get, "curl_easy_getinfo") &&
                    FIND(perform, "curl_easy_perform") && FIND(words, "curl_easy_strerror") &&
                    FIND(append, "curl_slist_append") && FIND(free_all, "curl_slist_free_all") &&
                    curl_find(library, "curl_global_init", &begin, sizeof begin) &&
                    begin(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    const char *why = curl_is_there ? NULL : dlerror();
    snprintf(curl_why, sizeof curl_why, "%s", why ? why : "libcurl cannot be used");
}

const struct curl_calls *
curl_calls(const char **why)
{
    call_once(&curl_once, curl_load);
    *why = curl_why;
    return curl_is_there ? &calls : NULL;
}
