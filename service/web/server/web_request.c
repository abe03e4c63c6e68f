#include "service/web/server/web_request.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_NAME(name) #name,

const char *const web_request_value_names[] = {REQUEST_VALUES(REQUEST_NAME)};

int64_t
web_request_number(const struct web_request *request, enum request_value value)
{
    const char *text = request->values[value];
    const size_t length = strlen(text);
    if (length == 0 || length > 18 || strspn(text, "0123456789") != length)
        return 0;
    return strtoll(text, NULL, 10);
}
