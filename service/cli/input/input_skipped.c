/* input_skipped.c - see input.h. */
#include "service/cli/input/input.h"

#include "base/array.h"
#include "base/text.h"
#include "service/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINES 12

int
input_skipped_add(struct input_skipped *all, const char *path, enum code code, const char *message)
{
    struct input_skipped_file *files = array_grow(all->files, &all->room, all->count + 1, sizeof *files);
    if (!files)
        return -ENOMEM;
    all->files = files;
    struct input_skipped_file *file = &files[all->count];
    *file = (struct input_skipped_file){path, code, strdup(message)};
    if (!file->message)
        return -ENOMEM;
    all->count++;
    return 0;
}

void
input_skipped_clear(struct input_skipped *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->files[i].message);
    free(all->files);
    *all = (struct input_skipped){0};
}

static int
folder_length(const char *path)
{
    return (int)(text_base_name(path) - path);
}

static int
compare_folders(const char *a, const char *b)
{
    const int left = folder_length(a), right = folder_length(b);
    const int order = strncmp(a, b, (size_t)(left < right ? left : right));
    return order ? order : left - right;
}

static int
compare_files(const void *left, const void *right)
{
    const struct input_skipped_file *a = left, *b = right;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    const int order = compare_folders(a->path, b->path);
    return order ? order : strcmp(a->path, b->path);
}

static void
skipped_sort(struct input_skipped *all)
{
    if (all->count > 0)
        qsort(all->files, all->count, sizeof *all->files, compare_files);
}

/* The files that one line covers. */
enum grouping { BY_FILE, BY_FOLDER, BY_CODE };

static size_t
group_end(const struct input_skipped *all, size_t start, enum grouping by)
{
    const struct input_skipped_file *first = &all->files[start];
    size_t end = start + 1;
    while (end < all->count && by != BY_FILE && all->files[end].code == first->code &&
           (by == BY_CODE || compare_folders(all->files[end].path, first->path) == 0))
        end++;
    return end;
}

void
input_skipped_print(struct input_skipped *all)
{
    enum grouping by = all->count <= MAX_LINES ? BY_FILE : BY_FOLDER;
    size_t lines = 0;
    skipped_sort(all);
    for (size_t i = 0; by == BY_FOLDER && i < all->count; i = group_end(all, i, BY_FOLDER))
        lines++;
    if (lines > MAX_LINES)
        by = BY_CODE;
    for (size_t i = 0, end; i < all->count; i = end) {
        const struct input_skipped_file *first = &all->files[i];
        const char *code = code_name(first->code);
        end = group_end(all, i, by);
        if (end - i == 1)
            cli_print_error("skipped: %s: %s: %s", first->path, code, first->message);
        else if (by == BY_FOLDER)
            cli_print_error("skipped: %zu files in %.*s: %s: for example: %s", end - i, folder_length(first->path),
                            first->path, code, first->message);
        else
            cli_print_error("skipped: %zu files: %s: for example %s: %s", end - i, code, first->path, first->message);
    }
}

static void
skipped_put_one(struct json *json, const char *path, enum code code, const char *message)
{
    json_begin_object(json, NULL);
    json_string(json, "file", path);
    json_string(json, "code", code_name(code));
    json_string(json, "message", message);
    json_end_object(json);
}

void
input_skipped_put(struct input_skipped *all, struct json *json)
{
    skipped_sort(all);
    json_begin_array(json, "passed_over");
    for (size_t i = 0; i < all->count; i++)
        skipped_put_one(json, all->files[i].path, all->files[i].code, all->files[i].message);
    json_end_array(json);
}

void
input_skipped_put_damaged(const struct headers *headers, char *const *paths, size_t count, struct json *json)
{
    json_begin_array(json, "warnings");
    for (size_t i = 0; i < count; i++)
        if (headers->rc[i] != 0 && !input_sorted_is_other(&headers->errors[i]))
            skipped_put_one(json, paths[i], headers->errors[i].code, headers->errors[i].message);
    json_end_array(json);
}
