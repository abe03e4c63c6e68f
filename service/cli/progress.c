/* progress.c - the progress bar. */
#include "service/cli/cli.h"

#include "service/common/clock.h"
#include "service/pipeline/pipeline_report.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR            28
#define REDRAW_SECONDS 0.1

/* Approximate share of each of pipeline_stages in the time of a job. */
static const double weights[] = {0.1, 0.45, 0.1, 0.1, 0.125, 0.125};

struct progress {
    bool drawing;
    pthread_mutex_t lock;
    char title[48];
    double begun, drawn;
    double done; /* share of the job, 0 to 1; must not fall */
};

struct progress *
cli_progress_open(bool wanted)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    progress->drawing = wanted && isatty(STDERR_FILENO);
    pthread_mutex_init(&progress->lock, NULL);
    return progress;
}

void
cli_progress_begin(struct progress *progress, const char *title)
{
    pthread_mutex_lock(&progress->lock);
    snprintf(progress->title, sizeof progress->title, "%s", title);
    progress->begun = progress->drawn = clock_seconds();
    progress->done = 0;
    pthread_mutex_unlock(&progress->lock);
}

void
cli_progress_update(void *context, const char *stage, double fraction)
{
    struct progress *progress = context;
    if (!progress->drawing || pthread_mutex_trylock(&progress->lock) != 0)
        return; /* another thread draws the same progress */
    double before = 0;
    for (size_t i = 0; pipeline_stages[i]; i++) {
        if (strcmp(pipeline_stages[i], stage) == 0)
            progress->done = fmax(progress->done, before + weights[i] * fraction);
        before += weights[i];
    }
    const double now = clock_seconds(), elapsed = now - progress->begun;
    if (now - progress->drawn >= REDRAW_SECONDS) {
        char bar[BAR + 1];
        const int filled = (int)lround(progress->done * BAR);
        for (int i = 0; i < BAR; i++)
            bar[i] = i < filled ? '#' : '.';
        bar[BAR] = '\0';
        fprintf(stderr, "\r%s [%s] %3.0f %% %s", progress->title, bar, 100 * progress->done, stage);
        if (progress->done > 0.05 && elapsed > 1)
            fprintf(stderr, ", %.0f s left", ceil(elapsed * (1 - progress->done) / progress->done));
        fputs("\033[K", stderr);
        fflush(stderr);
        progress->drawn = now;
    }
    pthread_mutex_unlock(&progress->lock);
}

void
cli_progress_clear(struct progress *progress)
{
    if (!progress->drawing)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

void
cli_progress_close(struct progress *progress)
{
    if (!progress)
        return;
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}
