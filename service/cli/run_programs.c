#include "service/cli/run_programs.h"

#include "service/cli/cli.h"
#include "service/common/slurm/slurm_digest.h"
#include "service/pipeline/program/program_steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_GPUS 64

static int
programs_complain(const char *what, int rc)
{
    cli_print_error("%s: %s", what, strerror(-rc));
    return EXIT_PARTIAL;
}

/* Lists the programs of the pipeline, each once. */
static int
programs_list(struct run_programs *programs, const struct conf *conf, const struct conf_pipeline *pipeline)
{
    programs->masks = calloc(conf->program_count + 1, sizeof *programs->masks);
    programs->of = calloc(conf->program_count + 1, sizeof *programs->of);
    if (!programs->masks || !programs->of)
        return -ENOMEM;
    for (size_t i = 0; i < conf->program_count; i++) {
        if (!conf_pipeline_names_program(pipeline, conf->programs[i].name))
            continue;
        struct job_mask *mask = &programs->masks[programs->count];
        programs->of[programs->count++] = &conf->programs[i];
        mask->program = conf_program_to_text(&conf->programs[i]);
        const int rc = conf_accepted_labels(conf, &conf->programs[i], &mask->accepted, &mask->accepted_count);
        if (rc || !mask->program)
            return rc ? rc : -ENOMEM;
    }
    return 0;
}

/* -------------------------------------------------------------------------------- --mask ---- */

/* Takes "NAME=FILE". */
static int
programs_take_given(const struct run_programs *programs, const struct conf_pipeline *pipeline, const char *given)
{
    const char *file = strchr(given, '=') + 1; /* run_check() has found it */
    const size_t length = (size_t)(file - given) - 1;
    for (size_t i = 0; i < programs->count; i++) {
        const char *name = programs->of[i]->name;
        if (strlen(name) != length || strncmp(name, given, length) != 0)
            continue;
        struct job_mask *mask = &programs->masks[i];
        struct digest digest;
        const int fd = open(file, O_RDONLY | O_CLOEXEC);
        int rc = fd < 0 ? -errno : digest_file(fd, -1, &digest, NULL);
        if (fd >= 0)
            close(fd);
        if (rc == 0) {
            free(mask->path);
            free(mask->sha256);
            mask->path = realpath(file, NULL);
            mask->sha256 = strdup(digest.sha256);
            rc = mask->path && mask->sha256 ? 0 : -ENOMEM;
        }
        return rc == 0 ? EXIT_OK : programs_complain(file, rc) && rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
    }
    cli_print_error("pipeline %s has no segment of a program \"%.*s\"", pipeline->name, (int)length, given);
    return EXIT_NOT_FOUND;
}

/* Waits for the next answer of the broker. */
static int
programs_receive(struct broker *broker, struct broker_answer *answer)
{
    struct pollfd end = {broker_fd(broker), POLLIN, 0};
    int rc;
    while ((rc = broker_receive(broker, answer)) == 0 && answer->event == BROKER_NONE)
        if (poll(&end, 1, -1) < 0)
            return -errno; /* also after a signal */
    return rc;
}

/* Results depend on the identity of the program that made a mask: for a given one it is that of the installed program. */
static int
programs_identify(const struct run_programs *programs, const struct conf *conf)
{
    struct broker_answer answer;
    char *text = conf_to_text(conf);
    int rc = text ? broker_send(programs->maker.broker, BROKER_CHECK, 0, text) : -ENOMEM;
    free(text);
    while (rc == 0 && (rc = programs_receive(programs->maker.broker, &answer)) == 0) {
        const struct program_checked *checked = &answer.checked;
        if (answer.event == BROKER_CHECKED && !*checked->name)
            return 0;
        for (size_t i = 0; i < programs->count && rc == 0 && answer.event == BROKER_CHECKED; i++) {
            struct job_mask *mask = &programs->masks[i];
            if (!mask->path || strcmp(programs->of[i]->name, checked->name) != 0)
                continue;
            mask->identity = strdup(checked->identity);
            rc = mask->identity ? 0 : -ENOMEM;
            if (!*checked->identity)
                cli_print_error("%s is not identified, so that these results differ from those of the service: %s",
                                checked->name, checked->error.message);
        }
    }
    return rc;
}

/* ------------------------------------------------------------------------------ open, close -- */

/* Starts the process that runs programs, and makes their folder. */
static int
programs_start(struct run_programs *programs, const struct conf *conf, bool some_given)
{
    struct error error;
    bool lacks_mask = false;
    int rc = broker_open(&program_steps, conf->root, &programs->maker.broker);
    if (rc)
        return programs_complain("cannot start programs", rc);
    if (some_given && (rc = programs_identify(programs, conf)) != 0)
        return programs_complain("cannot identify the programs", rc);
    for (size_t i = 0; i < programs->count; i++)
        lacks_mask |= !programs->masks[i].path;
    if (!lacks_mask) { /* no program runs: this process must not be able to start one */
        broker_close(programs->maker.broker);
        programs->maker.broker = NULL;
        return EXIT_OK;
    }
    if (scratch_open(&programs->scratch, scratch_where(NULL), &error) != 0) {
        cli_print_error("%s: %s", code_name(error.code), error.message);
        return EXIT_PARTIAL;
    }
    programs->maker.folder = programs->scratch.programs;
    return EXIT_OK;
}

int
run_programs_open(struct run_programs *programs, const struct conf *conf, const struct conf_pipeline *pipeline,
                  const struct cli_texts *given)
{
    int status = EXIT_OK, rc = programs_list(programs, conf, pipeline);
    if (rc)
        return programs_complain("cannot list the programs", rc);
    for (size_t i = 0; i < given->count && status == EXIT_OK; i++)
        status = programs_take_given(programs, pipeline, given->items[i]);
    if (status == EXIT_OK && programs->count > 0)
        status = programs_start(programs, conf, given->count > 0);
    return status;
}

void
run_programs_find_gpu(struct run_programs *programs, const struct conf_compute *compute)
{
    struct kernels_gpu gpus[MAX_GPUS];
    bool wanted = false;
    for (size_t i = 0; i < programs->count; i++)
        wanted |= programs->of[i]->gpu != CONF_GPU_NONE;
    const int count = wanted && strcmp(compute->backend, "cpu") != 0 ? kernels_gpus(gpus, MAX_GPUS) : 0;
    const char *device = compute->device_count > 0 ? compute->devices[0] : NULL;
    for (int i = 0; i < count && i < MAX_GPUS && !*programs->maker.gpu; i++) {
        char index[16];
        snprintf(index, sizeof index, "%d", gpus[i].index);
        if (!device || strcmp(index, device) == 0 || strcasecmp(gpus[i].uuid, device) == 0)
            snprintf(programs->maker.gpu, sizeof programs->maker.gpu, "%s", gpus[i].uuid);
    }
}

void
run_programs_close(struct run_programs *programs)
{
    if (programs->maker.broker)
        broker_close(programs->maker.broker);
    scratch_close(&programs->scratch);
    job_masks_free(programs->masks, programs->count);
    free(programs->of);
    *programs = (struct run_programs){0};
}
