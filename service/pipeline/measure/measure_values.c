/* measure_values.c - see measure_values.h. */
#include "service/pipeline/measure/measure_values.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { VALUING_THREADS = 8 }; /* few sets take long */

struct valuing {
    pthread_mutex_t mutex;
    pthread_cond_t added_one, made_one, formed_one, counted_one;
    pthread_t threads[VALUING_THREADS];
    int thread_count, thread_most, idle;
    int forming, form_most; /* threads that compute parts of forms */
    struct formed forms[FEATURE_FAMILIES];
    size_t form_count;
    struct valued *items;
    size_t begun, ended, held; /* of the caller */
    size_t added, taken, ready;
    size_t first;    /* all parts before it are taken */
    bool counts;     /* the threads count */
    bool waited_for; /* by the caller, after adding all sets so far */
    struct valuing_tell tell;
    bool closing;
};

/* Computes the next part; releases the mutex meanwhile. */
static void
valuing_make_part(struct valuing *valuing, struct formed *formed)
{
    const size_t part = formed->taken++;
    pthread_mutex_unlock(&valuing->mutex);
    const int rc = formed->family->form(&formed->region, part, formed->form);
    pthread_mutex_lock(&valuing->mutex);
    formed->rc = formed->rc ? formed->rc : rc;
    formed->ready++;
    pthread_cond_broadcast(&valuing->formed_one);
}

/* Returns the next form with a part that no thread computes; NULL: there is no such form. */
static struct formed *
valuing_next_form(struct valuing *valuing)
{
    for (size_t i = 0; i < valuing->form_count; i++)
        if (valuing->forms[i].taken < valuing->forms[i].family->form_parts)
            return &valuing->forms[i];
    return NULL;
}

/* Returns the finished form of a set's family; NULL: not there. The caller must hold the mutex. */
static const struct formed *
valuing_formed(struct valuing *valuing, const struct feature_family *family)
{
    for (size_t i = 0; i < valuing->form_count; i++) {
        struct formed *formed = &valuing->forms[i];
        if (formed->family != family)
            continue;
        while (formed->taken < family->form_parts)
            valuing_make_part(valuing, formed);
        while (formed->ready < formed->taken)
            pthread_cond_wait(&valuing->formed_one, &valuing->mutex);
        return formed;
    }
    return NULL;
}

/*
 * Counts a set if no thread has; sets that share counts count once. Releases the mutex meanwhile.
 */
static void
valuing_count_set(struct valuing *valuing, struct valued *valued)
{
    struct valued *first = valued->counting;
    if (first->counted == VALUING_NOT_COUNTED) {
        first->counted = VALUING_COUNTS;
        pthread_mutex_unlock(&valuing->mutex);
        const int rc =
            valued->measured.family->count(&valued->region, valued->measured.set, &first->own_counts, &first->error);
        pthread_mutex_lock(&valuing->mutex);
        first->count_rc = rc;
        first->counted = VALUING_COUNTED;
        pthread_cond_broadcast(&valuing->counted_one);
    }
    while (first->counted != VALUING_COUNTED)
        pthread_cond_wait(&valuing->counted_one, &valuing->mutex);
    valued->counts = first->own_counts;
    valued->rc = first->count_rc;
}

/*
 * Returns the next set whose values no thread computes and may be computed, those that are counted
 * last after all others; NULL: there is no such set.
 */
static struct valued *
valuing_next_set(const struct valuing *valuing)
{
    struct valued *last = NULL;
    for (size_t i = valuing->first; i < valuing->added; i++) {
        struct valued *valued = &valuing->items[i];
        if (valued->taken)
            continue;
        if (!valuing->counts || valued->made || !valued->measured.family->counted_last)
            return valued;
        last = last ? last : valued;
    }
    return valuing->waited_for ? last : NULL;
}

/* Computes the values of a set; releases the mutex meanwhile. */
static void
valuing_make_set(struct valuing *valuing, struct valued *valued)
{
    const struct valuing_tell *tell = &valuing->tell;
    const struct feature_family *family = valued->measured.family;
    valued->taken = true;
    valuing->taken++;
    while (valuing->first < valuing->added && valuing->items[valuing->first].taken)
        valuing->first++;
    if (!valued->made && valued->counting)
        valuing_count_set(valuing, valued);
    const struct formed *formed = valued->made || valued->rc ? NULL : valuing_formed(valuing, family);
    if (formed) {
        valued->region.form = formed->form;
        valued->rc = formed->rc;
    }
    pthread_mutex_unlock(&valuing->mutex);
    if (!valued->made && family->values && !valued->rc)
        valued->rc = family->values(&valued->region, valued->measured.set, valued->counts, valued->values);
    if (tell->tell && !valued->rc)
        valued->rc = tell->tell(tell->context, valued);
    pthread_mutex_lock(&valuing->mutex);
    valued->ready = true;
    valuing->ready++;
    pthread_cond_signal(&valuing->made_one);
}

static void *
valuing_run(void *context)
{
    struct valuing *valuing = context;
    struct formed *formed;
    struct valued *valued;
    pthread_mutex_lock(&valuing->mutex);
    while (!valuing->closing)
        if (valuing->forming < valuing->form_most && (formed = valuing_next_form(valuing)) != NULL) {
            valuing->forming++;
            valuing_make_part(valuing, formed);
            valuing->forming--;
        } else if ((valued = valuing_next_set(valuing)) != NULL)
            valuing_make_set(valuing, valued);
        else {
            valuing->idle++;
            pthread_cond_wait(&valuing->added_one, &valuing->mutex);
            valuing->idle--;
        }
    pthread_mutex_unlock(&valuing->mutex);
    return NULL;
}

/*
 * Announces one more item. Starts a thread if the idle ones are too few; without a thread the
 * caller computes it. The caller must hold the mutex.
 */
static void
valuing_call(struct valuing *valuing)
{
    size_t undone = valuing->added - valuing->taken;
    for (size_t i = 0; i < valuing->form_count; i++)
        undone += valuing->forms[i].family->form_parts - valuing->forms[i].taken;
    if (undone > (size_t)valuing->idle && valuing->thread_count < valuing->thread_most &&
        pthread_create(&valuing->threads[valuing->thread_count], NULL, valuing_run, valuing) == 0)
        valuing->thread_count++;
    pthread_cond_signal(&valuing->added_one);
}

struct valuing *
valuing_open(void)
{
    struct valuing *valuing = calloc(1, sizeof *valuing);
    if (!valuing)
        return NULL;
    pthread_mutex_init(&valuing->mutex, NULL);
    pthread_cond_init(&valuing->added_one, NULL);
    pthread_cond_init(&valuing->made_one, NULL);
    pthread_cond_init(&valuing->formed_one, NULL);
    pthread_cond_init(&valuing->counted_one, NULL);
    return valuing;
}

int
valuing_prepare(struct valuing *valuing, size_t sets, int threads, bool count, struct valuing_tell tell)
{
    struct valued *items = realloc(valuing->items, (sets + 1) * sizeof *items);
    if (!items)
        return -ENOMEM;
    pthread_mutex_lock(&valuing->mutex);
    valuing->items = items;
    valuing->thread_most = count || threads > VALUING_THREADS ? VALUING_THREADS : threads;
    valuing->form_most = threads;
    valuing->counts = count;
    valuing->tell = tell;
    pthread_mutex_unlock(&valuing->mutex);
    return 0;
}

int
valuing_form(struct valuing *valuing, const struct feature_family *family, const struct feature_region *region)
{
    void *form = calloc(1, family->form_size);
    if (!form)
        return -ENOMEM;
    pthread_mutex_lock(&valuing->mutex);
    valuing->forms[valuing->form_count++] = (struct formed){.family = family, .region = *region, .form = form};
    for (size_t part = 0; part < family->form_parts; part++)
        valuing_call(valuing);
    pthread_mutex_unlock(&valuing->mutex);
    return 0;
}

/* Returns a set with the same counts as this one; NULL: there is no such set. */
static struct valued *
valuing_counted(const struct valuing *valuing, const struct measured *measured)
{
    for (size_t i = valuing->ended; i < valuing->begun; i++)
        if (valuing->items[i].counting && !valuing->items[i].followed &&
            valuing->items[i].measured.set == measured->set &&
            valuing->items[i].measured.family->count == measured->family->count)
            return &valuing->items[i];
    return NULL;
}

bool
valuing_has_room(const struct valuing *valuing, const struct measured *measured, size_t bytes)
{
    return bytes == 0 || valuing->held == 0 || valuing->held + bytes <= VALUING_HELD ||
           valuing_counted(valuing, measured);
}

struct valued *
valuing_begin(struct valuing *valuing, const struct measured *measured, size_t bytes)
{
    struct valued *const before = valuing_counted(valuing, measured);
    struct valued *valued = &valuing->items[valuing->begun++];
    *valued = (struct valued){.measured = *measured, .region = *measured->region, .bytes = bytes};
    valued->measured.region = &valued->region;
    if (measured->family->count)
        valued->counting = before ? before->counting : valued;
    if (before) { /* it still reads the counts */
        before->followed = true;
        valued->bytes = before->bytes;
        before->bytes = 0;
    } else {
        valuing->held += bytes;
    }
    return valued;
}

int
valuing_count(struct valuing *valuing, struct valued *valued, struct error *error)
{
    if (!valued->counting)
        return 0;
    pthread_mutex_lock(&valuing->mutex);
    valuing_count_set(valuing, valued);
    pthread_mutex_unlock(&valuing->mutex);
    return valuing_count_failed(valued, error);
}

int
valuing_count_failed(const struct valued *valued, struct error *error)
{
    const int rc = valued->counting ? valued->counting->count_rc : 0;
    if (rc && error)
        *error = valued->counting->error;
    return rc;
}

void
valuing_add(struct valuing *valuing, struct valued *valued)
{
    pthread_mutex_lock(&valuing->mutex);
    valuing->waited_for = false;
    valuing->added = (size_t)(valued - valuing->items) + 1;
    valuing_call(valuing);
    pthread_mutex_unlock(&valuing->mutex);
}

struct valued *
valuing_wait(struct valuing *valuing)
{
    struct valued *next;
    pthread_mutex_lock(&valuing->mutex);
    struct valued *valued = valuing->ended < valuing->added ? &valuing->items[valuing->ended] : NULL;
    valuing->waited_for = true;
    pthread_cond_broadcast(&valuing->added_one);
    while (valued && !valued->ready)
        if ((next = valuing_next_set(valuing)) != NULL)
            valuing_make_set(valuing, next);
        else
            pthread_cond_wait(&valuing->made_one, &valuing->mutex);
    pthread_mutex_unlock(&valuing->mutex);
    return valued;
}

/* Returns a set with incomplete counts; NULL if all are complete. The caller must hold the mutex. */
static const struct valued *
valuing_uncounted(const struct valuing *valuing)
{
    for (size_t i = valuing->ended; i < valuing->added; i++) {
        const struct valued *valued = &valuing->items[i];
        if (!valued->made && valued->counting && valued->counting->counted != VALUING_COUNTED)
            return valued;
    }
    return NULL;
}

void
valuing_wait_for_counts(struct valuing *valuing)
{
    struct valued *next;
    pthread_mutex_lock(&valuing->mutex);
    valuing->waited_for = true;
    pthread_cond_broadcast(&valuing->added_one);
    while (valuing_uncounted(valuing))
        if (valuing->thread_count == 0 && (next = valuing_next_set(valuing)) != NULL)
            valuing_make_set(valuing, next);
        else
            pthread_cond_wait(&valuing->counted_one, &valuing->mutex);
    pthread_mutex_unlock(&valuing->mutex);
}

void
valuing_let_go(struct valuing *valuing)
{
    struct valued *valued = &valuing->items[valuing->ended++];
    if (valued->counting && !valued->followed) {
        free(valued->counting->own_counts);
        valued->counting->own_counts = NULL;
    }
    valuing->held -= valued->bytes;
    feature_set_clear(&valued->features);
}

void
valuing_clear(struct valuing *valuing)
{
    pthread_mutex_lock(&valuing->mutex);
    valuing->added = valuing->ended; /* drops sets whose values no thread computes yet */
    while (valuing->ready < valuing->taken)
        pthread_cond_wait(&valuing->made_one, &valuing->mutex);
    const size_t forms = valuing->form_count;
    valuing->form_count = 0; /* drops parts of forms that no thread computes yet */
    for (size_t i = 0; i < forms; i++) {
        struct formed *formed = &valuing->forms[i];
        while (formed->ready < formed->taken)
            pthread_cond_wait(&valuing->formed_one, &valuing->mutex);
        if (formed->family->form_clear)
            formed->family->form_clear(formed->form);
        free(formed->form);
    }
    for (size_t i = 0; i < valuing->begun; i++) {
        free(valuing->items[i].own_counts);
        feature_set_clear(&valuing->items[i].features);
    }
    valuing->begun = valuing->ended = valuing->held = 0;
    valuing->added = valuing->taken = valuing->ready = valuing->first = 0;
    valuing->waited_for = false;
    pthread_mutex_unlock(&valuing->mutex);
}

void
valuing_close(struct valuing *valuing)
{
    if (!valuing)
        return;
    valuing_clear(valuing);
    pthread_mutex_lock(&valuing->mutex);
    valuing->closing = true;
    pthread_cond_broadcast(&valuing->added_one);
    pthread_mutex_unlock(&valuing->mutex);
    for (int i = 0; i < valuing->thread_count; i++)
        pthread_join(valuing->threads[i], NULL);
    pthread_cond_destroy(&valuing->made_one);
    pthread_cond_destroy(&valuing->formed_one);
    pthread_cond_destroy(&valuing->counted_one);
    pthread_cond_destroy(&valuing->added_one);
    pthread_mutex_destroy(&valuing->mutex);
    free(valuing->items);
    free(valuing);
}
