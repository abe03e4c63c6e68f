/* handle.h - what most uv_close calls are followed by. */
#ifndef NOCTULE_SERVICE_COMMON_HANDLE_H
#define NOCTULE_SERVICE_COMMON_HANDLE_H

#include <stdlib.h>
#include <uv.h>

/* The handle is malloc'd by itself. */
static inline void
handle_free(uv_handle_t *handle)
{
    free(handle);
}

/* It is part of what its data point to. */
static inline void
handle_free_owner(uv_handle_t *handle)
{
    free(handle->data);
}

#endif
