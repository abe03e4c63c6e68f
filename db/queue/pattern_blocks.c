/*
 * pattern_blocks.c - blocks of coded histograms (pattern_block), made from the rows of pattern_histogram.
 *
 * A block has the rows of a range of ids, from the end of the block before it up to the last row of a job. Rows behind
 * the last block are read one by one, so that blocks need not be made at once.
 */
#include "db/pattern_code.h"
#include "db/queue/queue_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_IDS     3072 /* with three patterns, 1,024 regions: 0.8 MB */
#define BLOCK_REGIONS 65536

/* Histograms of a pattern. */
struct pattern_group {
    int64_t term;
    struct pattern_record *records;
    size_t count, room;
};

struct pattern_block {
    struct queue *queue;
    int64_t first_id, last_id;
    struct pattern_region *regions;
    size_t region_count, region_room;
    struct pattern_group *groups;
    size_t group_count;
};

static void *
block_grow(void *items, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return items;
    const size_t wanted = *room ? *room * 2 : 64;
    void *grown = realloc(items, wanted * size);
    if (grown)
        *room = wanted;
    return grown;
}

static int
block_term(struct queue *queue, const char *kind, const char *name, const char *settings, int64_t *term)
{
    int rc = database_get(&queue->db, "SELECT id FROM pattern_term WHERE kind = ? AND name = ? AND settings = ?",
                          VALUES(value_text(kind), value_text(name), value_text(settings)), term);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    rc = database_run(&queue->db, "INSERT INTO pattern_term (kind, name, settings) VALUES (?, ?, ?)",
                      VALUES(value_text(kind), value_text(name), value_text(settings)));
    *term = sqlite3_last_insert_rowid(queue->db.handle);
    return rc;
}

/* Finds the region of a row, or adds it. The rows of a job follow each other. */
static int
block_region(struct pattern_block *block, sqlite3_stmt *row, uint32_t *place)
{
    const int64_t job = sqlite3_column_int64(row, 0);
    const int32_t segment = sqlite3_column_int(row, 1);
    int64_t pipeline;
    for (size_t i = block->region_count; i > 0 && block->regions[i - 1].job == job; i--)
        if (block->regions[i - 1].segment == segment) {
            *place = (uint32_t)(i - 1);
            return 0;
        }
    const int rc = block_term(block->queue, "pipeline", (const char *)sqlite3_column_text(row, 5), "", &pipeline);
    void *grown = block_grow(block->regions, block->region_count, &block->region_room, sizeof *block->regions);
    if (rc < 0 || !grown || block->region_count == BLOCK_REGIONS)
        return rc < 0 ? rc : -ENOMEM;
    block->regions = grown;
    block->regions[block->region_count] = (struct pattern_region){
        .job = job,
        .segment = segment,
        .pipeline = (int32_t)pipeline,
        .spacing = {sqlite3_column_double(row, 6), sqlite3_column_double(row, 7)},
        .straightened = sqlite3_column_int64(row, 8),
    };
    *place = (uint32_t)block->region_count++;
    return 0;
}

static int
block_group(struct pattern_block *block, int64_t term, struct pattern_group **group)
{
    for (size_t i = 0; i < block->group_count; i++)
        if (block->groups[i].term == term) {
            *group = &block->groups[i];
            return 0;
        }
    struct pattern_group *grown = realloc(block->groups, (block->group_count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    block->groups = grown;
    *group = &grown[block->group_count++];
    **group = (struct pattern_group){.term = term};
    return 0;
}

static int
block_add_row(struct pattern_block *block, sqlite3_stmt *row)
{
    double parts[PATTERN_CODES];
    struct pattern_group *group = NULL;
    uint32_t place = 0;
    int64_t term;
    int rc = pattern_read((const char *)sqlite3_column_text(row, 4), parts);
    if (rc == -ENODATA) /* an empty region has no texture */
        return 0;
    if (rc == 0)
        rc = block_region(block, row, &place);
    if (rc == 0)
        rc = block_term(block->queue, "pattern", (const char *)sqlite3_column_text(row, 2),
                        (const char *)sqlite3_column_text(row, 3), &term);
    if (rc == 0)
        rc = block_group(block, term, &group);
    if (rc < 0)
        return rc;
    struct pattern_record *grown = block_grow(group->records, group->count, &group->room, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    group->records = grown;
    group->records[group->count].region = place;
    pattern_encode(parts, &group->records[group->count++]);
    return 0;
}

static int
block_read(struct pattern_block *block)
{
    sqlite3_stmt *row;
    int rc = database_start(&block->queue->db,
                            "SELECT h.job_id, h.segment_number, h.pattern, h.settings, h.counts, j.pipeline, "
                            "coalesce(round(j.spacing_x_mm, 6), -1), coalesce(round(j.spacing_y_mm, 6), -1), "
                            "coalesce(j.straightened, '') <> '' FROM pattern_histogram h "
                            "JOIN job j ON j.id = h.job_id WHERE h.id BETWEEN ? AND ? ORDER BY h.id",
                            VALUES(value_int(block->first_id), value_int(block->last_id)), &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&block->queue->db, row)) == 1)
        if ((rc = block_add_row(block, row)) < 0) {
            database_refuse(&block->queue->db, rc, "histograms %lld to %lld: %s", (long long)block->first_id,
                            (long long)block->last_id, strerror(-rc));
            break;
        }
    database_end(row);
    return rc;
}

static int
block_write_part(const struct pattern_block *block, int64_t term, const void *data, size_t size)
{
    return database_run(
        &block->queue->db, "INSERT INTO pattern_block (last_id, term_id, first_id, data) VALUES (?, ?, ?, ?)",
        VALUES(value_int(block->last_id), value_int(term), value_int(block->first_id), value_blob(data, size)));
}

/* Makes the block of a range, or makes it again. A range without rows keeps its place, so that blocks have no gap. */
static int
block_make(struct pattern_block *block)
{
    int rc = database_run(&block->queue->db, "DELETE FROM pattern_block WHERE last_id = ?",
                          VALUES(value_int(block->last_id)));
    if (rc == 0)
        rc = database_run(&block->queue->db, "UPDATE pattern_change SET number = number + 1", NO_VALUES);
    if (rc == 0)
        rc = block_read(block);
    if (rc == 0)
        rc = block_write_part(block, 0, block->region_count ? (const void *)block->regions : "",
                              block->region_count * sizeof *block->regions);
    for (size_t i = 0; rc == 0 && i < block->group_count; i++)
        rc = block_write_part(block, block->groups[i].term, block->groups[i].records,
                              block->groups[i].count * sizeof *block->groups[i].records);
    for (size_t i = 0; i < block->group_count; i++)
        free(block->groups[i].records);
    free(block->groups);
    free(block->regions);
    return rc;
}

/* Finds a block that lost rows, else the range behind the last block. Returns 1, 0 if there is none, or -errno. */
static int
block_find(struct pattern_block *block)
{
    struct database *db = &block->queue->db;
    int rc = database_get(db, "SELECT last_id FROM pattern_block WHERE stale ORDER BY last_id LIMIT 1", NO_VALUES,
                          &block->last_id);
    if (rc == 1)
        return database_get(db, "SELECT first_id FROM pattern_block WHERE last_id = ? AND term_id = 0",
                            VALUES(value_int(block->last_id)), &block->first_id);
    if (rc == 0)
        rc = database_get(db, "SELECT 1 + coalesce(max(last_id), 0) FROM pattern_block", NO_VALUES, &block->first_id);
    if (rc == 1)
        rc = database_get(db,
                          "SELECT max(id) FROM pattern_histogram WHERE job_id = (SELECT job_id FROM pattern_histogram "
                          "WHERE id >= ? ORDER BY id LIMIT 1) HAVING max(id)",
                          VALUES(value_int(block->first_id + BLOCK_IDS - 1)), &block->last_id);
    return rc;
}

int
queue_block_patterns(struct queue *queue, bool *more)
{
    struct pattern_block block = {.queue = queue};
    int rc = queue_enter(queue);
    *more = false;
    if (rc < 0)
        return rc;
    rc = block_find(&block);
    *more = rc == 1;
    if (rc == 1)
        rc = block_make(&block);
    return queue_leave(queue, rc < 0 ? rc : 0);
}
