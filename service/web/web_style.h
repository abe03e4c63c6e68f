/* web_style.h - how the page looks beyond what all pages share (service/common/html/html.h). */
#ifndef NOCTULE_SERVICE_WEB_WEB_STYLE_H
#define NOCTULE_SERVICE_WEB_WEB_STYLE_H

extern const char page_style[];

#endif
