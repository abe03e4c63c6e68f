/*
 * web_style.h - styles of the web UI in addition to the shared ones (service/common/html/html.h).
 */
#ifndef NOCTULE_SERVICE_WEB_WEB_STYLE_H
#define NOCTULE_SERVICE_WEB_WEB_STYLE_H

extern const char web_style[];

#endif
