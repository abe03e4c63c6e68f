/* compare_print.h - prints compared regions, as a table or as JSON. */
#ifndef NOCTULE_SERVICE_CLI_COMPARE_COMPARE_PRINT_H
#define NOCTULE_SERVICE_CLI_COMPARE_COMPARE_PRINT_H

#include "service/cli/compare/compare_case.h"
#include "service/common/json.h"

/* Measures of all cases of one pair of regions. */
struct compare_summary {
    size_t cases;
    double median_dice, lowest_dice;
    double median_distance_95, highest_distance_95;
    double mean_bias_ml, sd_bias_ml; /* sd_bias_ml: of at least two cases, else NAN */
};

/* Prints all rows, then a summary of each pair of regions that several cases have. */
void compare_print(const struct compare_rows *rows, double tolerance_mm, bool json);

/* Summarizes the rows without an error whose regions have the same names as this one. Returns 0 or -ENOMEM. */
int compare_summarize(const struct compare_rows *rows, const struct compare_row *like, struct compare_summary *summary);

/* Writes the members of a row into an open JSON object. */
void compare_put_row(struct json *json, const struct compare_row *row);

#endif
