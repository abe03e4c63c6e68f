#include "service/common/slurm/slurm_program.h"

#include "base/array.h"
#include "base/test_hook.h"
#include "service/common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX (64u << 20) /* squeue writes less than 2 MiB for 10,000 jobs */
#define CHUNK    65536

/* -------------------------------------------------------------------------- environment ---- */

/* Names of variables. A name that ends in "_" is a prefix. */
static const char *const program_passed[] = {
    "PATH",   "HOME",    "USER",    "LOGNAME", "LANG",     "TZ",
    "SLURM_", "SBATCH_", "SQUEUE_", "MUNGE_",  "NOCTULE_", /* the last one for tests */
};

static bool
program_passes(const char *variable)
{
    const size_t all = sizeof program_passed / sizeof *program_passed;
    for (size_t i = 0; i < (test_hook_enabled() ? all : all - 1); i++) {
        const size_t length = strlen(program_passed[i]);
        if (strncmp(variable, program_passed[i], length) == 0 &&
            (program_passed[i][length - 1] == '_' || variable[length] == '='))
            return true;
    }
    return false;
}

/* Returns an array of borrowed environment strings, or NULL if memory is short. */
static char **
program_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **passed = calloc(count + 1, sizeof *passed);
    for (size_t i = 0; passed && i < count; i++) {
        if (program_passes(environ[i]))
            passed[kept++] = environ[i];
    }
    return passed;
}

/* ------------------------------------------------------------------------------- spawning ---- */

struct program {
    pid_t pid; /* also its process group */
    int out, words;
    struct program_output *output;
    size_t room, words_size;
};

/* Returns 0 or -errno. */
static int
program_spawn_with(struct program *program, const char *const arguments[], int out, int words)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char *const *argv; /* posix_spawn does not change the strings, but its type is not const */
    memcpy(&argv, &arguments, sizeof argv);
    char **environment = program_environment();
    if (!environment)
        return -ENOMEM;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files); /* cannot fail in glibc */
    posix_spawnattr_init(&attributes);
    int rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&files, words, STDERR_FILENO);
    if (!rc)
        rc = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    /* A process group of its own, so that all its processes can be killed, and default signal handling. */
    if (!rc)
        rc = posix_spawnattr_setflags(&attributes,
                                      POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (!rc)
        rc = posix_spawnattr_setsigmask(&attributes, &none);
    if (!rc)
        rc = posix_spawnattr_setsigdefault(&attributes, &all);
    if (!rc)
        rc = posix_spawnp(&program->pid, arguments[0], &files, &attributes, argv, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(environment);
    return -rc;
}

static int
program_spawn(struct program *program, const char *const arguments[])
{
    int out[2], words[2];
    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(words, O_CLOEXEC) < 0) {
        const int rc = -errno;
        close(out[0]);
        close(out[1]);
        return rc;
    }
    const int rc = program_spawn_with(program, arguments, out[1], words[1]);
    close(out[1]);
    close(words[1]);
    program->out = out[0];
    program->words = words[0];
    if (rc) {
        close(out[0]);
        close(words[0]);
    }
    return rc;
}

/* ------------------------------------------------------------------------------- reading ---- */

/* Returns 1 if there may be more, 0 at the end, or -errno. */
static int
program_take_text(struct program *program)
{
    struct program_output *output = program->output;
    char *grown = array_grow(output->text, &program->room, output->size + CHUNK + 1, 1);
    if (!grown)
        return -ENOMEM;
    output->text = grown;
    const ssize_t length = read(program->out, grown + output->size, CHUNK);
    if (length < 0)
        return errno == EINTR ? 1 : -errno;
    output->size += (size_t)length;
    output->text[output->size] = '\0';
    return output->size > TEXT_MAX ? -EFBIG : length > 0;
}

/* Reads the error output. Drops the part that does not fit. */
static int
program_take_words(struct program *program)
{
    char chunk[1024], *words = program->output->words;
    const size_t room = sizeof program->output->words - 1 - program->words_size;
    const ssize_t length = read(program->words, chunk, sizeof chunk);
    if (length < 0)
        return errno == EINTR ? 1 : -errno;
    const size_t taken = (size_t)length < room ? (size_t)length : room;
    memcpy(words + program->words_size, chunk, taken);
    program->words_size += taken;
    return length > 0;
}

/* Reads until all writers have closed both pipes. */
static int
program_read(struct program *program, int64_t until_ms)
{
    struct pollfd ends[] = {{program->out, POLLIN, 0}, {program->words, POLLIN, 0}};
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        const int64_t left_ms = until_ms - clock_steady_ms();
        if (left_ms <= 0)
            return -ETIMEDOUT;
        if (poll(ends, 2, (int)left_ms) < 0) {
            if (errno != EINTR)
                return -errno;
            continue;
        }
        const int text = ends[0].revents ? program_take_text(program) : 1;
        const int words = ends[1].revents ? program_take_words(program) : 1;
        if (text < 0 || words < 0)
            return text < 0 ? text : words;
        ends[0].fd = text ? ends[0].fd : -1;
        ends[1].fd = words ? ends[1].fd : -1;
    }
    return 0;
}

/* ------------------------------------------------------------------------------- ending ---- */

/* Waits for the program's exit status. A program that closed its pipes but still runs is killed at the deadline. */
static int
program_reap(const struct program *program, int64_t until_ms, int *status)
{
    for (;;) {
        const pid_t pid = waitpid(program->pid, status, WNOHANG);
        if (pid == program->pid)
            return 0;
        if (pid < 0 && errno != EINTR)
            return -errno;
        if (clock_steady_ms() >= until_ms)
            return -ETIMEDOUT;
        poll(NULL, 0, 5);
    }
}

static int
program_finish(struct program *program, double seconds)
{
    const int64_t until_ms = clock_steady_ms() + (int64_t)(1000 * seconds);
    struct program_output *output = program->output;
    int status = 0;
    int rc = program_read(program, until_ms);
    if (!rc)
        rc = program_reap(program, until_ms, &status);
    if (rc) {
        int killed;
        kill(-program->pid, SIGKILL);
        while (waitpid(program->pid, &killed, 0) < 0 && errno == EINTR)
            ;
    }
    close(program->out);
    close(program->words);
    /* Join the error output into one line. Which of its lines has the reason depends on the program. */
    char *words = output->words;
    for (size_t length = strlen(words); length > 0 && strchr("\r\n ", words[length - 1]); length--)
        words[length - 1] = '\0';
    while ((words = strpbrk(words, "\r\n")))
        *words = ' ';
    output->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return rc;
}

int
program_run(const char *const arguments[], double seconds, struct program_output *output, struct error *error)
{
    *output = (struct program_output){0};
    struct program program = {.output = output};
    int rc = program_spawn(&program, arguments);
    if (!rc)
        rc = program_finish(&program, seconds);
    if (!rc && !output->text && !(output->text = calloc(1, 1)))
        rc = -ENOMEM;
    if (!rc)
        return 0;
    free(output->text);
    output->text = NULL;
    if (rc == -ETIMEDOUT)
        return error_set(error, rc, CODE_SLURM_UNAVAILABLE, "%s did not end within %g seconds and was killed",
                         arguments[0], seconds);
    return error_set(error, rc, CODE_SLURM_UNAVAILABLE, "%s cannot be run: %s", arguments[0], strerror(-rc));
}
