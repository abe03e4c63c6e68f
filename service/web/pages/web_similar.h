/* web_similar.h - the page "Similar texture" and its address of the API. */
#ifndef NOCTULE_SERVICE_WEB_PAGES_WEB_SIMILAR_H
#define NOCTULE_SERVICE_WEB_PAGES_WEB_SIMILAR_H

#include "service/web/api/web_api.h"
#include "service/web/pages/web_view.h"

int web_view_similar(const struct web_view *view, struct error *error);
/* Writes a link to the page beside the title of a job, if the job has values to compare. */
int web_similar_link(const struct web_view *view, int64_t job, struct error *error);

/* jobs/{job}/similar */
extern const struct api_parameter web_similar_parameters[];
int web_similar_answer(struct api_call *call, struct error *error);

#endif
