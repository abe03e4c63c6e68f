/* test_about_columns.c - each field of series_about.def is stored, and is a column of v_series. */
#include "tests/unit/db/sample.h"

static struct sample s;

static void
open_sample(void)
{
    sample_open(&s);
}

static void
close_sample(void)
{
    sample_close(&s);
}

static const char *const columns[] = {
#define ABOUT(name, keyword, identifies) #name,
#include "base/series_about.def"
};

/* Adds a series whose fields are their own names. */
static void
add_series_with_all_fields(const char *series_uid)
{
    struct series_about about = {0};
    for (int i = 0; i < SERIES_ABOUT_COUNT; i++)
        strcpy(series_about_value(&about, i), columns[i]);
    const struct queue_instance instance = {.sop_instance_uid = "1.2.3.1",
                                            .sop_class_uid = "1.2.840.10008.5.1.4.1.1.2",
                                            .transfer_syntax_uid = "1.2.840.10008.1.2.1",
                                            .series_uid = series_uid,
                                            .study_uid = "1.2",
                                            .modality = "CT",
                                            .path = "series/1.2.3/1.2.3.1.dcm",
                                            .size = 1,
                                            .frames = 1,
                                            .about = &about};
    enum queue_arrival arrival;
    int64_t id;
    ck_assert_int_eq(queue_add_instance(s.queue, &instance, SAMPLE_NOW, &arrival, &id), 0);
}

START_TEST(each_field_is_a_column_of_v_series)
{
    add_series_with_all_fields("1.2.3");
    for (int i = 0; i < SERIES_ABOUT_COUNT; i++) {
        char query[128];
        snprintf(query, sizeof(query), "SELECT %s FROM v_series", columns[i]);
        assert_answer(&s, query, columns[i]);
    }
}

END_TEST

SAMPLE_MAIN("db_about_columns", open_sample, close_sample, each_field_is_a_column_of_v_series)
