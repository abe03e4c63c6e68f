/* concept.h - a coded concept (PS3.3 8.8). Strings are borrowed, UTF-8. */
#ifndef NOCTULE_BASE_CONCEPT_H
#define NOCTULE_BASE_CONCEPT_H

/* Noctule's own scheme, and IBSI's. Objects that use them must have a Coding Scheme Identification Sequence. */
#define CONCEPT_OWN_SCHEME  "99NOCTULE"
#define CONCEPT_IBSI_SCHEME "IBSI"

struct coded_concept {
    const char *value; /* NULL: not given */
    const char *scheme;
    const char *meaning;
};

#endif
