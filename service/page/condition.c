/* condition.c - see condition.h. */
#include "service/page/condition.h"

#include "db/iso_time.h"

#include <errno.h>

static const struct {
    const char *kind, *message;
} condition_words[] = {

#define TROUBLE(kind, message) {#kind, message},
#include "service/common/troubles.def"
};

void
condition_hear(struct condition *condition, struct proto_reader *reader, int64_t now_ms)
{
    struct condition heard = {.heard_ms = now_ms};
    struct message_hindrance told;
    if (message_read_condition(reader, NULL))
        return;
    while (message_next_hindrance(reader, &told)) {
        if (told.kind < 0 || told.kind >= TROUBLE_KINDS || heard.troubles[told.kind].is_there) {
            reader->error = -EBADMSG;
            return;
        }
        heard.troubles[told.kind].is_there = true;
        heard.troubles[told.kind].since_ms = told.since_ms;
    }
    if (!reader->error)
        *condition = heard;
}

bool
condition_write(const struct condition *condition, int64_t now_ms, FILE *out)
{
    bool any = false;
    if (condition->heard_ms == 0 || now_ms - condition->heard_ms > 1000 * CONDITION_SECONDS) {
        fprintf(out, "daemon: noctuled has not told in the last %d s how it is\n",
                CONDITION_SECONDS);
        return true;
    }
    for (int i = 0; i < TROUBLE_KINDS; i++) {
        char since[ISO_TIME_SIZE];
        if (!condition->troubles[i].is_there)
            continue;
        any = true;
        fprintf(out, "%s: %s", condition_words[i].kind, condition_words[i].message);
        if (condition->troubles[i].since_ms > 0 &&
            iso_time_from_ms(condition->troubles[i].since_ms, since) == 0)
            fprintf(out, " (since %s)", since);
        fputc('\n', out);
    }
    return any;
}
