/*
 * sandbox_container.c - programs in containers of podman and docker. Their processes may be out of reach of signals, as
 * children of a daemon or as other users of a user namespace, so that the engine must end them.
 */
#include "service/common/program/sandbox_private.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_SECONDS 30

/* The file into which the engine writes the ID of the container, beside the folder of temporary files. */
static char *
container_id_file(const struct sandbox_order *order)
{
    char *path;
    return asprintf(&path, "%s.cid", order->places.temporary) < 0 ? NULL : path;
}

char **
sandbox_container(const struct sandbox_order *order)
{
    const char *engine = text_base_name(order->argv[0]);
    static char option[] = "--cidfile";
    size_t count = 0, made = 0;
    while (order->argv[count])
        count++;
    char **argv = calloc(count + 3, sizeof *argv);
    bool waits = strcmp(engine, "podman") == 0 || strcmp(engine, "docker") == 0;
    for (size_t i = 0; argv && i < count; i++) {
        argv[made++] = order->argv[i];
        if (!waits || strcmp(order->argv[i], "run") != 0)
            continue;
        waits = false;
        argv[made++] = option;
        argv[made] = container_id_file(order);
        if (!argv[made++]) {
            free(argv);
            return NULL;
        }
    }
    return argv;
}

/* Runs a command of the engine, without input and output, and waits for its end. */
static void
container_call(const struct sandbox_order *order, char *const *argv)
{
    const pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        const int null = open("/dev/null", O_RDWR);
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
            dup2(null, fd);
        close_range(STDERR_FILENO + 1, ~0u, 0);
        alarm(CALL_SECONDS); /* also ends a program that hangs */
        execve(argv[0], argv, order->environment);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void
sandbox_container_end(const struct sandbox_order *order)
{
    char id[128] = "", verb_kill[] = "kill", verb_remove[] = "rm", force[] = "-f";
    char *path = container_id_file(order);
    const int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
    const ssize_t size = fd < 0 ? -1 : read(fd, id, sizeof id - 1);
    if (fd >= 0)
        close(fd);
    free(path);
    id[size > 0 ? size : 0] = '\0';
    id[strspn(id, "0123456789abcdef")] = '\0';
    if (!id[0])
        return;
    container_call(order, (char *const[]){order->argv[0], verb_kill, id, NULL});
    container_call(order, (char *const[]){order->argv[0], verb_remove, force, id, NULL});
}
