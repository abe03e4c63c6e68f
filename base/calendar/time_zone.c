/*
 * time_zone.c - see time_zone.h. The C library supports one zone at a time for all threads, that of the environment. It
 * is therefore used for the host's zone only.
 */
#include "base/calendar/time_zone.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DAY           INT64_C(86400)
#define FILE_SIZE_MAX 65536 /* bytes; the largest file has less than 4000 */
#define ZONE_NAME_MAX 64
#define HEADER_SIZE   44

/* Time of a yearly clock change: the day, and the second of the day. */
struct zone_change {
    char kind; /* 'M': the week-th weekday of a month; 'J': a day of the year without February 29;
                  '0': a day of the year from 0, with February 29 */
    int month, week, day;
    int64_t second;
};

/* The rule after the last change of the file. */
struct zone_rule {
    bool has_summer;
    int64_t winter, summer; /* offsets */
    struct zone_change begin, end;
};

struct time_zone {
    size_t count;
    int64_t first; /* the offset before the first change */
    struct zone_rule rule;

    struct zone_step {
        int64_t at, offset;
    } steps[];
};

/* ------------------------------------------------------------------------------ the calendar - */

/* Eras of 400 years begin on March 1, so that a leap day is the last day of its year. */
int64_t
time_zone_day(int64_t year, int month, int day)
{
    year -= month <= 2;
    const int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t
zone_year(int64_t day)
{
    int64_t year = 1970 + day / 366;
    while (time_zone_day(year + 1, 1, 1) <= day)
        year++;
    while (time_zone_day(year, 1, 1) > day)
        year--;
    return year;
}

/* Returns the civil time of a change in a year. */
static int64_t
zone_change_in(const struct zone_change *change, int64_t year)
{
    const int64_t first = time_zone_day(year, 1, 1);
    int64_t day;
    if (change->kind == 'M') {
        const int64_t month = time_zone_day(year, change->month, 1);
        const int64_t next =
            change->month == 12 ? time_zone_day(year + 1, 1, 1) : time_zone_day(year, change->month + 1, 1);
        const int64_t weekday = ((month + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        day = month + (change->day - weekday + 7) % 7 + 7 * (int64_t)(change->week - 1);
        while (day >= next)
            day -= 7;
    } else {
        const bool leaps = time_zone_day(year, 3, 1) - first == 60;
        day = first + change->day - (change->kind == 'J');
        day += change->kind == 'J' && leaps && change->day >= 60;
    }
    return day * DAY + change->second;
}

/* ------------------------------------------------------------ "CET-1CEST,M3.5.0,M10.5.0/3" --- */

/* Each reads its part of the text, advances, and returns whether the part was there. */

static bool
rule_take(const char **at, char wanted)
{
    const bool is_there = **at == wanted;
    *at += is_there;
    return is_there;
}

static bool
rule_take_name(const char **at)
{
    const char *from = *at;
    if (rule_take(at, '<')) {
        *at += strcspn(*at, ">");
        return rule_take(at, '>');
    }
    while (isalpha((unsigned char)**at))
        (*at)++;
    return *at - from >= 3;
}

static bool
rule_take_number(const char **at, int least, int most, int *number)
{
    const char *from = *at;
    *number = 0;
    while (isdigit((unsigned char)**at) && *at - from < 4)
        *number = 10 * *number + *(*at)++ - '0';
    return *at > from && *number >= least && *number <= most;
}

/* [+-]h[:m[:s]] */
static bool
rule_take_time(const char **at, int64_t *seconds)
{
    const bool minus = rule_take(at, '-');
    int hours, minutes = 0, rest = 0;
    if (!minus)
        rule_take(at, '+');
    if (!rule_take_number(at, 0, 167, &hours) || (rule_take(at, ':') && !rule_take_number(at, 0, 59, &minutes)) ||
        (rule_take(at, ':') && !rule_take_number(at, 0, 59, &rest)))
        return false;
    *seconds = (minus ? -1 : 1) * (3600 * (int64_t)hours + 60 * (int64_t)minutes + rest);
    return true;
}

static bool
rule_take_change(const char **at, struct zone_change *change)
{
    *change = (struct zone_change){.kind = '0', .second = 7200};
    if (!rule_take(at, ','))
        return false;
    if (rule_take(at, 'M')) {
        change->kind = 'M';
        if (!rule_take_number(at, 1, 12, &change->month) || !rule_take(at, '.') ||
            !rule_take_number(at, 1, 5, &change->week) || !rule_take(at, '.') ||
            !rule_take_number(at, 0, 6, &change->day))
            return false;
    } else {
        change->kind = rule_take(at, 'J') ? 'J' : '0';
        if (!rule_take_number(at, change->kind == 'J', 365, &change->day))
            return false;
    }
    return !rule_take(at, '/') || rule_take_time(at, &change->second);
}

/* The offset in the text counts westward. */
static bool
rule_read(const char *text, struct zone_rule *rule)
{
    int64_t west;
    *rule = (struct zone_rule){0};
    if (!rule_take_name(&text) || !rule_take_time(&text, &west))
        return false;
    rule->winter = -west;
    if (!*text)
        return true;
    rule->has_summer = true;
    rule->summer = rule->winter + 3600;
    if (!rule_take_name(&text))
        return false;
    if (*text != ',') {
        if (!rule_take_time(&text, &west))
            return false;
        rule->summer = -west;
    }
    return rule_take_change(&text, &rule->begin) && rule_take_change(&text, &rule->end) && !*text;
}

/* ------------------------------------------------------------------------------- the file ---- */

struct zone_file {
    unsigned char bytes[FILE_SIZE_MAX + 1]; /* ended by a NUL */
    size_t size;
};

static int64_t
zone_file_number(const struct zone_file *file, size_t at, size_t size)
{
    uint64_t number = file->bytes[at] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | file->bytes[at + i];
    return (int64_t)number;
}

/* A header and its counts; times have this many bytes. */
struct zone_block {
    size_t leaps, times, types;               /* counts */
    size_t times_at, kinds_at, types_at, end; /* where */
};

static bool
zone_block_read(const struct zone_file *file, size_t at, size_t time_size, struct zone_block *block)
{
    if (at + HEADER_SIZE > file->size || memcmp(file->bytes + at, "TZif", 4) != 0 || file->bytes[at + 4] < '2')
        return false;
    int64_t counts[6];
    for (size_t i = 0; i < 6; i++) {
        counts[i] = zone_file_number(file, at + 20 + 4 * i, 4);
        if (counts[i] < 0 || counts[i] > FILE_SIZE_MAX)
            return false;
    }
    block->leaps = (size_t)counts[2];
    block->times = (size_t)counts[3];
    block->types = (size_t)counts[4];
    block->times_at = at + HEADER_SIZE;
    block->kinds_at = block->times_at + block->times * time_size;
    block->types_at = block->kinds_at + block->times;
    block->end = block->types_at + block->types * 6 + (size_t)counts[5] + block->leaps * (time_size + 4) +
                 (size_t)counts[1] + (size_t)counts[0];
    return block->types > 0 && block->end <= file->size;
}

static int
zone_take_steps(const struct zone_file *file, const struct zone_block *block, struct time_zone *zone)
{
    zone->first = zone_file_number(file, block->types_at, 4);
    zone->count = block->times;
    for (size_t i = 0; i < block->times; i++) {
        const size_t kind = file->bytes[block->kinds_at + i];
        if (kind >= block->types)
            return -EINVAL;
        zone->steps[i].at = zone_file_number(file, block->times_at + 8 * i, 8);
        zone->steps[i].offset = zone_file_number(file, block->types_at + 6 * kind, 4);
        if (i > 0 && zone->steps[i].at <= zone->steps[i - 1].at)
            return -EINVAL;
    }
    return 0;
}

/* The second block has times of eight bytes. The rule follows it on a line of its own. */
static int
zone_make(struct zone_file *file, struct time_zone **out)
{
    struct zone_block block;
    if (!zone_block_read(file, 0, 4, &block) || !zone_block_read(file, block.end, 8, &block) || block.leaps > 0 ||
        file->bytes[block.end] != '\n')
        return -EINVAL;
    char *rule = (char *)file->bytes + block.end + 1;
    rule[strcspn(rule, "\n")] = '\0';
    struct time_zone *zone = malloc(sizeof *zone + block.times * sizeof zone->steps[0]);
    if (!zone)
        return -ENOMEM;
    int rc = rule_read(rule, &zone->rule) ? zone_take_steps(file, &block, zone) : -EINVAL;
    if (rc < 0)
        free(zone);
    else
        *out = zone;
    return rc;
}

static int
zone_file_read(struct zone_file *file, const char *name)
{
    char path[sizeof TIME_ZONES + 1 + ZONE_NAME_MAX + 1];
    snprintf(path, sizeof path, TIME_ZONES "/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    ssize_t got = 1;
    int rc = 0;
    while (got > 0 && file->size < FILE_SIZE_MAX) {
        got = read(fd, file->bytes + file->size, FILE_SIZE_MAX - file->size);
        if (got < 0)
            rc = errno == EISDIR ? -ENOENT : -errno;
        else
            file->size += (size_t)got;
    }
    close(fd);
    return rc;
}

int
time_zone_load(const char *name, struct time_zone **zone)
{
    /* The name must not leave the folder of zones. */
    const char *at = name;
    while (isalnum((unsigned char)*at) || (*at && strchr("_+-/", *at)))
        at++;
    if (!isalpha((unsigned char)*name) || *at || at - name > ZONE_NAME_MAX)
        return -EINVAL;
    struct zone_file *file = calloc(1, sizeof *file);
    if (!file)
        return -ENOMEM;
    int rc = zone_file_read(file, name);
    if (rc == 0)
        rc = zone_make(file, zone);
    free(file);
    return rc;
}

void
time_zone_free(struct time_zone *zone)
{
    free(zone);
}

/* ------------------------------------------------------------------------------- queries ----- */

int64_t
time_zone_offset(const struct time_zone *zone, int64_t seconds)
{
    if (!zone) {
        const time_t time = (time_t)seconds;
        struct tm shown;
        return localtime_r(&time, &shown) ? shown.tm_gmtoff : 0;
    }
    if (zone->count == 0 || seconds >= zone->steps[zone->count - 1].at) {
        if (!zone->rule.has_summer)
            return zone->rule.winter;
        const int64_t civil = seconds + zone->rule.winter;
        const int64_t year = zone_year(civil >= 0 ? civil / DAY : (civil - DAY + 1) / DAY);
        const int64_t begin = zone_change_in(&zone->rule.begin, year) - zone->rule.winter;
        const int64_t end = zone_change_in(&zone->rule.end, year) - zone->rule.summer;
        const bool is_summer = begin < end ? seconds >= begin && seconds < end : seconds >= begin || seconds < end;
        return is_summer ? zone->rule.summer : zone->rule.winter;
    }
    size_t low = 0, high = zone->count; /* the last change at or before the time is at low - 1 */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (zone->steps[middle].at <= seconds)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? zone->first : zone->steps[low - 1].offset;
}

int64_t
time_zone_reaches(const struct time_zone *zone, int64_t civil)
{
    const int64_t before = time_zone_offset(zone, civil - DAY);
    const int64_t after = time_zone_offset(zone, civil + DAY);
    if (before == after)
        return civil - before;
    int64_t low = civil - DAY, change = civil + DAY;
    while (change - low > 1) {
        const int64_t middle = low + (change - low) / 2;
        if (time_zone_offset(zone, middle) == before)
            low = middle;
        else
            change = middle;
    }
    if (civil - before < change)
        return civil - before;
    return civil - after > change ? civil - after : change;
}
