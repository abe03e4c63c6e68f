/*
 * web_assets.h - scripts and style sheets at addresses that have the hash of their content, so that browsers may keep them
 * and a changed file has another address. Pages name them with their digest (Subresource Integrity).
 *
 * web_assets_open() must be called once before threads start. Thread-safe.
 */
#ifndef NOCTULE_SERVICE_WEB_SERVER_WEB_ASSETS_H
#define NOCTULE_SERVICE_WEB_SERVER_WEB_ASSETS_H

#include "service/web/web.h"

#define WEB_ASSETS_PATH "/assets/"

enum web_asset { WEB_ASSET_VIEWER_SCRIPT, WEB_ASSET_VIEWER_STYLE, WEB_ASSET_REVIEW_SCRIPT, WEB_ASSETS };

/* Computes the digests. Returns 0 or -ENOMEM. */
int web_assets_open(void);

/* Returns whether a path is that of an asset, and answers it. */
bool web_assets_is_path(const char *path);
int web_assets_answer(struct web *web, const struct web_request *request, struct web_reply *answer,
                      struct error *error);

/* Writes the element that loads a script or a style sheet. */
void web_assets_put(enum web_asset asset, FILE *out);

#endif
