/* output_tail.c - see output_tail.h. */
#include "service/common/program/output_tail.h"

#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define READ_BYTES (1 << 20)

size_t
output_tail_read(struct output_tail *tail, int fd)
{
    size_t total = 0;
    while (total < READ_BYTES) {
        const ssize_t size = read(fd, tail->bytes + tail->next, sizeof tail->bytes - tail->next);
        if (size <= 0)
            break;
        total += (size_t)size;
        tail->next = (tail->next + (size_t)size) % sizeof tail->bytes;
        tail->used = tail->used + (size_t)size < sizeof tail->bytes ? tail->used + (size_t)size : sizeof tail->bytes;
    }
    return total;
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
