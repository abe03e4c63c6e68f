/*
 * variants.h - a lane for each variant of the CPU backend: every available instruction set with several numbers of
 * threads. All must give the reference's result.
 */
#ifndef NOCTULE_TEST_VARIANTS_H
#define NOCTULE_TEST_VARIANTS_H

#include "kernels/cpu/device.h"
#include "tests/share.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

struct variant {
    const char *isa;
    int threads;
    struct kernels_device *device;
    struct kernels_lane *lane;
};

static const int variant_threads[] = {1, 2, 3, 8};
static struct variant variants[12];
static size_t variant_count;

#ifdef __SANITIZE_THREAD__
enum { VARIANTS_RACE = true };
#else
enum { VARIANTS_RACE = false };
#endif

/*
 * Opens lanes with the first `thread_counts` of variant_threads. A share under ThreadSanitizer uses only the last of
 * them, because the most threads show all races.
 */
static inline void
variants_open(size_t thread_counts)
{
    static const char *const isa_names[] = {"scalar", "AVX2", "AVX-512"};

    const size_t first = VARIANTS_RACE && test_share() > 1 ? thread_counts - 1 : 0;

    for (size_t i = 0; i < 3; i++)
        for (size_t t = first; t < thread_counts && isa_find(isa_names[i]); t++) {
            struct variant *variant = &variants[variant_count++];
            struct kernels_device_options options = {.backend = "cpu", .threads = variant_threads[t]};

            variant->isa = isa_names[i];
            variant->threads = variant_threads[t];
            ck_assert_int_eq(cpu_device_open(&options, variant->isa, &variant->device, NULL), 0);
            ck_assert_int_eq(kernels_lane_open(variant->device, &variant->lane, NULL), 0);
        }
}

static inline void
variants_close(void)
{
    while (variant_count > 0) {
        struct variant *variant = &variants[--variant_count];
        kernels_lane_close(variant->lane);
        kernels_device_close(variant->device);
    }
}

static inline void
variant_assert_same(const uint64_t *counts, const uint64_t *expected, size_t entries, int64_t number,
                    const struct variant *variant)
{
    for (size_t i = 0; i < entries; i++)
        if (counts[i] != expected[i])
            ck_abort_msg("job %lld, %s, %d threads: entry %zu is %llu, not %llu", (long long)number, variant->isa,
                         variant->threads, i, (unsigned long long)counts[i], (unsigned long long)expected[i]);
}

/* A thread with a lane of its own. */
struct lane_job {
    struct kernels_device *device;
    uint64_t seed;
};

/* Runs two threads, each with a struct lane_job, on one device. */
static inline void
lanes_run_beside(void *(*run)(void *lane_job))
{
    struct kernels_device_options options = {.backend = "cpu", .threads = 3};
    struct kernels_device *device;
    struct lane_job jobs[2];
    pthread_t thread;

    ck_assert_int_eq(kernels_device_open(&options, &device, NULL), 0);
    for (int i = 0; i < 2; i++)
        jobs[i] = (struct lane_job){device, (uint64_t)i + 1};
    ck_assert_int_eq(pthread_create(&thread, NULL, run, &jobs[1]), 0);
    run(&jobs[0]);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    kernels_device_close(device);
}

/* Returns zeroed memory; never NULL, even for 0. */
static inline void *
allocate(int64_t count, size_t size)
{
    void *memory = calloc(count > 0 ? (size_t)count : 1, size);

    ck_assert_ptr_nonnull(memory);
    return memory;
}

#endif
