/* stow_answer.h - parse the result for one instance from a Store Instances Response (PS3.18,
 * 10.5.3; PS3.3, C.12.1.1.25), as DICOM JSON or XML of PS3.19. */
#ifndef NOCTULE_SERVICE_COMMON_STOW_STOW_ANSWER_H
#define NOCTULE_SERVICE_COMMON_STOW_STOW_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stow_answer {
    bool stored;     /* listed in (0008,1199) */
    bool failed;     /* listed in (0008,1198), or (0008,119A) has an unnamed failure */
    int32_t warning; /* (0008,1196); 0: no warning */
    int32_t reason;  /* (0008,1197); -1: no reason */
};

/* Parses an untrusted response. If it is malformed or cut off, the part before the error counts.
 * Fields that it does not contain are false. */
void stow_answer_read(const char *bytes, size_t size, const char *sop_instance, struct stow_answer *answer);

#endif
