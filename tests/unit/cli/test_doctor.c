/*
 * test_doctor.c - texts of doctor for GPUs that cannot be used, by CUDA versions, and for programs that need one. integ.doctor
 * checks the rest.
 */
#include "kernels/gpu.h"
#include "service/cli/doctor/doctor.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct {
    int driver, program;
    bool serves;
} pairs[] = {
    {13000, 13000, true},  {13020, 13000, true},  {13000, 13020, true}, /* of a major version */
    {12080, 13000, false}, {12000, 11080, true},  {14000, 13000, true}, /* later ones support earlier ones */
    {11040, 12000, false}, {10020, 13000, false},
};

START_TEST(which_driver_serves)
{
    ck_assert_int_eq(kernels_driver_serves(pairs[_i].driver, pairs[_i].program), pairs[_i].serves);
}

END_TEST

static const struct {
    int driver, program;
    const char *text;
} told[] = {
    {12040, 0,
     "GPUs are configured, but this build has no CUDA: install the build with CUDA, or set "
     "compute.backend = \"cpu\""},
    {0, 13000,
     "GPUs are configured, but the NVIDIA driver (libcuda.so.1) is missing: install a driver for "
     "CUDA 13, or set compute.backend = \"cpu\""},
    {11040, 13000,
     "the NVIDIA driver is for CUDA up to 11.4, and this program was made with 13.0: it needs a "
     "driver for CUDA 13, 580 or later; install it, or set compute.backend = \"cpu\" (nvidia-smi "
     "shows the installed driver)"},
    {11080, 12090,
     "the NVIDIA driver is for CUDA up to 11.8, and this program was made with 12.9: it needs a "
     "driver for CUDA 12, 525 or later; install it, or set compute.backend = \"cpu\" (nvidia-smi "
     "shows the installed driver)"},
    {13000, 21010,
     "the NVIDIA driver is for CUDA up to 13.0, and this program was made with 21.1: it needs a "
     "driver for CUDA 21; install it, or set compute.backend = \"cpu\" (nvidia-smi shows the "
     "installed "
     "driver)"},
    {12080, 12090,
     "the driver for CUDA up to 12.8 suits this program (12.9), but no GPU can be used: check that "
     "user pacs can open /dev/nvidia*, that the unit has the drop-in gpu.conf, and see nvidia-smi"},
};

START_TEST(why_no_gpu_is_used)
{
    char text[DOCTOR_TEXT];
    doctor_explain_no_gpu(told[_i].driver, told[_i].program, "pacs", text);
    ck_assert_str_eq(text, told[_i].text);
}

END_TEST

static const struct {
    const char *backend;
    enum conf_executor executor;
    enum conf_gpu gpu;
    int gpus;
    enum doctor_verdict verdict;
    const char *text;
} programs[] = {
    {"auto", CONF_EXECUTOR_LOCAL, CONF_GPU_NONE, 0, DOCTOR_OK, ""},
    {"auto", CONF_EXECUTOR_LOCAL, CONF_GPU_WHOLE, 1, DOCTOR_OK, ""},
    {"auto", CONF_EXECUTOR_LOCAL, CONF_GPU_SHARED, 0, DOCTOR_BROKEN,
     "it needs a GPU, and no GPU of this machine can be used: see \"devices\", or set gpu = \"none\" of the program"},
    {"cpu", CONF_EXECUTOR_LOCAL, CONF_GPU_WHOLE, 1, DOCTOR_BROKEN,
     "it needs a GPU, and compute.backend is \"cpu\": use another backend, or set gpu = \"none\" of the program"},
    {"auto", CONF_EXECUTOR_SLURM, CONF_GPU_WHOLE, 0, DOCTOR_OK, ""},
    {"auto", CONF_EXECUTOR_BOTH, CONF_GPU_WHOLE, 0, DOCTOR_ATTENTION,
     "it needs a GPU, and no GPU of this machine can be used: see \"devices\", or set gpu = \"none\" of the program"},
};

START_TEST(a_program_without_its_gpu)
{
    char backend[16], text[DOCTOR_TEXT] = "";
    struct conf conf = {.compute = {.backend = backend, .executor = programs[_i].executor}};
    const struct conf_program program = {.gpu = programs[_i].gpu};
    snprintf(backend, sizeof backend, "%s", programs[_i].backend);
    ck_assert_int_eq(doctor_explain_program_gpu(&conf, &program, programs[_i].gpus, text), programs[_i].verdict);
    ck_assert_str_eq(text, programs[_i].text);
}

END_TEST

int
main(void)
{
    Suite *suite = suite_create("cli_doctor");
    TCase *tests = tcase_create("doctor");
    tcase_add_loop_test(tests, which_driver_serves, 0, sizeof pairs / sizeof *pairs);
    tcase_add_loop_test(tests, why_no_gpu_is_used, 0, sizeof told / sizeof *told);
    tcase_add_loop_test(tests, a_program_without_its_gpu, 0, sizeof programs / sizeof *programs);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
