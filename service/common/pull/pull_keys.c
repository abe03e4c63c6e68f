#include "service/common/pull/pull_keys.h"

#include "base/limits.h"
#include "base/text.h"

#include <string.h>

bool
pull_accession_fits(const char *accession)
{
    const size_t length = strlen(accession);
    if (length == 0 || length >= PULL_ACCESSION_SIZE || accession[0] == ' ' || accession[length - 1] == ' ')
        return false;
    for (const char *at = accession; *at; at++)
        if (*at < ' ' || *at > '~' || strchr("*?\\", *at))
            return false;
    return true;
}

bool
pull_uid_fits(const char *uid)
{
    return text_is_uid(uid) && uid[0] != '.' && uid[strlen(uid) - 1] != '.' && !strstr(uid, "..");
}

bool
pull_count_fits(size_t count)
{
    return count > 0 && count <= LIMIT_PULL_ITEMS;
}
