/* cli_common.c - functions that several commands of `noctule` use. */
#include "service/cli/cli.h"

#include "db/iso_time.h"
#include "service/cli/input/input.h"
#include "service/common/daemon_line.h"
#include "service/common/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct conf *
cli_load_conf(const struct cli_context *context, const char *path, struct conf_findings *findings)
{
    struct conf_findings own, *found = findings ? findings : &own;
    struct error error;
    struct conf *conf = NULL;
    int rc = conf_load_all(path, context->root, &conf, found, &error);
    const bool wrong = rc < 0;
    if (wrong && found->count == 0) {
        cli_print_error("%s%s", error.message, rc == -ENOENT ? "; give its path with --config or NOCTULE_CONFIG" : "");
    } else if (wrong || findings) {
        for (size_t i = 0; i < found->count; i++)
            if (found->items[i].wrong == wrong)
                cli_print_error("%s%s%s%s", cli_style(wrong ? CLI_PLAIN : CLI_DOUBTFUL, stderr),
                                wrong ? "" : "warning: ", cli_style(CLI_PLAIN, stderr), found->items[i].message);
        if (found->more > 0)
            cli_print_error("and %zu more", found->more);
    }
    if (!findings)
        conf_findings_free(found);
    return conf;
}

/* Uses the default root for the default file only. Another file without a root may belong to
 * another service. */
static char *
cli_find_root(const struct cli_context *context)
{
    char *root = NULL;
    if (context->root)
        return strdup(context->root);
    if (conf_find_root(context->config_path, &root) < 0)
        return NULL;
    if (*root || strcmp(context->config_path, DAEMON_CONFIG) != 0)
        return root;
    free(root);
    return strdup(CONF_ROOT);
}

struct conf *
cli_load_conf_in_force(const struct cli_context *context)
{
    struct conf *conf = NULL;
    struct error error;
    char *root = cli_find_root(context), *file = NULL, *message = NULL, *troubles = NULL;
    const int rc = root && *root ? cli_ping_daemon(root, CLI_DAEMON_SECONDS, &message, &troubles) : -ENOENT;
    if ((rc == 0 || rc == -EINPROGRESS) && asprintf(&file, "%s/" LAYOUT_CONFIG, root) >= 0) {
        if (conf_load(file, &conf, &error) < 0)
            conf = NULL;
        free(file);
    }
    free(message);
    free(troubles);
    free(root);
    return conf;
}

int
cli_parse_number(const char *text, int64_t *number)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0')
        return -EINVAL;
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    if (errno != 0 || value < 1)
        return -EINVAL;
    *number = value;
    return 0;
}

int
cli_time_to_ms(const char *text, int64_t *ms)
{
    char whole[] = "0000-01-01T00:00:00.000Z";
    const size_t length = strlen(text);
    if (length >= sizeof whole)
        return -EINVAL;
    memcpy(whole, text, length);
    return iso_time_to_ms(whole, ms);
}

int
cli_find_pipeline(const struct conf *conf, const char *name, const struct conf_pipeline **pipeline)
{
    *pipeline = conf_find_pipeline(conf, name);
    if (*pipeline)
        return EXIT_OK;
    cli_print_error("the configuration has no pipeline \"%s\"; it has:", name);
    for (size_t i = 0; i < conf->pipeline_count; i++)
        cli_print_error("  %s", conf->pipelines[i].name);
    return EXIT_NOT_FOUND;
}

int
cli_collect(struct collection *files, const char *input)
{
    char *where;
    int rc = input_collect(files, input, &where);
    if (rc == 0)
        return EXIT_OK;
    cli_print_error("%s: %s", where ? where : input, strerror(-rc));
    free(where);
    return rc == -ENOENT ? EXIT_NOT_FOUND : EXIT_PARTIAL;
}
