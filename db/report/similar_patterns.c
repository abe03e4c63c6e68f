/*
 * similar_patterns.c - the search by pattern histograms.
 *
 * Coded histograms in blocks give a lower bound of each region's distance (pattern_code.h); rows behind the last block
 * give the distance itself. Regions are then read in the order of their bounds, until the next bound exceeds the
 * distance of the last one that is listed.
 */
#include "db/report/similar_private.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REASONS 3 /* codes in "why" */

/* A region with the lower bound of its distance. */
struct pattern_candidate {
    double bound;
    int64_t job;
    int32_t segment;
};

/* A search, or the part of a second thread: a copy with a connection, counts and arrays of its own. */
struct pattern_search {
    struct similar_search *common;
    struct database *db;
    struct report_similar_found *found;

    struct pattern_wanted {
        int64_t term; /* 0: no block has it */
        char name[16], *settings;
        double parts[PATTERN_CODES];
        struct pattern_query query;
    } wanted[PATTERN_KINDS];

    size_t wanted_count;
    int64_t pipeline; /* its term; 0: any, -1: no block has it */
    /* the regions of a block, and of each the sum of its bounds */
    struct pattern_region *regions;
    size_t region_count, region_room;

    struct pattern_sum {
        double bound;
        size_t patterns; /* in the sum */
        bool fits;
    } * sums;

    struct pattern_candidate *candidates; /* a heap, the lowest bound first */
    size_t candidate_count, candidate_room;

    int64_t *unlisted; /* ascending ids of jobs that are not listed; blocks do not know the states of jobs */
    size_t unlisted_count;
};

static int
pattern_no_memory(struct pattern_search *search)
{
    return database_refuse(search->db, -ENOMEM, "out of memory");
}

static int
pattern_is_damaged(struct pattern_search *search)
{
    return database_refuse(search->db, -EUCLEAN, "a block of pattern histograms is damaged");
}

/* ------------------------------------------------------------------------------- the query ---- */

static int
pattern_find_term(struct pattern_search *search, const char *kind, const char *name, const char *settings,
                  int64_t *term)
{
    *term = 0;
    const int rc = database_get(&search->common->report->db,
                                "SELECT id FROM pattern_term WHERE kind = ? AND name = ? AND settings = ?",
                                VALUES(value_text(kind), value_text(name), value_text(settings)), term);
    return rc < 0 ? rc : 0;
}

static int
pattern_want(struct pattern_search *search, sqlite3_stmt *row)
{
    const char *name = report_text(row, 0), *settings = report_text(row, 1);
    struct pattern_wanted *wanted = &search->wanted[search->wanted_count];
    if (search->wanted_count == PATTERN_KINDS)
        return database_refuse(&search->common->report->db, -EINVAL,
                               "the region has a pattern with several settings, which cannot be compared at once");
    const int rc = pattern_read(report_text(row, 2), wanted->parts);
    if (rc)
        return database_refuse(&search->common->report->db, rc == -ENODATA ? -ENOENT : rc,
                               rc == -ENODATA ? "the region is empty" : "its histogram cannot be read");
    snprintf(wanted->name, sizeof wanted->name, "%s", name);
    pattern_prepare(wanted->parts, &wanted->query);
    wanted->settings = strdup(settings);
    search->wanted_count++;
    char *text = search->common->found->settings;
    const size_t used = strlen(text), room = sizeof search->common->found->settings - used;
    snprintf(text + used, room, "%s%s%s%s%s", used ? ", " : "", name, *settings ? " (" : "", settings,
             *settings ? ")" : "");
    return wanted->settings ? pattern_find_term(search, "pattern", name, settings, &wanted->term)
                            : pattern_no_memory(search);
}

static int
pattern_read_query(struct pattern_search *search)
{
    struct similar_search *common = search->common;
    sqlite3_stmt *row;
    int rc = database_start(&common->report->db,
                            "SELECT h.pattern, h.settings, h.counts, " SIMILAR_GRID
                            " FROM pattern_histogram h JOIN job j ON j.id = h.job_id "
                            "WHERE h.job_id = ? AND h.segment_number = ? ORDER BY h.pattern, h.settings",
                            VALUES(value_int(common->job), value_int(common->segment)), &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(&common->report->db, row)) == 1) {
        common->grid = similar_grid_read(row, 3);
        if (similar_wants_pattern(common->query->by, report_text(row, 0)) && (rc = pattern_want(search, row)) < 0)
            break;
    }
    database_end(row);
    if (rc == 0 && search->wanted_count == 0)
        rc = database_refuse(&common->report->db, -ENOENT, "segment %d of job %lld has no histogram of %s",
                             (int)common->segment, (long long)common->job, report_similar_by_words[common->query->by]);
    if (rc == 0 && common->query->pipeline) {
        rc = pattern_find_term(search, "pipeline", common->query->pipeline, "", &search->pipeline);
        if (search->pipeline == 0)
            search->pipeline = -1;
    }
    return rc;
}

/* Indices find the few jobs that are not listed. */
static int
pattern_read_unlisted(struct pattern_search *search)
{
    struct database *db = &search->common->report->db;
    sqlite3_stmt *row;
    size_t room = 0;
    int rc = database_start(db,
                            "SELECT id FROM job WHERE superseded_by IS NOT NULL UNION SELECT id FROM job "
                            "WHERE state IN ('REVIEW', 'REJECTED', 'FAILED', 'CANCELLED') ORDER BY id",
                            NO_VALUES, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(db, row)) == 1) {
        if (search->unlisted_count == room) {
            room = room ? 2 * room : 256;
            int64_t *grown = realloc(search->unlisted, room * sizeof *grown);
            if (!grown) {
                rc = pattern_no_memory(search);
                break;
            }
            search->unlisted = grown;
        }
        search->unlisted[search->unlisted_count++] = sqlite3_column_int64(row, 0);
    }
    database_end(row);
    return rc;
}

static bool
pattern_is_listed(const struct pattern_search *search, int64_t job)
{
    size_t first = 0, end = search->unlisted_count;
    while (first < end) {
        const size_t middle = first + (end - first) / 2;
        if (search->unlisted[middle] == job)
            return false;
        if (search->unlisted[middle] < job)
            first = middle + 1;
        else
            end = middle;
    }
    return true;
}

/* -------------------------------------------------------------------------------- candidates -- */

static int
pattern_add_candidate(struct pattern_search *search, const struct pattern_region *region, double bound)
{
    if (search->candidate_count == search->candidate_room) {
        const size_t room = search->candidate_room ? 2 * search->candidate_room : 1024;
        struct pattern_candidate *grown = realloc(search->candidates, room * sizeof *grown);
        if (!grown)
            return pattern_no_memory(search);
        search->candidates = grown;
        search->candidate_room = room;
    }
    search->candidates[search->candidate_count++] =
        (struct pattern_candidate){.bound = bound, .job = region->job, .segment = region->segment};
    return 0;
}

/* Adds the regions of a block that can be compared, and counts the others. */
static int
pattern_end_block(struct pattern_search *search)
{
    struct report_similar_found *found = search->found;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < search->region_count; i++) {
        const struct pattern_sum *sum = &search->sums[i];
        if (search->regions[i].job == search->common->job ||
            (search->pipeline && search->regions[i].pipeline != search->pipeline) ||
            !pattern_is_listed(search, search->regions[i].job))
            continue;
        if (sum->patterns < search->wanted_count) {
            found->other_settings += sum->fits;
            found->other_grid += !sum->fits;
        } else {
            found->searched++;
            rc = pattern_add_candidate(search, &search->regions[i], sum->bound / (double)sum->patterns);
        }
    }
    search->region_count = 0;
    return rc;
}

static int
pattern_reserve(struct pattern_search *search, size_t count)
{
    if (count <= search->region_room)
        return 0;
    const size_t room = count > 2 * search->region_room ? count : 2 * search->region_room;
    struct pattern_region *regions = realloc(search->regions, room * sizeof *regions);
    if (regions)
        search->regions = regions;
    struct pattern_sum *sums = regions ? realloc(search->sums, room * sizeof *sums) : NULL;
    if (!sums)
        return pattern_no_memory(search);
    search->sums = sums;
    search->region_room = room;
    return 0;
}

/* Begins the sum of a region. A region on another grid, or of another pipeline, gets no bound. */
static void
pattern_begin_region(struct pattern_search *search, size_t place)
{
    const struct pattern_region *region = &search->regions[place];
    const struct similar_grid grid = {{region->spacing[0], region->spacing[1]}, (int)region->straightened};
    search->sums[place] =
        (struct pattern_sum){.fits = similar_grid_fits(search->common->query, &search->common->grid, &grid)};
}

static int
pattern_begin_block(struct pattern_search *search, const void *data, size_t size)
{
    const size_t count = size / sizeof(struct pattern_region);
    int rc = pattern_end_block(search);
    if (rc == 0)
        rc = size % sizeof(struct pattern_region) ? pattern_is_damaged(search) : pattern_reserve(search, count);
    if (rc < 0)
        return rc;
    if (count > 0)
        memcpy(search->regions, data, size);
    search->region_count = count;
    for (size_t i = 0; i < count; i++)
        pattern_begin_region(search, i);
    return 0;
}

static int
pattern_add_records(struct pattern_search *search, const struct pattern_wanted *wanted, const void *data, size_t size)
{
    const struct pattern_record *records = data;
    const enum pattern_distance distance = (enum pattern_distance)search->common->distance;
    if (size % sizeof *records)
        return pattern_is_damaged(search);
    for (size_t i = 0; i < size / sizeof *records; i++) {
        if (records[i].region >= search->region_count)
            return pattern_is_damaged(search);
        struct pattern_sum *sum = &search->sums[records[i].region];
        const struct pattern_region *region = &search->regions[records[i].region];
        if (!sum->fits || (search->pipeline && region->pipeline != search->pipeline))
            continue;
        sum->bound += pattern_bound(distance, &wanted->query, &records[i]);
        sum->patterns++;
    }
    return 0;
}

static int
pattern_take_block(struct pattern_search *search, sqlite3_stmt *row)
{
    const int64_t term = sqlite3_column_int64(row, 0);
    const void *data = sqlite3_column_blob(row, 1);
    const size_t size = (size_t)sqlite3_column_bytes(row, 1);
    if (term == 0)
        return pattern_begin_block(search, data, size);
    for (size_t i = 0; i < search->wanted_count; i++)
        if (search->wanted[i].term == term)
            return pattern_add_records(search, &search->wanted[i], data, size);
    return 0;
}

/* Reads the blocks behind `after` up to `until`. */
static int
pattern_scan_range(struct pattern_search *search, int64_t after, int64_t until)
{
    sqlite3_stmt *row;
    int rc = database_start(search->db,
                            "SELECT term_id, data FROM pattern_block WHERE last_id > ?4 AND last_id <= ?5 "
                            "AND term_id IN (0, ?1, ?2, ?3) ORDER BY last_id, term_id",
                            VALUES(value_int(search->wanted[0].term), value_int(search->wanted[1].term),
                                   value_int(search->wanted[2].term), value_int(after), value_int(until)),
                            &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(search->db, row)) == 1)
        if ((rc = pattern_take_block(search, row)) < 0)
            break;
    database_end(row);
    return rc < 0 ? rc : pattern_end_block(search);
}

/* The second half of the blocks, which another thread reads. */
struct pattern_half {
    struct pattern_search search;
    struct database db;
    struct report_similar_found found;
    const char *path;
    int64_t number, after; /* of pattern_change, as the first thread reads it; the last block of the first half */
    int rc;
};

/* Fails if the blocks have changed since the first thread began: both halves must be of one moment. */
static void *
half_run(void *context)
{
    struct pattern_half *half = context;
    int64_t number = 0;
    half->rc = database_open(&half->db, half->path, SQLITE_OPEN_READONLY);
    if (half->rc < 0)
        return NULL;
    half->rc = database_script(&half->db, "BEGIN");
    if (half->rc == 0)
        half->rc = database_get(&half->db, "SELECT number FROM pattern_change", NO_VALUES, &number);
    if (half->rc >= 0)
        half->rc = number == half->number ? pattern_scan_range(&half->search, half->after, INT64_MAX) : -EAGAIN;
    database_close(&half->db);
    return NULL;
}

/* Adds the regions that the other thread found. */
static int
half_take(struct pattern_search *search, const struct pattern_half *half)
{
    const size_t count = search->candidate_count + half->search.candidate_count;
    struct pattern_candidate *grown = realloc(search->candidates, (count + 1) * sizeof *grown);
    if (!grown)
        return pattern_no_memory(search);
    if (half->search.candidate_count > 0)
        memcpy(grown + search->candidate_count, half->search.candidates, half->search.candidate_count * sizeof *grown);
    search->candidates = grown;
    search->candidate_count = count;
    search->candidate_room = count + 1;
    search->found->searched += half->found.searched;
    search->found->other_settings += half->found.other_settings;
    search->found->other_grid += half->found.other_grid;
    return 0;
}

static int
pattern_scan_halves(struct pattern_search *search, struct pattern_half *half)
{
    pthread_t thread;
    half->path = sqlite3_db_filename(search->db->handle, "main");
    half->search = *search;
    half->search.db = &half->db;
    half->search.found = &half->found;
    const bool runs = pthread_create(&thread, NULL, half_run, half) == 0;
    int rc = pattern_scan_range(search, 0, half->after);
    if (runs)
        pthread_join(thread, NULL);
    if (rc == 0) /* a failure of the other thread has its message here */
        rc = runs && half->rc == 0 ? half_take(search, half) : pattern_scan_range(search, half->after, INT64_MAX);
    free(half->search.regions);
    free(half->search.sums);
    free(half->search.candidates);
    return rc;
}

static int
pattern_scan_blocks(struct pattern_search *search)
{
    struct pattern_half half = {.after = 0};
    int rc = database_get(search->db, "SELECT number FROM pattern_change", NO_VALUES, &half.number);
    if (rc >= 0 && search->common->query->two_threads)
        rc = database_get(search->db,
                          "SELECT last_id FROM pattern_block WHERE term_id = 0 ORDER BY last_id LIMIT 1 "
                          "OFFSET (SELECT count(*) / 2 FROM pattern_block WHERE term_id = 0)",
                          NO_VALUES, &half.after);
    if (rc < 0)
        return rc;
    return half.after > 0 ? pattern_scan_halves(search, &half) : pattern_scan_range(search, 0, INT64_MAX);
}

/* ------------------------------------------------------------------------ rows without a block - */

/* Finds the region of a row, or adds it. The rows of a job follow each other. */
static int
pattern_find_region(struct pattern_search *search, sqlite3_stmt *row, size_t *place)
{
    const int64_t job = sqlite3_column_int64(row, 0);
    const int32_t segment = sqlite3_column_int(row, 1);
    for (*place = search->region_count; *place > 0 && search->regions[*place - 1].job == job;)
        if (search->regions[--*place].segment == segment)
            return 0;
    *place = search->region_count;
    const int rc = pattern_reserve(search, *place + 1);
    if (rc < 0)
        return rc;
    const struct similar_grid grid = similar_grid_read(row, 6);
    const char *pipeline = search->common->query->pipeline;
    search->regions[search->region_count++] = (struct pattern_region){
        .job = job,
        .segment = segment,
        .pipeline = pipeline && strcmp(report_text(row, 5), pipeline) == 0 ? (int32_t)search->pipeline : 0,
        .spacing = {grid.spacing[0], grid.spacing[1]},
        .straightened = grid.straightened,
    };
    pattern_begin_region(search, *place);
    return 0;
}

/* Returns the pattern of the query that a row's columns `name` and `name` + 1 have, or NULL. */
static const struct pattern_wanted *
pattern_find_wanted(const struct pattern_search *search, sqlite3_stmt *row, int name)
{
    for (size_t i = 0; i < search->wanted_count; i++)
        if (strcmp(search->wanted[i].name, report_text(row, name)) == 0 &&
            strcmp(search->wanted[i].settings, report_text(row, name + 1)) == 0)
            return &search->wanted[i];
    return NULL;
}

static int
pattern_take_row(struct pattern_search *search, sqlite3_stmt *row)
{
    double parts[PATTERN_CODES];
    size_t place;
    int rc = pattern_read(report_text(row, 4), parts);
    if (rc == -ENODATA)
        return 0;
    if (rc < 0)
        return database_refuse(&search->common->report->db, rc, "a histogram of job %lld cannot be read",
                               (long long)sqlite3_column_int64(row, 0));
    rc = pattern_find_region(search, row, &place);
    const struct pattern_wanted *wanted = pattern_find_wanted(search, row, 2);
    if (rc == 0 && wanted && search->sums[place].fits) {
        search->sums[place].bound +=
            pattern_distance((enum pattern_distance)search->common->distance, wanted->parts, parts);
        search->sums[place].patterns++;
    }
    return rc;
}

static int
pattern_scan_rows(struct pattern_search *search)
{
    struct database *db = &search->common->report->db;
    sqlite3_stmt *row;
    int rc =
        database_start(db,
                       "SELECT h.job_id, h.segment_number, h.pattern, h.settings, h.counts, j.pipeline, " SIMILAR_GRID
                       " FROM pattern_histogram h JOIN job j ON j.id = h.job_id "
                       "WHERE h.id > (SELECT coalesce(max(last_id), 0) FROM pattern_block) ORDER BY h.id",
                       NO_VALUES, &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(db, row)) == 1)
        if ((rc = pattern_take_row(search, row)) < 0)
            break;
    database_end(row);
    return rc < 0 ? rc : pattern_end_block(search);
}

/* ---------------------------------------------------------------------------------- the heap -- */

static bool
candidate_is_before(const struct pattern_candidate *a, const struct pattern_candidate *b)
{
    return a->bound < b->bound;
}

/* Moves a candidate down to its place. */
static void
candidates_sink(struct pattern_candidate *heap, size_t count, size_t place)
{
    const struct pattern_candidate moved = heap[place];
    for (size_t child; (child = 2 * place + 1) < count; place = child) {
        child += child + 1 < count && candidate_is_before(&heap[child + 1], &heap[child]);
        if (!candidate_is_before(&heap[child], &moved))
            break;
        heap[place] = heap[child];
    }
    heap[place] = moved;
}

/* ---------------------------------------------------------------------------------- distances - */

/* The largest differences of two regions. */
struct pattern_reasons {
    struct pattern_reason {
        double weight, here, there;
        const char *pattern;
        int code;
    } items[REASONS];

    size_t count;
};

static void
differences_add(struct pattern_reasons *reasons, const struct pattern_reason *reason)
{
    size_t place = reasons->count < REASONS ? reasons->count++ : REASONS;
    for (; place > 0 && reasons->items[place - 1].weight < reason->weight; place--)
        if (place < REASONS)
            reasons->items[place] = reasons->items[place - 1];
    if (place < REASONS)
        reasons->items[place] = *reason;
}

static void
differences_collect(struct pattern_reasons *reasons, enum report_similar_distance distance,
                    const struct pattern_wanted *wanted, const double *parts)
{
    for (int code = 0; code < PATTERN_CODES; code++) {
        const double here = wanted->parts[code], there = parts[code], gap = fabs(here - there);
        if (gap > 0)
            differences_add(reasons, &(struct pattern_reason){.weight = distance == SIMILAR_CHI_SQUARE
                                                                            ? gap * gap / (here + there)
                                                                        : distance == SIMILAR_L1 ? gap
                                                                                                 : gap * gap,
                                                              .here = here,
                                                              .there = there,
                                                              .pattern = wanted->name,
                                                              .code = code});
    }
}

/* Returns the codes that contribute most to the distance, with their shares in both regions. */
static char *
differences_text(const struct pattern_reasons *reasons)
{
    char text[256] = "equal";
    for (size_t i = 0, used = 0; i < reasons->count; i++) {
        const struct pattern_reason *r = &reasons->items[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %d: %.2f %% and %.2f %%", i ? "; " : "",
                                 r->pattern, r->code, 100 * r->here, 100 * r->there);
    }
    return strdup(text);
}

/* Reads the distance of a region from its counts. Returns 1; 0 if it is not listed; -errno. */
static int
pattern_measure(struct pattern_search *search, const struct pattern_candidate *candidate, double *distance,
                struct pattern_reasons *reasons)
{
    struct database *db = &search->common->report->db;
    double parts[PATTERN_CODES], sum = 0;
    size_t patterns = 0;
    sqlite3_stmt *row;
    int rc =
        database_start(db,
                       "SELECT h.pattern, h.settings, h.counts FROM job j JOIN pattern_histogram h ON h.job_id = j.id "
                       "WHERE j.id = ? AND h.segment_number = ? AND " SIMILAR_LISTED " ORDER BY h.pattern, h.settings",
                       VALUES(value_int(candidate->job), value_int(candidate->segment)), &row);
    if (rc < 0)
        return rc;
    while ((rc = database_step(db, row)) == 1) {
        const struct pattern_wanted *wanted = pattern_find_wanted(search, row, 0);
        if (!wanted || pattern_read(report_text(row, 2), parts) != 0)
            continue;
        sum += pattern_distance((enum pattern_distance)search->common->distance, wanted->parts, parts);
        patterns++;
        if (reasons)
            differences_collect(reasons, search->common->distance, wanted, parts);
    }
    database_end(row);
    *distance = sum / (double)search->wanted_count;
    return rc < 0 ? rc : patterns == search->wanted_count;
}

static int
pattern_rank(struct pattern_search *search)
{
    struct similar_search *common = search->common;
    struct pattern_candidate *heap = search->candidates;
    size_t count = search->candidate_count;
    int rc = 0;
    for (size_t i = count / 2; i > 0; i--)
        candidates_sink(heap, count, i - 1);
    while (rc >= 0 && count > 0 && similar_is_near(common, heap[0].bound * (1 - 1e-12))) {
        double distance;
        rc = pattern_measure(search, &heap[0], &distance, NULL);
        if (rc == 1)
            similar_add_hit(common, &(struct similar_hit){distance, heap[0].job, heap[0].segment, NULL});
        heap[0] = heap[--count];
        if (count > 0)
            candidates_sink(heap, count, 0);
    }
    for (size_t i = 0; rc >= 0 && i < common->hit_count; i++) {
        struct similar_hit *hit = &common->hits[i];
        struct pattern_reasons reasons = {.count = 0};
        rc = pattern_measure(search, &(struct pattern_candidate){0, hit->job, hit->segment}, &hit->distance, &reasons);
        hit->why = differences_text(&reasons);
        if (!hit->why)
            rc = pattern_no_memory(search);
    }
    return rc < 0 ? rc : 0;
}

int
similar_by_patterns(struct similar_search *common)
{
    struct pattern_search *search = calloc(1, sizeof *search);
    if (!search)
        return database_refuse(&common->report->db, -ENOMEM, "out of memory");
    search->common = common;
    search->db = &common->report->db;
    search->found = common->found;
    int rc = pattern_read_query(search);
    if (rc == 0)
        rc = pattern_read_unlisted(search);
    if (rc == 0)
        rc = pattern_scan_blocks(search);
    if (rc == 0)
        rc = pattern_scan_rows(search);
    if (rc == 0)
        rc = pattern_rank(search);
    for (size_t i = 0; i < search->wanted_count; i++)
        free(search->wanted[i].settings);
    free(search->regions);
    free(search->sums);
    free(search->candidates);
    free(search->unlisted);
    free(search);
    return rc;
}
