/*
 * stow_answer.h - what a Store Instances Response (PS3.18, 10.5.3; PS3.3, C.12.1.1.25) says of one
 * instance, as DICOM JSON or as XML of PS3.19.
 */
#ifndef NOCTULE_SERVICE_COMMON_STOW_STOW_ANSWER_H
#define NOCTULE_SERVICE_COMMON_STOW_STOW_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stow_answer {
    bool stored;     /* it is in (0008,1199) */
    bool failed;     /* it is in (0008,1198), or nobody knows which is in (0008,119A) */
    int32_t warning; /* (0008,1196); 0: none */
    int32_t reason;  /* (0008,1197); -1: none */
};

/*
 * Reads it, of which nothing is trusted. One that is neither, or is cut, says what was understood up to
 * there; what is not said is false.
 */
void stow_answer_read(const char *bytes, size_t size, const char *sop_instance,
                      struct stow_answer *answer);

#endif
