/* cli.c - `noctule`: loads the configuration and runs one command of the table. */
#include "service/cli/cli.h"

#include "dicom/dicom.h"
#include "service/common/daemon_line.h"

#include <stdlib.h>

/* If the file has an error, commands that do not need the file itself use the configuration in
 * force. */
static struct conf *
load_conf(const struct cli_call *call)
{
    struct cli_context *context = call->context;
    struct conf *conf = NULL;
    struct error error;
    if (call->command->as_written || call->command->standalone)
        return cli_load_conf(context, context->config_path, NULL);
    if (conf_load_with_root(context->config_path, context->root, &conf, &error) == 0)
        return conf;
    conf = cli_load_conf_in_force(context);
    if (!conf)
        return cli_load_conf(context, context->config_path, NULL);
    context->is_in_force = true;
    if (call->command != &cli_reload) /* reload prints the reason itself */
        cli_print_error("warning: %s; using the configuration in force instead (see noctule check-config)",
                        error.message);
    return conf;
}

/* Standalone commands read the given or the default configuration. Other commands follow the
 * running daemon. */
static int
run_with_conf(struct cli_call *call)
{
    struct cli_context *context = call->context;
    struct error error;
    if (call->command->standalone && !context->config_path)
        context->config_path = DAEMON_CONFIG;
    if (cli_choose_conf(context, &error) < 0) {
        cli_print_error("%s", error.message);
        return EXIT_CONFIG;
    }
    struct conf *conf = load_conf(call);
    if (!conf)
        return EXIT_CONFIG;
    context->conf = conf;
    int status = call->command->run(call);
    context->conf = NULL;
    conf_free(conf);
    return status;
}

static int
run_call(struct cli_call *call)
{
    const struct cli_command *command = call->command;
    if (call->context->version)
        return cli_version.run(call);
    if (call->context->help && command)
        cli_print_command(command, stdout);
    else if (call->context->help)
        cli_print_help(stdout);
    else if (command)
        return command->without_conf ? command->run(call) : run_with_conf(call);
    else
        cli_print_help(stderr);
    return call->context->help ? EXIT_OK : EXIT_USAGE;
}

int
main(int argc, char **argv)
{
    struct cli_context context = {.config_path = daemon_line_config(NULL, getenv(DAEMON_CONFIG_VARIABLE))};
    struct cli_call call;
    conf_set_dictionary(dicom_attribute_kind);
    int status = cli_parse(argc, argv, &context, &call);
    if (status == EXIT_OK) {
        status = run_call(&call);
        if (fflush(stdout) != 0 || ferror(stdout)) { /* for example, a full disk */
            cli_print_error("cannot write to standard output");
            status = status == EXIT_OK ? EXIT_PARTIAL : status;
        }
    }
    cli_release(&call);
    free(context.chosen[0]);
    free(context.chosen[1]);
    return status;
}
