/*
 * program_steps.h - the input that a program of the site reads, and the check of the output that it wrote (broker.h).
 */
#ifndef NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_STEPS_H
#define NOCTULE_SERVICE_PIPELINE_PROGRAM_PROGRAM_STEPS_H

#include "service/common/program/broker.h"

extern const struct program_steps program_steps;

#endif
