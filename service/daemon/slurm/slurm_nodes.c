#include "service/daemon/slurm/slurm_nodes.h"

#include "base/array.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nodes_row *
nodes_find(const struct nodes *nodes, const char *name)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->rows[i].name, name) == 0)
            return &nodes->rows[i];
    }
    return NULL;
}

bool
nodes_lost(struct nodes *nodes, const char *name, uint64_t now_ms)
{
    struct nodes_row *row = nodes_find(nodes, name);
    if (!row) {
        if (!*name || strlen(name) >= sizeof row->name || strpbrk(name, ",[] "))
            return false; /* not the name of one node */
        row = array_grow(nodes->rows, &nodes->room, nodes->count + 1, sizeof *row);
        if (!row)
            return false;
        nodes->rows = row;
        row = &nodes->rows[nodes->count++];
        *row = (struct nodes_row){0};
        snprintf(row->name, sizeof row->name, "%s", name);
    }
    if (++row->lost < NODES_LOST_MAX)
        return false;
    row->lost = 0;
    row->until_ms = now_ms + NODES_REST_MS;
    return true;
}

void
nodes_well(struct nodes *nodes, const char *name)
{
    struct nodes_row *row = nodes_find(nodes, name);
    if (row)
        row->lost = 0;
}

char *
nodes_excluded(struct nodes *nodes, uint64_t now_ms)
{
    struct text_stream stream;
    const char *between = "";
    if (text_open(&stream))
        return NULL;
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->rows[i].until_ms <= now_ms)
            continue;
        fprintf(stream.out, "%s%s", between, nodes->rows[i].name);
        between = ",";
    }
    return text_close(&stream) ? NULL : stream.bytes;
}

void
nodes_free(struct nodes *nodes)
{
    free(nodes->rows);
}
