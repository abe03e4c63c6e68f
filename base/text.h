/* text.h - texts for messages and files. */
#ifndef NOCTULE_TEXT_H
#define NOCTULE_TEXT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Last part of a path, for messages. */
const char *text_base_name(const char *path);

#ifdef __cplusplus
}
#endif
#endif
