/*
 * profile_pyradiomics.h - `noctule profiles --pyradiomics`: the texture groups that measure what a parameter file of pyradiomics
 * (YAML, pyradiomics 3.0.1) asks for.
 */
#ifndef NOCTULE_SERVICE_CLI_PROFILE_PYRADIOMICS_H
#define NOCTULE_SERVICE_CLI_PROFILE_PYRADIOMICS_H

/*
 * Prints `texture = ( ... );` for a pipeline, with a comment per setting that changes nothing. If the file asks for something
 * that Noctule does not measure in the same way, prints only the list of these on standard error. Returns EXIT_OK, or another
 * exit code after an error message.
 */
int profile_pyradiomics_print(const char *file);

#endif
