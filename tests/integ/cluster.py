"""
A Slurm of a test's own on one machine: slurmctld and a slurmd for each node, without munge, all on ports and in folders that
are nobody else's, run by the user who runs the test. Nodes are names for this host that listen on ports of their own.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import free_port, is_listening, wait_for

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
ADMIN_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def missing():
    """What is not installed of Slurm; [] where all is there."""
    return [name for name in PROGRAMS if not shutil.which(name, path=ADMIN_PATH)]


class Cluster:
    """
    Slurm with `nodes` nodes of `cpus` processors each; `settings` are more lines of slurm.conf. The folder is short-lived
    and its name short, for sockets lie in it.
    """

    def __init__(self, folder, nodes=1, cpus=4, settings=""):
        self.folder = pathlib.Path(folder)
        self.share = self.folder / "share"
        self.share.mkdir(parents=True)
        self.port = free_port()
        self.names = [f"node{i}" for i in range(nodes)]
        self.ports = {name: free_port() for name in self.names}
        self.processes = {}
        self.log = self.folder / "log"
        self.log.mkdir()
        for name in ("state", *self.names):
            (self.folder / name).mkdir()
        host = socket.gethostname().partition(".")[0]
        user = pwd.getpwuid(os.getuid()).pw_name
        lines = "\n".join(
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} State=UNKNOWN"
            for name, port in self.ports.items())
        self.config = self.folder / "slurm.conf"
        self.config.write_text(f"""
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={self.port}
AuthType=auth/none
CryptoType=crypto/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={self.folder}/state
SlurmdSpoolDir={self.folder}/%n
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/%n/pid
SlurmctldLogFile={self.log}/slurmctld
SlurmdLogFile={self.log}/%n
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,defer
ReturnToService=2
SlurmdTimeout=5
SlurmctldTimeout=5
KillWait=1
MinJobAge=600
MaxJobCount=20000
SwitchType=switch/none
SlurmdParameters=config_overrides
{settings}
{lines}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
        self.environment = {"SLURM_CONF": str(self.config), "PATH": ADMIN_PATH}

    def spawn(self, name, *command):
        with open(self.log / f"{name}.out", "ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self.environment})

    def start_controller(self):
        self.spawn("slurmctld", "slurmctld", "-D")
        wait_for(lambda: self.lives("slurmctld") and is_listening(self.port), 30, "slurmctld's port")

    def start_node(self, name):
        self.spawn(name, "slurmd", "-D", "-N", name)
        wait_for(lambda: self.lives(name) and is_listening(self.ports[name]), 30, f"the port of {name}")

    def lives(self, name):
        assert self.processes[name].poll() is None, (self.log / f"{name}.out").read_text()[-4000:]
        return True

    def start(self):
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        wait_for(lambda: all(state.startswith(("idle", "mixed", "allocated")) for state in self.node_states().values()),
                 60, "nodes that are idle")
        return self

    def kill(self, name, number=signal.SIGKILL):
        """One of its daemons, by this name alone: what slurmd has started goes on."""
        self.processes[name].send_signal(number)
        self.processes[name].wait(20)

    def ask(self, *command, check=True):
        return subprocess.run(command, check=check, text=True, capture_output=True, timeout=60,
                              env={**os.environ, **self.environment}).stdout

    def node_states(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            return dict(line.split() for line in self.ask("sinfo", "-hN", "-o", "%N %T").splitlines())
        return {"": "unknown"}

    def jobs(self):
        """{id: state} of all that Slurm knows."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%i %T").splitlines()
        return {int(number): state for number, state in (line.split() for line in lines)}

    def steps(self):
        """Processes of jobs, whichever node they are on, and whether anybody knows of them."""
        return [pid for pid in self.leftover() if b"run-job" in self.command_of(pid)]

    @staticmethod
    def command_of(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return []

    def stop(self):
        with contextlib.suppress(Exception):
            self.ask("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name, check=False)
        for number in (signal.SIGCONT, signal.SIGTERM):
            for process in self.processes.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
        deadline = time.monotonic() + 10
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
        for pid in self.leftover():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def leftover(self):
        """What has this Slurm's configuration in its environment and lives still: slurmstepd, and what it runs."""
        mark = f"SLURM_CONF={self.config}".encode()
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)


@pytest.fixture
def cluster(tmp_path_factory):
    """Makes Slurms, started; they end with the test."""
    if missing():
        pytest.skip(f"Slurm is not installed: {', '.join(missing())} (tests/tools/install-deps.sh test)")
    made = []

    def make(**options):
        made.append(Cluster(tmp_path_factory.mktemp("slurm"), **options))
        return made[-1].start()

    yield make
    for each in made:
        each.stop()
