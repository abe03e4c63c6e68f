/* notify.h - what systemd is told, and asks for; nothing happens where it did not start us. */
#ifndef NOCTULE_NOTIFY_H
#define NOCTULE_NOTIFY_H

#include <stdint.h>

void notify_ready(void);
void notify_reloading(void); /* notify_ready ends it */
void notify_stopping(void);
void notify_alive(void); /* the watchdog */
void notify_status(const char *status);

/* How often notify_alive is wanted, in milliseconds; 0: not at all. */
uint64_t notify_watchdog_ms(void);

#endif
