/* handle.h - callbacks for uv_close. */
#ifndef NOCTULE_SERVICE_COMMON_HANDLE_H
#define NOCTULE_SERVICE_COMMON_HANDLE_H

#include <stdlib.h>
#include <uv.h>

/* Frees a handle that is an allocation of its own. */
static inline void
handle_free(uv_handle_t *handle)
{
    free(handle);
}

/* Frees the structure that contains the handle and that handle->data points to. */
static inline void
handle_free_owner(uv_handle_t *handle)
{
    free(handle->data);
}

#endif
