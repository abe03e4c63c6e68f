#include "base/quantities.h"

const struct quantity_row quantity_rows[QUANTITIES] = {
#define QUANTITY(ID, word, needs) {word, QUANTITY_NEEDS_##needs},
#include "base/quantities.def"
};

const char *const quantity_names[QUANTITIES + 1] = {
#define QUANTITY(ID, word, needs) word,
#include "base/quantities.def"
};
