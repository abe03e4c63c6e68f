#include "service/web/decide/web_looks.h"

#include "service/common/log.h"
#include "service/common/wire/messages.h"

#include <string.h>
#include <xxhash.h>

#define HOUR_MS INT64_C(3600000)

/* Returns a hash of person, job and hour; never 0. */
static uint64_t
looks_hash(const struct web_person *person, int64_t job, int64_t hour)
{
    char text[PERSON_NAME + 64];
    snprintf(text, sizeof text, "%s\n%lld\n%lld", person->name, (long long)job, (long long)hour);
    const uint64_t hash = XXH3_64bits(text, strlen(text));
    return hash ? hash : 1;
}

void
web_looks_add(struct web_looks *looks, const struct web_person *person, const char *address, int64_t job,
              int64_t now_ms)
{
    const uint64_t hash = looks_hash(person, job, now_ms / HOUR_MS);
    uint64_t *known = &looks->known[hash % WEB_LOOKS_KNOWN];
    bool lost = false;
    pthread_mutex_lock(&looks->lock);
    if (*known != hash && looks->count < WEB_LOOKS_WAITING) {
        struct web_look *look = &looks->waiting[looks->count++];
        *look = (struct web_look){.job = job, .person = *person};
        snprintf(look->address, sizeof look->address, "%s", address);
        *known = hash;
    } else if (*known != hash) {
        lost = looks->lost++ == 0;
    }
    pthread_mutex_unlock(&looks->lock);
    if (lost)
        log_error("page.looks", LOG_STR("error", "noctuled does not take who looked at which job: the audit lacks it"));
}

bool
web_looks_wait(struct web_looks *looks)
{
    pthread_mutex_lock(&looks->lock);
    const bool waits = looks->count > 0;
    pthread_mutex_unlock(&looks->lock);
    return waits;
}

bool
web_looks_take(struct web_looks *looks, struct proto_writer *writer)
{
    pthread_mutex_lock(&looks->lock);
    const bool takes = looks->count > 0;
    if (takes) {
        const struct web_look *look = &looks->waiting[0];
        message_write_looked(writer, &(struct message_looked){.job = look->job,
                                                              .person = look->person.name,
                                                              .how = look->person.how,
                                                              .role = person_roles[look->person.role],
                                                              .address = look->address});
        memmove(looks->waiting, looks->waiting + 1, --looks->count * sizeof *looks->waiting);
    }
    looks->lost = 0;
    pthread_mutex_unlock(&looks->lock);
    return takes;
}
