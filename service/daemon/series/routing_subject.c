/*
 * routing_subject.c - converts a stored series to the input of rules. Declared in series.h.
 */
#include "service/daemon/series/series.h"

struct rules_series
routing_subject(const struct conf *conf, const struct queue_series *series)
{
    return (struct rules_series){
        .modality = series->modality ? series->modality : "",
        .body_part = series->body_part ? series->body_part : "",
        .description = series->description ? series->description : "",
        .inbox = series->inbox ? conf_find_inbox(conf, series->inbox) : NULL,
        .called_ae = series->called_ae,
        .sender = series->sender,
    };
}
