/* limits.h - limits of foreign input: LIMIT_FRAMES and the others of limits.def. */
#ifndef NOCTULE_BASE_LIMITS_H
#define NOCTULE_BASE_LIMITS_H

enum limit {

#define LIMIT(name, most, ...) LIMIT_##name = (most),
#include "base/limits.def"
#undef LIMIT
};

#endif
