/* systemd_notify.h - what systemd is told, and asks for; nothing happens where it did not start us. */
#ifndef NOCTULE_SERVICE_DAEMON_SYSTEMD_NOTIFY_H
#define NOCTULE_SERVICE_DAEMON_SYSTEMD_NOTIFY_H

#include <stdint.h>

/* sd_notify(3): "READY=1", "STOPPING=1", "WATCHDOG=1". */
void notify(const char *state);
void notify_reloading(void); /* READY ends it */
void notify_status(const char *status);

/* How often WATCHDOG is wanted, in milliseconds; 0: not at all. */
uint64_t notify_watchdog_ms(void);

#endif
