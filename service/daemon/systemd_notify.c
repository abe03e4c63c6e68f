/*
 * systemd_notify.c - notifications to systemd. Has no effect if systemd did not start the process. Ignores results: a
 * lost notification must not stop the daemon. Declared in daemon.h.
 */
#include "service/daemon/daemon.h"

#include <inttypes.h>
#include <systemd/sd-daemon.h>
#include <time.h>

void
notify(const char *state)
{
    sd_notify(0, state);
}

void
notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000);
}

uint64_t
notify_watchdog_ms(void)
{
    uint64_t micros = 0;
    return sd_watchdog_enabled(0, &micros) > 0 ? micros / 2000 : 0; /* twice as often as required */
}
