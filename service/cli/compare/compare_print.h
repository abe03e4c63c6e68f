/* compare_print.h - prints compared regions, as a table or as JSON. */
#ifndef NOCTULE_SERVICE_CLI_COMPARE_COMPARE_PRINT_H
#define NOCTULE_SERVICE_CLI_COMPARE_COMPARE_PRINT_H

#include "service/cli/compare/compare_case.h"
#include "service/common/json.h"

/* Prints all rows, then a summary of each pair of regions that several cases have. */
void compare_print(const struct compare_rows *rows, double tolerance_mm, bool json);

/* Writes the names and measures of a row without an error into an open JSON object. */
void compare_put_measures(struct json *json, const struct compare_row *row);

#endif
