/*
 * profile_pyradiomics.h - `noctule profiles --pyradiomics`: the texture groups with the features of a parameter file of
 * pyradiomics 3.0.1 (YAML).
 */
#ifndef NOCTULE_SERVICE_CLI_PROFILE_PYRADIOMICS_H
#define NOCTULE_SERVICE_CLI_PROFILE_PYRADIOMICS_H

/*
 * Prints `texture = ( ... );` for a pipeline, with a comment per setting that changes nothing. If Noctule cannot
 * measure all features of the file in the same way, prints only the list of those on standard error. Returns EXIT_OK,
 * or another exit code after an error message.
 */
int profile_pyradiomics_print(const char *file);

#endif
