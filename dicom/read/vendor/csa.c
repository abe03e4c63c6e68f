#include "dicom/read/vendor/csa.h"
#include "dicom/value/value.h"

#include <stdbool.h>
#include <string.h>

#define NAME_BYTES 64
#define MARK       77

struct csa {
    const uint8_t *at;
    size_t left;
    bool second;    /* CSA2 */
    bool has_first; /* older header: the next member is set */
    uint32_t first; /* items of its first attribute */
};

/* Consumes the next bytes. Returns NULL if there are fewer. */
static const uint8_t *
csa_take(struct csa *csa, size_t count)
{
    if (count > csa->left)
        return NULL;
    const uint8_t *taken = csa->at;
    csa->at += count;
    csa->left -= count;
    return taken;
}

/* Returns false if the value is empty or not the text of a number. */
static bool
csa_copy(const uint8_t *value, size_t length, char text[CSA_VALUE])
{
    length = strnlen((const char *)value, length);
    while (length > 0 && value[length - 1] == ' ')
        length--;
    while (length > 0 && *value == ' ') {
        value++;
        length--;
    }
    if (length == 0 || length >= CSA_VALUE)
        return false;
    memcpy(text, value, length);
    text[length] = '\0';
    return true;
}

/* Reads the items of an attribute, and copies up to `room` values. Returns false if the header
 * is damaged. */
static bool
csa_items(struct csa *csa, uint32_t items, char (*values)[CSA_VALUE], size_t room, size_t *count)
{
    for (uint32_t i = 0; i < items; i++) {
        const uint8_t *head = csa_take(csa, 16);
        if (!head)
            return false;
        const uint32_t told = value_u32(csa->second ? head + 4 : head, false);
        const uint32_t more = csa->second ? 0 : csa->first;
        const size_t length = told - more, padding = (4 - length % 4) % 4;
        const uint8_t *value = told < more ? NULL : csa_take(csa, length);
        csa_take(csa, padding < csa->left ? padding : csa->left);
        if (!value)
            return false;
        if (*count < room && csa_copy(value, length, values[*count]))
            ++*count;
    }
    return true;
}

size_t
csa_values(const void *bytes, size_t size, const char *name, char (*values)[CSA_VALUE], size_t room)
{
    struct csa csa = {.at = bytes, .left = size};
    csa.second = size >= 4 && memcmp(bytes, "SV10", 4) == 0;
    if (csa.second)
        csa_take(&csa, 8);
    const uint8_t *head = csa_take(&csa, 8);
    const bool good = head && value_u32(head + 4, false) == MARK;
    for (uint32_t attributes = good ? value_u32(head, false) : 0; attributes > 0; attributes--) {
        head = csa_take(&csa, NAME_BYTES + 20);
        if (!head)
            return 0;
        const uint32_t items = value_u32(head + NAME_BYTES + 12, false);
        const bool sought = strncmp((const char *)head, name, NAME_BYTES) == 0;
        if (!csa.has_first) {
            csa.has_first = true;
            csa.first = items;
        }
        size_t count = 0;
        const bool whole = csa_items(&csa, items, values, sought ? room : 0, &count);
        if (sought || !whole)
            return whole ? count : 0;
    }
    return 0;
}
