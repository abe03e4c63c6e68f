/*
 * Selection of jobs and slots: a table of small situations written as text.
 */
#include "service/daemon/jobs/scheduler.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Jobs: "1 2! 3@9 4~0" are jobs 1, 2 (alone), 3 (not before 9) and 4 (failed in worker 0); it is 5
 * o'clock.
 * Slots: "0:. 0:7 0:8! 1x" are slots of worker 0 that is idle, runs 7, runs 8 alone; of worker 1
 * that cannot be used. Expected: "job>slot" in order.
 */
static const struct {
    const char *what, *jobs, *slots, *expected;
    bool closed;
} cases[] = {
    {"nothing to do", "", "0:. 0:.", "", false},
    {"no slots", "1 2", "", "", false},
    {"one job", "1", "0:. 0:.", "1>0", false},
    {"as many as slots", "1 2", "0:. 0:.", "1>0 2>1", false},
    {"more than slots", "1 2 3", "0:. 0:.", "1>0 2>1", false},
    {"in the given order", "9 4 7", "0:.", "9>0", false},
    {"all busy", "1", "0:5 0:6", "", false},
    {"one slot left", "1 2", "0:5 0:.", "1>1", false},
    {"closed", "1 2", "0:. 0:.", "", true},
    {"worker not usable", "1", "0x 0x", "", false},
    {"another worker usable", "1", "0x 1:.", "1>1", false},
    {"spread over workers", "1 2", "0:. 0:. 1:. 1:.", "1>0 2>2", false},
    {"the least busy worker", "1", "0:5 0:. 1:. 1:.", "1>2", false},
    {"fill both", "1 2 3 4", "0:. 0:. 1:. 1:.", "1>0 2>2 3>1 4>3", false},
    {"not yet due", "1@9", "0:.", "", false},
    {"due now", "1@5", "0:.", "1>0", false},
    {"the next one is due", "1@9 2", "0:.", "2>0", false},
    {"alone in an empty worker", "1!", "0:. 0:.", "1>0", false},
    {"nothing beside it", "1! 2", "0:. 0:.", "1>0", false},
    {"nothing beside it, later", "2", "0:1! 0:.", "", false},
    {"another worker takes the next", "1! 2", "0:. 0:. 1:. 1:.", "1>0 2>2", false},
    {"alone waits for an empty worker", "1!", "0:5 0:.", "", false},
    {"and is not starved", "1! 2", "0:5 0:.", "", false},
    {"others pass in another worker", "1! 2", "0:5 0:. 1:5 1:6 1:.", "2>4", false},
    {"two alone, one worker", "1! 2!", "0:. 0:.", "1>0", false},
    {"two alone, two workers", "1! 2!", "0:. 0:. 1:. 1:.", "1>0 2>2", false},
    {"a later alone waits too", "1 2!", "0:. 0:.", "1>0", false},
    {"alone reserves but one worker", "1! 2! 3", "0:5 0:. 1:5 1:. 2:5 2:.", "3>5", false},
    {"an alone not yet due reserves nothing", "1!@9 2", "0:5 0:.", "2>1", false},
    {"alone beside alone", "1!", "0:7! 0:.", "", false},
    {"alone, other worker down", "1! 2", "0:5 0:. 1x", "", false},
    {"one slot workers", "1 2! 3", "0:. 1:. 2:.", "1>0 2>1 3>2", false},
    {"failed, and so elsewhere", "1~0", "0:. 1:.", "1>1", false},
    {"waits for an elsewhere", "1~0 2", "0:. 1:5", "2>0", false},
    {"there is no elsewhere", "1~0", "0:. 0:.", "1>0", false},
    {"elsewhere is down", "1~0", "0:. 1x", "1>0", false},
    {"the worker it failed in is gone", "1~7", "0:. 1:.", "1>0", false},
    {"alone and elsewhere", "1!~0", "0:. 1:. 1:.", "1>1", false},
    {"alone, waits for an elsewhere", "1!~0 2 3", "0:. 1:5 1:.", "2>0", false},
};

static size_t
parse_jobs(const char *text, struct sched_job *jobs)
{
    size_t count = 0;
    char copy[128], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *at = strchr(word, '@'), *failed = strchr(word, '~');
        jobs[count++] = (struct sched_job){.id = atoi(word),
                                           .alone = strchr(word, '!') != NULL,
                                           .not_before_ms = at ? atoi(at + 1) : 0,
                                           .avoid = failed ? atoi(failed + 1) : -1};
    }
    return count;
}

static size_t
parse_slots(const char *text, struct sched_slot *slots)
{
    size_t count = 0;
    char copy[128], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *colon = strchr(word, ':');
        slots[count++] = (struct sched_slot){.worker = atoi(word),
                                             .usable = colon != NULL,
                                             .job = colon ? atoi(colon + 1) : 0,
                                             .alone = strchr(word, '!') != NULL};
    }
    return count;
}

START_TEST(the_table_of_situations)
{
    struct sched_job jobs[16];
    struct sched_slot slots[16];
    struct sched_assignment picks[16];
    char got[128] = "";
    size_t job_count = parse_jobs(cases[_i].jobs, jobs);
    size_t slot_count = parse_slots(cases[_i].slots, slots);
    size_t count = sched_pick(jobs, job_count, slots, slot_count, cases[_i].closed, 5, picks);
    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d>%zu", i ? " " : "", (int)jobs[picks[i].job].id,
                 picks[i].slot);
    ck_assert_msg(strcmp(got, cases[_i].expected) == 0, "%s: %s, not %s", cases[_i].what, got, cases[_i].expected);
}

END_TEST

/*
 * In any situation: no slot twice, no busy or unusable slot, no neighbour of an alone job, and no
 * job in the worker it failed in while there is another.
 */
START_TEST(random_situations_keep_the_rules)
{
    srand(7);
    for (int round = 0; round < 20000; round++) {
        struct sched_job jobs[12];
        struct sched_slot slots[12];
        struct sched_assignment picks[12];
        size_t job_count = (size_t)(rand() % 12), slot_count = (size_t)(rand() % 12);
        bool down[4];
        for (int i = 0; i < 4; i++)
            down[i] = rand() % 4 == 0;
        for (size_t i = 0; i < job_count; i++)
            jobs[i] = (struct sched_job){.id = 100 + (int)i, .alone = rand() % 3 == 0, .avoid = rand() % 5 - 1};
        for (size_t i = 0; i < slot_count; i++) {
            int worker = (int)i / 3;
            slots[i] =
                (struct sched_slot){.worker = worker, .usable = !down[worker], .job = rand() % 2 ? 1 + (int)i : 0};
        }
        size_t count = sched_pick(jobs, job_count, slots, slot_count, false, 5, picks);
        for (size_t i = 0; i < count; i++) {
            size_t slot = picks[i].slot;
            ck_assert(slots[slot].usable && !slots[slot].job);
            for (size_t j = 0; j < slot_count && slots[slot].worker == jobs[picks[i].job].avoid; j++)
                ck_assert(!slots[j].usable || slots[j].worker == slots[slot].worker);
            slots[slot].job = jobs[picks[i].job].id;
            slots[slot].alone = jobs[picks[i].job].alone;
        }
        for (size_t i = 0; i < slot_count; i++) {
            for (size_t j = 0; j < slot_count && slots[i].alone; j++)
                ck_assert(i == j || slots[i].worker != slots[j].worker || !slots[j].job);
        }
    }
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("service_scheduler");
    TCase *tests = tcase_create("scheduler");
    tcase_add_loop_test(tests, the_table_of_situations, 0, sizeof cases / sizeof cases[0]);
    tcase_add_test(tests, random_situations_keep_the_rules);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
