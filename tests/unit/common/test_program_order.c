/* Orders and outcomes as files: round trip, and every kind of damage is rejected. */
#include "service/common/program/program_order.h"
#include "service/common/program/program_words.h"

#include "tests/unit/scratch_folder.h"
#include "tests/unit/suite.h"

#include <errno.h>

static char *inputs[] = {(char[]){"/in/1.dcm"}, (char[]){"/in/two\nlines\x01.dcm"}};
static char *sha256[] = {NULL, (char[]){"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}};
static uint16_t accepted[] = {1, 5, 65535};

static struct program_order
an_order(void)
{
    static char program[] = "name = \"a\";\ncommand = [ \"\\\\\" ];", empty[] = "", pipeline[] = "p",
                stack[] = "echo 1", work[] = "/root/programs/7.2", result[] = "/root/programs/7", gpu[] = "GPU-1";
    return (struct program_order){.run = 7,
                                  .attempt = 2,
                                  .program = program,
                                  .identity = empty,
                                  .pipeline = pipeline,
                                  .stack = stack,
                                  .inputs = inputs,
                                  .input_count = 2,
                                  .sha256 = sha256,
                                  .accepted = accepted,
                                  .accepted_count = 3,
                                  .work = work,
                                  .result = result,
                                  .gpu = gpu,
                                  .as = PROGRAM_AS_CPU,
                                  .slot = 3,
                                  .threads = 4};
}

static void
expect_same(const struct program_order *a, const struct program_order *b)
{
    ck_assert_int_eq(a->run, b->run);
    ck_assert_int_eq(a->attempt, b->attempt);
    ck_assert_str_eq(a->program, b->program);
    ck_assert_str_eq(a->identity, b->identity);
    ck_assert_str_eq(a->pipeline, b->pipeline);
    ck_assert_str_eq(a->stack, b->stack);
    ck_assert_uint_eq(a->input_count, b->input_count);
    for (size_t i = 0; i < a->input_count; i++)
        ck_assert_str_eq(a->inputs[i], b->inputs[i]);
    ck_assert(!b->sha256[0]);
    ck_assert_str_eq(a->sha256[1], b->sha256[1]);
    ck_assert_uint_eq(a->accepted_count, b->accepted_count);
    ck_assert_mem_eq(a->accepted, b->accepted, a->accepted_count * sizeof *a->accepted);
    ck_assert_str_eq(a->work, b->work);
    ck_assert_str_eq(a->result, b->result);
    ck_assert_str_eq(a->gpu, b->gpu);
    ck_assert(a->as == b->as && a->slot == b->slot && a->threads == b->threads);
}

START_TEST(an_order_comes_back_as_it_was)
{
    const struct program_order order = an_order();
    struct program_order *back;
    struct error error;
    ck_assert_int_eq(program_order_write(&order, scratch_path("order")), 0);
    ck_assert_int_eq(program_order_read(scratch_path("order"), &back, &error), 0);
    expect_same(&order, back);
    program_order_free(back);
    char *text = program_order_to_text(&order);
    ck_assert_int_eq(program_order_from_text(text, &back, &error), 0);
    expect_same(&order, back);
    program_order_free(back);
    free(text);
}

END_TEST

START_TEST(an_order_may_have_no_lists)
{
    struct program_order order = an_order(), *back;
    struct error error;
    order.input_count = order.accepted_count = 0;
    char *text = program_order_to_text(&order);
    ck_assert_int_eq(program_order_from_text(text, &back, &error), 0);
    ck_assert_uint_eq(back->input_count + back->accepted_count, 0);
    program_order_free(back);
    free(text);
}

END_TEST

START_TEST(every_cut_is_rejected)
{
    const struct program_order order = an_order();
    char *text = program_order_to_text(&order);
    for (size_t size = 1; size < strlen(text); size++) {
        struct program_order *back;
        struct error error;
        char *cut = strndup(text, size);
        ck_assert_int_eq(program_order_from_text(cut, &back, &error), -EBADMSG);
        ck_assert_ptr_null(back);
        ck_assert_msg(strncmp(error.message, "line ", 5) == 0, "%s", error.message);
        free(cut);
    }
    free(text);
}

END_TEST

START_TEST(damage_is_named_with_its_line)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"noctule-program 2\n", "line 1: not a file of this version"},
        {"noctule-program 1\nrun x\n", "line 2: not a number"},
        {"noctule-program 1\nattempt 99999999999\n", "line 2: the number is too large"},
        {"noctule-program 1\naccepted 65536\n", "line 2: the number is too large"},
        {"noctule-program 1\nwork a\nwork b\n", "line 3: a duplicate key"},
        {"noctule-program 1\ncolour red\n", "line 2: an unknown key"},
        {"noctule-program 1\nsha256 a\n", "line 2: a digest without an input"},
        {"noctule-program 1\ninput a\nend 2\n", "line 3: the number of files does not match"},
        {"noctule-program 1\nend 0\nrun 1\n", "line 3: data after the end"},
        {"noctule-program 1\nrun 1\nend 0\n", "line 3: a key is missing"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct program_order *back;
        struct error error;
        ck_assert_int_eq(program_order_from_text(cases[i].text, &back, &error), -EBADMSG);
        ck_assert_msg(strncmp(error.message, cases[i].reason, strlen(cases[i].reason)) == 0, "%s: %s", cases[i].text,
                      error.message);
    }
    struct program_order *back;
    struct error error;
    ck_assert_int_eq(program_order_read(scratch_path("absent"), &back, &error), -ENOENT);
}

END_TEST

START_TEST(an_outcome_comes_back_as_it_was)
{
    struct program_outcome outcome = {.end = PROGRAM_END_ILL,
                                      .error = {.code = CODE_PROGRAM_FAILED, .message = "line\nand \\ more"},
                                      .identity = "i",
                                      .program_sha256 = "p",
                                      .weights_sha256 = "w",
                                      .sha256 = "m",
                                      .sandbox = "own",
                                      .size = 1LL << 40,
                                      .labels = 3,
                                      .labelled = 77,
                                      .peak_bytes = 5,
                                      .starts = 1,
                                      .write_seconds = 0.1,
                                      .program_seconds = 1.0 / 3,
                                      .read_seconds = 1e-9},
                           back;
    struct error error;
    ck_assert_int_eq(program_outcome_write(&outcome, scratch_path("outcome")), 0);
    ck_assert_int_eq(program_outcome_read(scratch_path("outcome"), &back, &error), 0);
    ck_assert_int_eq(back.end, PROGRAM_END_ILL);
    ck_assert_int_eq(back.error.code, CODE_PROGRAM_FAILED);
    ck_assert_str_eq(back.error.message, outcome.error.message);
    ck_assert_str_eq(back.identity, "i");
    ck_assert_str_eq(back.program_sha256, "p");
    ck_assert_str_eq(back.weights_sha256, "w");
    ck_assert_str_eq(back.sha256, "m");
    ck_assert_str_eq(back.sandbox, "own");
    ck_assert(back.size == outcome.size && back.labels == 3 && back.labelled == 77 && back.peak_bytes == 5);
    ck_assert(back.starts == 1 && back.write_seconds == 0.1 && back.program_seconds == 1.0 / 3);
    ck_assert(back.read_seconds == 1e-9);
    char *text = scratch_text("outcome");
    for (size_t size = 0; size < strlen(text); size++) {
        scratch_write("cut", text, size);
        ck_assert_int_eq(program_outcome_read(scratch_path("cut"), &back, &error), -EBADMSG);
    }
    free(text);
    static const char *const bad[] = {"colour red\n", "size x\n", "read_seconds x\n", "sandbox 0123456789abcdef\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char file[256];
        snprintf(file, sizeof file, "noctule-outcome 1\n%scomplete yes\n", bad[i]);
        scratch_write("bad", file, strlen(file));
        ck_assert_int_eq(program_outcome_read(scratch_path("bad"), &back, &error), -EBADMSG);
    }
}

END_TEST

/* ---------------------------------------------------------------------------- the words ---- */

static void
expect_word(char *const *words, const char *expected)
{
    while (*words && strcmp(*words, expected) != 0)
        words++;
    ck_assert_msg(*words, "%s", expected);
}

START_TEST(placeholders_are_replaced_within_words)
{
    char *command[] = {(char[]){"/p"},         (char[]){"{in}{out}"}, (char[]){"a{in_file}b"},
                       (char[]){"{out_file}"}, (char[]){"{dicom}"},   (char[]){"{gpu}{case}{x}{"}};
    char *environment[] = {(char[]){"A={gpu} {in}"}, (char[]){"PATH=/mine"}};
    struct conf_program program = {.command = command,
                                   .command_count = 6,
                                   .cpu_command = command,
                                   .cpu_command_count = 1,
                                   .environment = environment,
                                   .environment_count = 2,
                                   .input_file = (char[]){"{case}_0000.nii.gz"},
                                   .output_file = (char[]){""}};
    struct program_words words;
    ck_assert_int_eq(program_words_make(&program, "/w", "G", false, &words), 0);
    static const char *const expected[] = {"/p",    "/w/in/w/out", "a/w/in/case_0000.nii.gzb", "/w/out/case.nii.gz",
                                           "/w/in", "Gcase{x}{"};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_str_eq(words.argv[i], expected[i]);
    ck_assert_ptr_null(words.argv[6]);
    static const char *const variables[] = {"A=G /w/in",     "PATH=/mine", "LANG=C.UTF-8",          "HOME=/w/tmp",
                                            "TMPDIR=/w/tmp", "PWD=/w/out", "CUDA_VISIBLE_DEVICES=G"};
    size_t count = 0;
    while (words.environment[count])
        count++;
    ck_assert_uint_eq(count, sizeof variables / sizeof *variables);
    for (size_t i = 0; i < count; i++)
        expect_word(words.environment, variables[i]);
    program_words_clear(&words);
    ck_assert_int_eq(program_words_make(&program, "/w", "", true, &words), 0);
    ck_assert(words.argv[0] && !words.argv[1]);
    expect_word(words.environment, "CUDA_VISIBLE_DEVICES=");
    program_words_clear(&words);
    char *name = program_file_name("{case}.{in}");
    ck_assert_str_eq(name, "case.{in}");
    free(name);
}

END_TEST

/* docs/own-model.md, "Limits": once more on a whole GPU, then with cpu_command. */
START_TEST(a_lack_of_gpu_memory_moves_to_the_whole_gpu_and_then_to_the_cpu)
{
    ck_assert_int_eq(program_next_place(CONF_GPU_SHARED, true, PROGRAM_AS_GIVEN), PROGRAM_AS_WHOLE);
    ck_assert_int_eq(program_next_place(CONF_GPU_SHARED, true, PROGRAM_AS_WHOLE), PROGRAM_AS_CPU);
    ck_assert_int_eq(program_next_place(CONF_GPU_SHARED, false, PROGRAM_AS_WHOLE), PROGRAM_AS_WHOLE);
    ck_assert_int_eq(program_next_place(CONF_GPU_WHOLE, true, PROGRAM_AS_GIVEN), PROGRAM_AS_CPU);
    ck_assert_int_eq(program_next_place(CONF_GPU_WHOLE, false, PROGRAM_AS_GIVEN), PROGRAM_AS_GIVEN);
    ck_assert_int_eq(program_next_place(CONF_GPU_NONE, true, PROGRAM_AS_CPU), PROGRAM_AS_CPU);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("common_program_order");
    TCase *tests = tcase_create("order");
    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_test(tests, an_order_comes_back_as_it_was);
    tcase_add_test(tests, an_order_may_have_no_lists);
    tcase_add_test(tests, every_cut_is_rejected);
    tcase_add_test(tests, damage_is_named_with_its_line);
    tcase_add_test(tests, an_outcome_comes_back_as_it_was);
    tcase_add_test(tests, placeholders_are_replaced_within_words);
    tcase_add_test(tests, a_lack_of_gpu_memory_moves_to_the_whole_gpu_and_then_to_the_cpu);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
