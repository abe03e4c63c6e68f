/* cli_check_config.c - `noctule check-config`: checks a configuration file and prints a summary. */
#include "service/cli/cli.h"

#include "db/report.h"
#include "service/common/alert/alert_list.h"
#include "service/common/clock.h"
#include "service/common/daemon_line.h"
#include "service/common/program/sandbox.h"
#include "service/common/settings.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
print_dicom(const struct conf_dicom *dicom)
{
    const char *bind = dicom->bind[0] ? dicom->bind : "every address";
    if (dicom->port)
        printf("listens: %s, port %d\n", bind, dicom->port);
    if (dicom->tls_port)
        printf("listens: %s, port %d, TLS\n", bind, dicom->tls_port);
    for (size_t i = 0; i < dicom->title_count; i++)
        printf("title: %s -> %s\n", dicom->titles[i].ae_title,
               dicom->titles[i].pipeline ? dicom->titles[i].pipeline : "rules");
    for (size_t i = 0; i < dicom->peer_count; i++)
        printf("peer: %s, %s%s\n", dicom->peers[i].ae_title,
               dicom->peers[i].host ? dicom->peers[i].host : "any address",
               dicom->peers[i].certificate ? ", identified by certificate" : "");
}

static void
print_pipeline(const struct conf_pipeline *pipeline)
{
    size_t hidden = 0;
    for (size_t i = 0; i < pipeline->segment_count; i++)
        hidden += pipeline->segments[i].hidden;
    const size_t shown = pipeline->segment_count - hidden;
    printf("pipeline: %s (%zu segment%s", pipeline->name, shown, shown == 1 ? "" : "s");
    if (hidden > 0)
        printf(", %zu hidden", hidden);
    putchar(')');
}

/* Prints the images whose results are delivered without review. */
static void
print_trust(const struct conf *conf, const struct conf_pipeline *pipeline)
{
    bool local = false;
    for (size_t i = 0; i < pipeline->segment_count; i++) {
        const struct conf_expect *expect = pipeline->segments[i].expect;
        local |= expect && expect->trust == CONF_TRUST_LOCAL;
    }
    if (!local)
        return;
    char *ranges = pipeline->unreviewed ? NULL : cli_find_validated(conf, pipeline);
    puts(pipeline->unreviewed ? "  trust: results are delivered without REVIEW (unreviewed = true)"
         : ranges && *ranges
             ? "  trust: results for validated images are delivered, others are held for REVIEW"
             : "  trust: each result is held for REVIEW until the site validates it (noctule validate)");
    free(ranges);
}

static void
print_program(const struct conf_program *program, const struct sandbox_probe *probe)
{
    static const char *const gpus[] = {
        [CONF_GPU_NONE] = "CPU", [CONF_GPU_SHARED] = "GPU, shared", [CONF_GPU_WHOLE] = "GPU"};
    printf("program: %s, %s %s, sandbox %s, %s, %s, at most %g s", program->name, program->algorithm.name,
           program->algorithm.version, sandbox_name(program->container ? SANDBOX_CONTAINER : probe->kind),
           program->host_network ? "network of the host" : "no network", gpus[program->gpu], program->deadline_seconds);
}

/* Checks that this machine can isolate the programs as configured. */
static int
check_config_programs(const struct conf *conf, const struct sandbox_probe *probe)
{
    int status = EXIT_OK;
    for (size_t i = 0; i < conf->program_count; i++) {
        const struct conf_program *program = &conf->programs[i];
        if (program->container || (probe->kind != SANDBOX_NONE && (program->host_network || probe->no_network)))
            continue;
        cli_print_error("program %s: %s is impossible here%s%s: install bubblewrap%s", program->name,
                        probe->kind == SANDBOX_NONE ? "a sandbox" : "network = \"none\"", probe->why[0] ? ": " : "",
                        probe->why, probe->kind == SANDBOX_NONE ? "" : ", or set network = \"host\"");
        status = EXIT_CONFIG;
    }
    return status;
}

/* Ends a line. Adds the file and line if an included file has the entry. */
static void
print_place(const char *path, const struct conf_findings *findings, size_t number)
{
    const char *place = number < findings->place_count ? findings->places[number] : "";
    const size_t length = strlen(path);
    if (*place && !(strncmp(place, path, length) == 0 && place[length] == ':'))
        printf(", from %s", place);
    putchar('\n');
}

static void
print_destination(const struct conf_destination *to)
{
    if (to->folder)
        printf("destination: %s, folder %s", to->name, to->folder);
    else if (to->stow)
        printf("destination: %s, STOW-RS at %s", to->name, to->stow);
    else
        printf("destination: %s, %s at %s, port %d%s", to->name, to->ae_title, to->host, to->port,
               to->tls ? ", TLS" : "");
}

static void
print_rule(const struct conf_rule *rule)
{
    const size_t more = rule->attribute_count + (rule->orientation != CONF_ANY_ORIENTATION) + rule->has_spacing +
                        rule->has_contrast + (rule->min_slices > 0) + (rule->max_slices > 0) + (rule->study_count > 0) +
                        (rule->inbox != NULL) + (rule->called_ae != NULL) + (rule->sender != NULL);
    printf("rule: %s%s%s, %s, %s", rule->name ? rule->name : "", rule->name ? ": " : "",
           rule->modality ? rule->modality : "any modality", rule->body_part ? rule->body_part : "any body part",
           rule->description ? rule->description : "any description");
    if (more)
        printf(", %zu more condition%s", more, more == 1 ? "" : "s");
    printf("%s -> %s", rule->otherwise ? ", if no other rule matches" : "", rule->pipeline);
}

/* Prints the fate of the inbox's files. Kept files remain in addition to the stored copy. */
static void
print_inbox(const struct conf *conf, const struct conf_inbox *inbox)
{
    printf("inbox: %s%s%s, ", inbox->name ? inbox->name : "", inbox->name ? ": " : "", inbox->path);
    if (inbox->after == CONF_MOVE)
        printf("files are moved to %s\n", inbox->move_to);
    else if (inbox->after == CONF_DELETE)
        puts("files are deleted once they are stored");
    else if (conf->retention.delete_originals)
        puts("files are kept until their series is removed");
    else
        puts("files are kept forever in addition to the stored copy (see the options after and retention.inbox)");
}

static void
check_config_summary(const char *path, const struct conf *conf, const struct conf_findings *findings,
                     const struct sandbox_probe *probe)
{
    const size_t pipelines = conf->pipeline_count;
    printf("%s: OK\n", path);
    printf("root: %s\n", conf->root);
    for (size_t i = 0; i < conf->inbox_count; i++)
        print_inbox(conf, &conf->inboxes[i]);
    print_dicom(&conf->dicom);
    if (conf->page.socket)
        printf("web UI: socket %s\n", conf->page.socket);
    if (conf->page.port)
        printf("web UI: %s, port %d%s\n", conf->page.bind[0] ? conf->page.bind : "every address", conf->page.port,
               conf->page.token_file ? ", with a token" : "");
    for (size_t i = 0; i < conf->destination_count; i++) {
        print_destination(&conf->destinations[i]);
        print_place(path, findings, pipelines + i);
    }
    for (size_t i = 0; i < conf->pull.source_count; i++) {
        const struct conf_source *source = &conf->pull.sources[i];
        printf("source: %s, %s at %s, port %d%s, sends to %s%s%s\n", source->name, source->ae_title, source->host,
               source->port, source->tls ? ", TLS" : "", source->move_destination, source->window ? ", " : "",
               source->window ? source->window->text : "");
    }
    for (size_t i = 0; i < conf->program_count; i++) {
        print_program(&conf->programs[i], probe);
        print_place(path, findings, pipelines + conf->destination_count + conf->rule_count + conf->notify_count + i);
    }
    for (size_t i = 0; i < pipelines; i++) {
        print_pipeline(&conf->pipelines[i]);
        print_place(path, findings, i);
        print_trust(conf, &conf->pipelines[i]);
    }
    for (size_t i = 0; i < conf->rule_count; i++) {
        print_rule(&conf->rules[i]);
        print_place(path, findings, pipelines + conf->destination_count + i);
    }
    if (conf->rule_count == 0)
        printf("rule: none; only AE titles with a pipeline create jobs\n");
}

/* As root, loads the file again with the rights of the service, which must be able to read it.
 * Drafts of root only get a warning. */
static int
check_config_as_service(const struct cli_call *call, const char *path, const struct conf *conf)
{
    const struct passwd *user;
    struct conf *again = NULL;
    struct error error;
    const bool draft = call->count > 0 && strcmp(path, DAEMON_CONFIG) != 0;
    const int taken = cli_take_rights(conf, &user);
    if (taken < 0)
        cli_print_error("cannot switch to user %s: %s", user->pw_name, strerror(-taken));
    if (taken <= 0 || conf_load_with_root(path, call->context->root, &again, &error) == 0) {
        conf_free(again);
        return taken < 0 ? EXIT_PARTIAL : EXIT_OK;
    }
    cli_print_error("%s%s: the service's user %s cannot read this file: chgrp it to the service's "
                    "group and chmod it to 0640",
                    draft ? "warning: " : "", error.message, user->pw_name);
    return draft ? EXIT_OK : EXIT_CONFIG;
}

/* Checks that the TLS files can be used, with the rights of the service if root runs the
 * command. */
static int
check_config_tls(const struct conf_dicom *dicom)
{
    struct error error;
    if (!dicom->tls.certificate && !dicom->tls.ca)
        return EXIT_OK;
    dicom_init();
    struct dicom_tls *tls = settings_open_tls(&dicom->tls, dicom->tls_port > 0, &error);
    if (!tls) {
        cli_print_error("%s", error.message);
        return EXIT_CONFIG;
    }
    dicom_tls_close(tls);
    return EXIT_OK;
}

static int
check_config_doubt(void *context, const char *pipeline, const char *text)
{
    (void)context, (void)pipeline;
    cli_print_error("%swarning: %s%s", cli_style(CLI_DOUBTFUL, stderr), cli_style(CLI_PLAIN, stderr), text);
    return 0;
}

/* Warns of each file in conf.d, beside the configuration, that the configuration does not read. A configuration of
 * 0.1.0 has no @overlay line. */
static void
check_config_unread(const char *path, const struct conf_findings *findings)
{
    const char *slash = strrchr(path, '/');
    char *pattern;
    glob_t found;
    if (asprintf(&pattern, "%.*sconf.d/*.conf", slash ? (int)(slash + 1 - path) : 0, path) < 0)
        return;
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            char text[1024];
            if (strstr(findings->files, strstr(found.gl_pathv[i], "conf.d/")))
                continue;
            snprintf(text, sizeof(text), "%s is not read: add the line @overlay \"conf.d/*.conf\" to %s",
                     found.gl_pathv[i], path);
            check_config_doubt(NULL, "", text);
        }
        globfree(&found);
    }
    free(pattern);
}

struct check_config_options {
    bool print;
};

static int
check_config_run(struct cli_call *call)
{
    const struct check_config_options *options = call->options;
    struct conf_findings findings;
    struct sandbox_probe probe = {0};
    struct error error;
    if (call->count == 0 && cli_choose_conf(call->context, &error) < 0) {
        cli_print_error("%s", error.message);
        return EXIT_CONFIG;
    }
    const char *path = call->count > 0 ? call->arguments[0] : call->context->config_path;
    struct conf *conf = cli_load_conf(call->context, path, &findings);
    int status = conf ? check_config_as_service(call, path, conf) : EXIT_CONFIG;
    if (status == EXIT_OK)
        status = check_config_tls(&conf->dicom);
    if (status == EXIT_OK && conf->program_count > 0) {
        sandbox_probe(&probe);
        status = check_config_programs(conf, &probe);
    }
    if (status == EXIT_OK) {
        /* doubts about deadlines, from measured run times if the database can be read */
        struct report *report = NULL;
        if (cli_try_report(conf, &report, &error) != 0)
            report = NULL;
        deadline_alerts_each(conf, report, true, clock_unix_ms(), check_config_doubt, NULL);
        report_close(report);
        check_config_unread(path, &findings);
    }
    if (status == EXIT_OK && options->print) {
        char *text = conf_to_text(conf);
        if (text)
            fputs(text, stdout);
        else
            cli_print_error("out of memory");
        status = text ? EXIT_OK : EXIT_PARTIAL;
        free(text);
    } else if (status == EXIT_OK) {
        check_config_summary(path, conf, &findings, &probe);
    }
    conf_findings_free(&findings);
    conf_free(conf);
    return status;
}

const struct cli_command cli_check_config = {
    .name = "check-config",
    .help = "check a configuration file: print all errors, or a summary",
    .usage = {"[--print] [FILE]"},
    .options =
        (const struct cli_option[]){
            {"print", 0, &cli_flag, CLI_AT(struct check_config_options, print),
             .help = "print the effective configuration: includes expanded, defaults filled in"},
            {0}},
    .size = sizeof(struct check_config_options),
    .kind = &cli_file,
    .max_arguments = 1,
    .needs = "at most one file",
    .without_conf = true,
    .run = check_config_run};
