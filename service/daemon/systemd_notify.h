/*
 * systemd_notify.h - notifications to systemd. Has no effect if systemd did not start the process.
 */
#ifndef NOCTULE_SERVICE_DAEMON_SYSTEMD_NOTIFY_H
#define NOCTULE_SERVICE_DAEMON_SYSTEMD_NOTIFY_H

#include <stdint.h>

/* Sends a state of sd_notify(3): "READY=1", "STOPPING=1", "WATCHDOG=1". */
void notify(const char *state);
void notify_reloading(void); /* until READY */
void notify_status(const char *status);

/* Returns the interval at which WATCHDOG must be sent, in milliseconds; 0: no watchdog. */
uint64_t notify_watchdog_ms(void);

#endif
