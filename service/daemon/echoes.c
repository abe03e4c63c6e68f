/* echoes.c - see echoes.h. A client's number is the token of its echo. */
#include "echoes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct echo {
    struct echo *next;
    struct control *control;
    int64_t client;
};

struct echoes {
    struct core *core;
    struct echo *first;
};

static int
add(struct echoes *echoes, struct control *control, int64_t client)
{
    struct echo *echo = malloc(sizeof *echo);
    if (!echo)
        return -ENOMEM;
    *echo = (struct echo){echoes->first, control, client};
    echoes->first = echo;
    return 0;
}

/* Answers the first that `client` waits for, if there is one. */
static void
answer(struct echoes *echoes, int64_t client, int status, const char *sentence)
{
    struct echo **link = &echoes->first;
    while (*link && (*link)->client != client)
        link = &(*link)->next;
    struct echo *echo = *link;
    if (!echo)
        return;
    *link = echo->next;
    control_answer(echo->control, client, status, sentence);
    free(echo);
}

static int
send_echo(struct core *core, int64_t token, const char *destination)
{
    struct proto_writer writer;
    if (core->courier < 0)
        return -EPIPE;
    proto_start(&writer, PROTO_ECHO);
    proto_put_i64(&writer, token);
    proto_put_str(&writer, destination);
    return pool_send(core->pool, core->courier, &writer);
}

void
echoes_ask(struct echoes *echoes, struct control *control, int64_t client, const char *destination)
{
    char sentence[256];
    if (!conf_find_destination(echoes->core->conf, destination)) {
        snprintf(sentence, sizeof sentence, "no destination is named \"%s\"", destination);
        control_answer(control, client, -ENOENT, sentence);
        return;
    }
    if (add(echoes, control, client)) {
        control_answer(control, client, -ENOMEM, "the daemon is out of memory");
        return;
    }
    int error = send_echo(echoes->core, client, destination);
    if (error)
        answer(echoes, client, error, "the courier does not run at the moment");
}

void
echoes_frame(struct echoes *echoes, struct proto_reader *reader)
{
    int64_t client = proto_get_i64(reader);
    int64_t status = proto_get_i64(reader);
    const char *sentence = proto_get_str(reader);
    if (status > 0 || status < -4095)
        reader->error = -EBADMSG;
    if (proto_end(reader) == 0)
        answer(echoes, client, (int)status, sentence);
}

void
echoes_courier_gone(struct echoes *echoes)
{
    while (echoes->first)
        answer(echoes, echoes->first->client, -EPIPE, "the courier ended before it could tell");
}

int
echoes_open(struct core *core, struct echoes **out)
{
    struct echoes *echoes = calloc(1, sizeof *echoes);
    if (!echoes)
        return -ENOMEM;
    echoes->core = core;
    *out = echoes;
    return 0;
}

void
echoes_close(struct echoes *echoes)
{
    if (!echoes)
        return;
    struct echo *next;
    for (struct echo *echo = echoes->first; echo; echo = next) {
        next = echo->next;
        free(echo);
    }
    free(echoes);
}
