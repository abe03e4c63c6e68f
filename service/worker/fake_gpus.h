/*
 * fake_gpus.h - GPUs that a test makes up, so that losing one can be tried on any machine.
 *
 * NOCTULE_FAKE_GPUS names a folder; each file in it is a GPU whose UUID is the file's name. What is
 * written in its first line says how it is: nothing (it works), "broken" (it cannot be opened), "lost N" (the
 * N-th job of a worker loses it), "deadly" (who lists it dies); in the second, if there is one, where it is on the
 * PCI bus. Read whenever it matters, so a test can change it meanwhile.
 *
 * Compiled in by the presets that test (NOCTULE_CRASH_POINTS); nothing in a release.
 */
#ifndef NOCTULE_FAKE_GPUS_H
#define NOCTULE_FAKE_GPUS_H

#include "base/error.h"
#include "kernels/gpu.h"

#include <stdbool.h>

struct fake_gpu;

#ifdef NOCTULE_CRASH_POINTS

bool fake_gpus_in_use(void);
/* Like kernels_gpus; in the order of their names. */
int fake_gpus_list(struct kernels_gpu *gpus, int capacity);

/* 0, or -EIO or -ENODEV with the error filled. */
int fake_gpu_open(const char *uuid, struct fake_gpu **gpu, struct error *error);
/* A job is about to run on it: is it lost? From any thread. */
bool fake_gpu_fails(struct fake_gpu *gpu);
/* NULL is allowed. */
void fake_gpu_close(struct fake_gpu *gpu);

#else

#define fake_gpus_in_use()              (false)
#define fake_gpus_list(gpus, capacity)  ((void)(gpus), (void)(capacity), 0)
#define fake_gpu_open(uuid, gpu, error) ((void)(error), 0)
#define fake_gpu_fails(gpu)             (false)
#define fake_gpu_close(gpu)             ((void)(gpu))

#endif
#endif
