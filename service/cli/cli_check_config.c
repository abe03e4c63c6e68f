/*
 * cli_check_config.c - `noctule check-config`: is the file good, and what does it say?
 */
#include "cli.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static void
print_summary(const char *path, const struct conf *conf)
{
    printf("%s: OK\n", path);
    printf("root: %s\n", conf->root);
    for (size_t i = 0; i < conf->inbox_count; i++)
        printf("inbox: %s\n", conf->inboxes[i].path);
    for (size_t i = 0; i < conf->pipeline_count; i++)
        printf("pipeline: %s (%zu segment%s)\n", conf->pipelines[i].name,
               conf->pipelines[i].segment_count, conf->pipelines[i].segment_count == 1 ? "" : "s");
    for (size_t i = 0; i < conf->rule_count; i++) {
        const struct conf_rule *rule = &conf->rules[i];
        printf("rule: %s, %s, %s -> %s\n", rule->modality ? rule->modality : "any modality",
               rule->body_part ? rule->body_part : "any body part",
               rule->description ? rule->description : "any description", rule->pipeline);
    }
}

static int
print_text(const struct conf *conf)
{
    char *text = conf_to_text(conf);
    if (!text) {
        cli_complain("out of memory");
        return EXIT_PARTIAL;
    }
    fputs(text, stdout);
    free(text);
    return EXIT_OK;
}

int
cli_check_config(const struct cli_context *context, int argc, char **argv)
{
    static const struct option options[] = {{"print", no_argument, NULL, 'p'}, {NULL, 0, NULL, 0}};
    bool print = false;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option != 'p')
            return cli_usage_error(argv[0], "wrong options");
        print = true;
    }
    if (argc - optind > 1)
        return cli_usage_error(argv[0], "takes one file");
    const char *path = optind < argc ? argv[optind] : context->config_path;

    char reason[CONF_REASON];
    struct conf *conf = NULL;
    if (conf_load_with_root(path, context->root, &conf, reason, sizeof(reason)) < 0) {
        cli_complain("%s", reason);
        return EXIT_CONFIG;
    }
    int status = EXIT_OK;
    if (print)
        status = print_text(conf);
    else
        print_summary(path, conf);
    conf_free(conf);
    return status;
}
