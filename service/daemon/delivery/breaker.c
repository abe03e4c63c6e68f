#include "service/daemon/delivery/breaker.h"

size_t
breaker_room(const struct breaker *breaker, size_t under_way, size_t limit, uint64_t now_ms)
{
    if (breaker->open)
        return under_way == 0 && now_ms >= breaker->probe_at_ms ? 1 : 0;
    return under_way < limit ? limit - under_way : 0;
}

enum breaker_change
breaker_succeeded(struct breaker *breaker)
{
    bool was_open = breaker->open;
    *breaker = (struct breaker){0};
    return was_open ? BREAKER_CLOSED : BREAKER_UNCHANGED;
}

enum breaker_change
breaker_failed(struct breaker *breaker, const struct conf_delivery *settings, uint64_t now_ms)
{
    bool was_open = breaker->open;
    if (!was_open && ++breaker->failures < settings->breaker_failures)
        return BREAKER_UNCHANGED;
    breaker->open = true;
    breaker->probe_at_ms = now_ms + (uint64_t)(1000 * settings->breaker_seconds);
    return was_open ? BREAKER_UNCHANGED : BREAKER_OPENED;
}

void
breaker_probe_now(struct breaker *breaker)
{
    breaker->probe_at_ms = 0;
}
