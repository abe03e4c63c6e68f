/*
 * role.h - the child processes of noctuled: the same program, started with --role.
 *
 * A child inherits its arguments and, as fd 3, its pipe to the daemon. It must send HELLO first and exit when the pipe
 * closes. Each main returns an exit status; 0 means that the daemon ended the child or exited.
 */
#ifndef NOCTULE_SERVICE_COMMON_ROLE_H
#define NOCTULE_SERVICE_COMMON_ROLE_H

#define ROLE_FD        3
#define ROLE_HANDED_FD 4 /* of the web UI, for the files that it hands over (service/common/wire/handed.h) */

/* Exit status of a worker whose device cannot be opened or has failed. No job caused this, and no
 * job was begun that the worker did not report. */
#define ROLE_EXIT_DEVICE 69

struct role_args {
    /* The configuration that the daemon checked, complete (conf_to_text). */
    const char *config_file;
    int slot;           /* number of the worker */
    const char *device; /* of a worker: "cpu", or the UUID of a GPU */
    int share;          /* of a worker: the number of workers that share its processors */
};

int receiver_main(const struct role_args *args);
int worker_main(const struct role_args *args);
int sender_main(const struct role_args *args);
int web_main(const struct role_args *args);
int slurm_main(const struct role_args *args);
int program_main(const struct role_args *args);
/* Reports the GPUs of this machine and exits. */
int probe_main(const struct role_args *args);

#endif
