/* output_tail.c - see work_folder.h. */
#include "service/common/program/work_folder.h"

#include <string.h>

void
output_tail_add(struct output_tail *tail, const char *bytes, size_t size)
{
    const size_t room = sizeof tail->bytes;
    for (size_t done = 0; done < size;) {
        const size_t piece = size - done < room - tail->next ? size - done : room - tail->next;
        memcpy(tail->bytes + tail->next, bytes + done, piece);
        tail->next = (tail->next + piece) % room;
        done += piece;
    }
    tail->used = tail->used + size < room ? tail->used + size : room;
}

size_t
output_tail_copy(const struct output_tail *tail, char text[LIMIT_PROGRAM_OUTPUT_BYTES + 1])
{
    const size_t start = tail->used < sizeof tail->bytes ? 0 : tail->next;
    memcpy(text, tail->bytes + start, tail->used - start);
    memcpy(text + tail->used - start, tail->bytes, start);
    text[tail->used] = '\0';
    return tail->used;
}
