/* headers.h - reads the headers of many files in several threads. */
#ifndef NOCTULE_SERVICE_PIPELINE_HEADERS_H
#define NOCTULE_SERVICE_PIPELINE_HEADERS_H

#include "dicom/dicom.h"
#include "dicom/read/geometry/geometry.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* File i is either instances[i], or NULL with errors[i]. */
struct headers {
    size_t count;
    struct dicom_instance **instances;
    struct error *errors;
    int *rc;        /* -errno with an error, 0 with an instance */
    double seconds; /* duration of reading */
};

struct headers_watch {
    void (*progress)(void *context, double fraction); /* from any thread; may be NULL */
    void *context;
    const atomic_bool *stop; /* may be NULL */
};

/*
 * Reads each file, also if others fail. Returns 0, -ENOMEM or -ECANCELED; after an error there is
 * nothing to free.
 */
int headers_read(char *const *paths, size_t count, int threads, const struct headers_watch *watch,
                 struct headers *headers);
/* Reads images of NIfTI or NRRD, each as a series of its own (image_file.h); series i has the Series Number i + 1. Likewise. */
int headers_read_images(char *const *paths, size_t count, int threads, const struct headers_watch *watch,
                        struct headers *headers);
/*
 * Computes the digests of the instances whose frames the stack has. Its threads run during decoding
 * and segmenting. `headers` and `stack` must stay valid until headers_digest_end(). Returns NULL if
 * there is no memory.
 */
struct headers_digests *headers_digest_begin(const struct headers *headers, const struct geometry_stack *stack,
                                             int threads);
/*
 * Waits for the digests and frees `digests`, which may be NULL. With `cancel`, reads no further
 * file. Returns 0, -ECANCELED, or -errno with the error of a file.
 */
int headers_digest_end(struct headers_digests *digests, bool cancel, struct error *error);
void headers_free(struct headers *headers);

#endif
