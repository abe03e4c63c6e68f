#include "service/common/daemon_line.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static bool
daemon_line_number(const char *text, int *number)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < 0 || value > 1023)
        return false;
    *number = (int)value;
    return true;
}

enum daemon_action
daemon_line_parse(int argc, char **argv, struct daemon_line *line)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"root", required_argument, NULL, 'r'},
        {"role", required_argument, NULL, 'R'},
        {"slot", required_argument, NULL, 'S'},
        {"device", required_argument, NULL, 'D'},
        {"share", required_argument, NULL, 'H'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"new-database", no_argument, NULL, 'B'},
        {"new-identifier-key", no_argument, NULL, 'K'},
        {NULL, 0, NULL, 0},
    };
    int option;
    *line = (struct daemon_line){.device = "cpu", .share = 1};
    optind = 0; /* restarts getopt: this function may run twice */
    while ((option = getopt_long(argc, argv, "c:r:hV", options, NULL)) != -1) {
        if (option == 'c')
            line->config_file = optarg;
        else if (option == 'r')
            line->root = optarg;
        else if (option == 'R')
            line->role = optarg;
        else if (option == 'D')
            line->device = optarg;
        else if (option == 'B')
            line->new_database = true;
        else if (option == 'K')
            line->new_key = true;
        else if (option == 'h')
            return DAEMON_HELP;
        else if (option == 'V')
            return DAEMON_SHOW_VERSION;
        else if (!(option == 'S' && daemon_line_number(optarg, &line->slot)) &&
                 !(option == 'H' && daemon_line_number(optarg, &line->share)))
            return DAEMON_WRONG;
    }
    if (optind < argc && opterr)
        fprintf(stderr, DAEMON_PROGRAM ": %s: unexpected argument\n", argv[optind]);
    return optind < argc ? DAEMON_WRONG : DAEMON_RUN;
}

const char *
daemon_line_config(const char *option, const char *variable)
{
    if (option)
        return option;
    return variable && variable[0] ? variable : NULL;
}
