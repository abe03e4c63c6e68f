/*
 * web_files.h - downloads of the files of a job: "/api/v1/jobs/12/files/seg.dcm". They contain the patient's data, so they
 * are served only if requests need a token.
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_FILES_H
#define NOCTULE_SERVICE_WEB_WEB_FILES_H

#include "service/web/web.h"

/* Returns whether files are served at all. */
bool web_files_are_served(const struct web *web);

bool web_files_is_path(const char *path);
int web_files_answer(struct web *web, const struct web_request *request, struct web_reply *answer, struct error *error);

#endif
