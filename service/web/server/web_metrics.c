#include "service/web/server/web_metrics.h"

#include "base/array.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* max labels of one metric; further ones are ignored. Names may come from configurations of
 * years. */
#define MAX_LABELS 200

/* The value of a metric for one label. */
struct sample {
    enum metric_name name;
    char *label;
    double value;                        /* of a histogram: the sum */
    int64_t count, below[METRIC_BOUNDS]; /* of a histogram */
};

struct web_metrics {
    struct sample *samples;
    size_t count, room;
    int64_t seen; /* the last counted event */
};

/* A metric that is being read. */
struct web_metrics_reading {
    struct web_metrics *metrics;
    enum metric_name name;
};

static bool
web_metrics_is_gauge(enum metric_name name)
{
    return metric_table[name].kind == METRIC_GAUGE || metric_table[name].kind == METRIC_OWN_GAUGE;
}

static struct sample *
web_metrics_sample(struct web_metrics *metrics, enum metric_name name, const char *label)
{
    size_t labels = 0;
    for (size_t i = 0; i < metrics->count; i++) {
        struct sample *sample = &metrics->samples[i];
        if (sample->name == name && strcmp(sample->label, label) == 0)
            return sample;
        labels += sample->name == name;
    }
    struct sample *grown =
        labels < MAX_LABELS ? array_grow(metrics->samples, &metrics->room, metrics->count + 1, sizeof *grown) : NULL;
    if (!grown)
        return NULL;
    metrics->samples = grown;
    grown[metrics->count] = (struct sample){.name = name, .label = strdup(label)};
    return grown[metrics->count].label ? &grown[metrics->count++] : NULL;
}

void
web_metrics_add(struct web_metrics *metrics, enum metric_name name, const char *label, double value)
{
    struct sample *sample = web_metrics_sample(metrics, name, label);
    if (!sample)
        return;
    sample->value += value;
    const double *bounds = metric_table[name].bounds;
    if (!bounds)
        return;
    sample->count++;
    for (int i = 0; i < METRIC_BOUNDS && bounds[i] > 0.0; i++)
        sample->below[i] += value <= bounds[i];
}

/* -------------------------------------------------------------------------------- reading ---- */

static int
web_metrics_take(void *context, const char *label, double value)
{
    const struct web_metrics_reading *reading = context;
    web_metrics_add(reading->metrics, reading->name, label, value);
    return 0;
}

/* Clears all samples, or only the gauges, which are read again. */
static void
web_metrics_forget(struct web_metrics *metrics, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < metrics->count; i++)
        if (all || web_metrics_is_gauge(metrics->samples[i].name))
            free(metrics->samples[i].label);
        else
            metrics->samples[kept++] = metrics->samples[i];
    metrics->count = kept;
}

/* Creates samples without labels at zero, so that monitoring sees them before the first event. */
static void
web_metrics_begin(struct web_metrics *metrics)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (!web_metrics_is_gauge((enum metric_name)i) && !*metric_table[i].label)
            web_metrics_sample(metrics, (enum metric_name)i, "");
}

/* Reads new events and gauges. After an error, counting restarts at zero, which monitoring systems
 * accept. */
static int
web_metrics_read(struct web_metrics *metrics, struct report *report, struct error *error)
{
    int64_t until;
    int rc = report_last_event(report, &until, error);
    web_metrics_forget(metrics, false);
    if (rc)
        return rc;
    for (int i = 0; rc == 0 && i < METRIC_COUNT; i++) {
        struct web_metrics_reading reading = {metrics, (enum metric_name)i};
        rc = report_each_sample(report, reading.name, metrics->seen, until, web_metrics_take, &reading, error);
    }
    metrics->seen = until;
    if (rc) {
        web_metrics_forget(metrics, true);
        web_metrics_begin(metrics);
    }
    return rc;
}

/* -------------------------------------------------------------------------------- writing ---- */

/* Writes NAME{LABEL="...",le="..."}. */
static void
web_metrics_write_name(const struct sample *sample, const char *suffix, const char *bound, FILE *out)
{
    const struct metric *metric = &metric_table[sample->name];
    const bool labelled = *metric->label != '\0';
    fprintf(out, "%s%s", metric->name, suffix);
    if (!labelled && !bound)
        return;
    fputc('{', out);
    if (labelled) {
        fprintf(out, "%s=\"", metric->label);
        const char *text = sample->label;
        size_t length;
        for (; *text; text += length) {
            length = text_utf8_length(text);
            if (length == 0) {
                fputs("\xef\xbf\xbd", out);
                length = 1;
            } else if (*text == '\n') {
                fputs("\\n", out);
            } else {
                fprintf(out, *text == '\\' || *text == '"' ? "\\%.*s" : "%.*s", (int)length, text);
            }
        }
        fputs(bound ? "\"," : "\"", out);
    }
    if (bound)
        fprintf(out, "le=\"%s\"", bound);
    fputc('}', out);
}

static void
web_metrics_write_number(double value, FILE *out)
{
    char text[TEXT_DIGITS];
    text_digits(value, text);
    fprintf(out, " %s\n", text);
}

static void
web_metrics_write_one(const struct web_metrics *metrics, enum metric_name name, FILE *out)
{
    const struct metric *metric = &metric_table[name];
    const char *type = metric->bounds ? "histogram" : web_metrics_is_gauge(name) ? "gauge" : "counter";
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name, type);
    for (size_t i = 0; i < metrics->count; i++) {
        const struct sample *sample = &metrics->samples[i];
        if (sample->name != name)
            continue;
        if (metric->bounds) {
            const double *bounds = metric->bounds;
            for (int k = 0; k < METRIC_BOUNDS && bounds[k] > 0.0; k++) {
                char bound[TEXT_DIGITS];
                text_digits(bounds[k], bound);
                web_metrics_write_name(sample, "_bucket", bound, out);
                fprintf(out, " %" PRId64 "\n", sample->below[k]);
            }
            web_metrics_write_name(sample, "_bucket", "+Inf", out);
            fprintf(out, " %" PRId64 "\n", sample->count);
            web_metrics_write_name(sample, "_sum", NULL, out);
            web_metrics_write_number(sample->value, out);
            web_metrics_write_name(sample, "_count", NULL, out);
            fprintf(out, " %" PRId64 "\n", sample->count);
        } else {
            web_metrics_write_name(sample, "", NULL, out);
            web_metrics_write_number(sample->value, out);
        }
    }
}

int
web_metrics_write(struct web_metrics *metrics, struct report *report, const struct alerts *alerts, FILE *out,
                  struct error *error)
{
    const int rc = web_metrics_read(metrics, report, error);
    for (size_t i = 0; rc == 0 && i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        if (alert->severity != ALERT_WAITS) /* acknowledged ones have the value 0 */
            web_metrics_add(metrics, METRIC_noctule_alert, alert->id, alert->ack.by ? 0 : (double)alert->severity);
    }
    for (int i = 0; rc == 0 && i < METRIC_COUNT; i++)
        web_metrics_write_one(metrics, (enum metric_name)i, out);
    return rc;
}

/* -------------------------------------------------------------------- opening and closing ---- */

int
web_metrics_open(struct report *report, struct web_metrics **opened, struct error *error)
{
    struct web_metrics *metrics = calloc(1, sizeof *metrics);
    int rc = metrics ? report_last_event(report, &metrics->seen, error)
                     : error_set(error, -ENOMEM, CODE_OUT_OF_MEMORY, "out of memory");
    if (rc) {
        web_metrics_close(metrics);
        return rc;
    }
    web_metrics_begin(metrics);
    *opened = metrics;
    return 0;
}

void
web_metrics_close(struct web_metrics *metrics)
{
    for (size_t i = 0; metrics && i < metrics->count; i++)
        free(metrics->samples[i].label);
    if (metrics)
        free(metrics->samples);
    free(metrics);
}
