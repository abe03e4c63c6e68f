"""A private Slurm on one machine: slurmctld and one slurmd per node, with their own ports and folders, run by the
user of the test. Nodes are names for this host with their own ports, or, with `apart`, network namespaces
(Cables). With munge there are two munged processes: one for Slurm's daemons and one for its clients."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import types

import pytest
from conftest import Clock, free_port, is_listening, wait_for

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo", "scontrol", "munged")
ADMIN_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def missing():
    """Returns the missing parts of Slurm; [] if it is complete."""
    return [name for name in PROGRAMS if not shutil.which(name, path=ADMIN_PATH)]


SETTINGS = {
    "AuthType": "auth/none", "CryptoType": "crypto/none", "CredType": "cred/none",
    "ProctrackType": "proctrack/pgid", "TaskPlugin": "task/none", "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none", "MpiDefault": "none", "SwitchType": "switch/none",
    "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0",
    "ReturnToService": "2", "SlurmdTimeout": "300", "SlurmctldTimeout": "5", "KillWait": "1",
    "MinJobAge": "600", "MaxJobCount": "20000", "SlurmdParameters": "config_overrides"}
SOON = "MessageTimeout=2\n"  # for `asking`: commands give up on a silent controller after 2 s
MUNGE = {"AuthType": "auth/munge", "CryptoType": "crypto/munge", "CredType": "cred/munge"}


class Cables:
    """A network namespace per node, connected by a cable (veth) that a test can cut. Names and addresses derive from
    the port."""

    def __init__(self, port, nodes):
        self.net = f"10.{port >> 8}.{port & 255}"
        self.controller = f"{self.net}.1"
        self.addresses = {node: f"{self.net}.{4 * i + 2}" for i, node in enumerate(nodes)}
        self.gates = {node: f"{self.net}.{4 * i + 1}" for i, node in enumerate(nodes)}
        self.spaces = {node: f"noctule-{port}-{node}" for node in nodes}
        self.ends = {node: f"nt{port}-{i}" for i, node in enumerate(nodes)}

    def ip(self, *arguments, **options):
        return subprocess.run(["ip", *arguments], check=True, capture_output=True, env={**os.environ, "PATH": ADMIN_PATH}, **options)

    def lay(self):
        for node, space in self.spaces.items():
            end = self.ends[node]
            self.ip("netns", "add", space)
            self.ip("link", "add", end, "type", "veth", "peer", "name", "cable", "netns", space)
            self.ip("address", "add", f"{self.gates[node]}/30", "dev", end)
            self.ip("link", "set", end, "up")
            self.ip("-n", space, "address", "add", f"{self.addresses[node]}/30", "dev", "cable")
            self.ip("-n", space, "link", "set", "lo", "up")
            self.mend(node)

    def cut(self, node):
        self.ip("-n", self.spaces[node], "link", "set", "cable", "down")

    def mend(self, node):
        self.ip("-n", self.spaces[node], "link", "set", "cable", "up")
        self.ip("-n", self.spaces[node], "route", "replace", "default", "via", self.gates[node])

    def remove_cables(self):
        for node, space in self.spaces.items():
            for arguments in (("link", "delete", self.ends[node]), ("netns", "delete", space)):
                with contextlib.suppress(subprocess.CalledProcessError):
                    self.ip(*arguments)


def may_lay_cables():
    """Returns whether nodes can run `apart` on this machine."""
    if not shutil.which("ip", path=ADMIN_PATH):
        return False
    cables = Cables(free_port(), ["try"])
    try:
        cables.lay()
    except subprocess.CalledProcessError:
        return False
    finally:
        cables.remove_cables()
    return True


class Cluster:
    """Slurm with `nodes` nodes of `cpus` processors each. `settings` replace values of SETTINGS, `lines` are added to
    slurm.conf, `control_groups` is cgroup.conf, and `asking` are lines of slurm.conf for commands only. Nodes that
    are `apart` require may_lay_cables. The folder is temporary and its path must be short, because it contains
    sockets."""

    def __init__(self, folder, nodes=1, cpus=4, settings=None, lines="", munge=False, control_groups="",
                 asking="", apart=False):
        self.folder = pathlib.Path(folder)
        self.share = self.folder / "share"
        self.share.mkdir(parents=True)
        self.port = free_port()
        self.names = [f"node{i}" for i in range(nodes)]
        self.ports = {name: free_port() for name in self.names}
        self.cables = Cables(self.port, self.names) if apart else None
        self.processes = {}
        self.is_whole = True  # no part of it was ended by a test
        self.is_closed = False  # state of its partition
        self.first_job = 0  # earlier jobs belong to another test
        self.log = self.folder / "log"
        self.log.mkdir()
        self.clock = Clock(self.folder)  # clock of slurmctld
        for name in ("state", *self.names):
            (self.folder / name).mkdir()
        self.munges = ("munge", "munge-asking") if munge else ()
        of_all = self.describe(nodes, cpus, {**SETTINGS, **(MUNGE if munge else {}), **(settings or {})}) + lines
        for name, munged in (("slurm", "munge"), ("asking", "munge-asking")):
            (self.folder / f"{name}.conf").write_text(
                of_all + (f"\nAuthInfo=socket={self.folder}/{munged}.socket\n" if munge else "\n")
                + (asking if name == "asking" else ""))
        (self.folder / "cgroup.conf").write_text(control_groups)
        self.config = self.folder / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.folder / "asking.conf"), "PATH": ADMIN_PATH}

    def describe(self, nodes, cpus, settings):
        host = socket.gethostname().partition(".")[0]
        user = pwd.getpwuid(os.getuid()).pw_name
        controller = self.cables.controller if self.cables else "127.0.0.1"
        addresses = self.cables.addresses if self.cables else dict.fromkeys(self.names, "127.0.0.1")
        lines = [f"{name}={value}" for name, value in {
            "ClusterName": "test", "SlurmctldHost": f"{host}({controller})", "SlurmctldPort": self.port, "SlurmUser": user,
            "SlurmdUser": user, "StateSaveLocation": f"{self.folder}/state", "SlurmdSpoolDir": f"{self.folder}/%n",
            "SlurmctldPidFile": f"{self.folder}/slurmctld.pid", "SlurmdPidFile": f"{self.folder}/%n/pid",
            "SlurmctldLogFile": f"{self.log}/slurmctld", "SlurmdLogFile": f"{self.log}/%n", **settings}.items()]
        lines += [f"NodeName={name} NodeHostname={host} NodeAddr={addresses[name]} Port={port} CPUs={cpus} RealMemory=4000 State=UNKNOWN"
                  for name, port in self.ports.items()]
        return "\n".join([*lines, "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP", ""])

    def pass_time(self, seconds):
        """Sets slurmctld's clock forward. It checks time limits twice per minute, and starts its scheduler 3 s after
        its own start."""
        self.clock.jump(seconds)

    def spawn(self, name, *command, **environment):
        with open(self.log / f"{name}.out", "ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **self.environment, "SLURM_CONF": str(self.config), **environment})

    def start_munge(self, name, key=b"of this cluster"):
        """Starts a munged. Slurm rejects credentials that were made with another key."""
        path = self.folder / name
        secret = pathlib.Path(f"{path}.key")
        secret.write_bytes(key.ljust(64, b"."))
        secret.chmod(0o600)
        # With --force, because the socket must be in the private folder.
        self.spawn(name, "munged", "--foreground", "--force", f"--socket={path}.socket", f"--key-file={secret}",
                   f"--pid-file={path}.pid", f"--seed-file={path}.seed", f"--log-file={self.log}/{name}")
        wait_for(lambda: self.lives(name) and pathlib.Path(f"{path}.socket").exists(), 90, "munged's socket")

    def start_controller(self):
        self.spawn("slurmctld", "slurmctld", "-D", **self.clock.environment)
        wait_for(lambda: self.lives("slurmctld") and is_listening(self.port), 90, "slurmctld's port")

    def start_node(self, name):
        where = ("nsenter", f"--net=/run/netns/{self.cables.spaces[name]}") if self.cables else ()
        self.spawn(name, *where, "slurmd", "-D", "-N", name)
        wait_for(lambda: self.lives(name) and is_listening(self.ports[name], self.processes[name].pid), 90, f"the port of {name}")

    def lives(self, name):
        assert self.processes[name].poll() is None, (self.log / f"{name}.out").read_text()[-4000:]
        return True

    def start(self):
        if self.cables:
            self.cables.lay()
        for name in self.munges:
            self.start_munge(name)
        self.start_controller()
        for name in self.names:
            self.start_node(name)
        wait_for(lambda: all(state.startswith(("idle", "mixed", "allocated")) for state in self.node_states().values()),
                 90, "nodes that are idle")
        self.pass_time(5)
        return self

    def kill(self, name, number=signal.SIGKILL):
        """Kills one daemon by its name. Processes that slurmd has started continue."""
        self.is_whole = False
        self.processes[name].send_signal(number)
        self.processes[name].wait(60)

    def ask(self, *command, check=True):
        return subprocess.run(command, check=check, text=True, capture_output=True, timeout=120,
                              env={**os.environ, **self.environment}).stdout

    def set_partition(self, state):
        """DOWN: the partition accepts jobs and does not start them. UP: it starts them."""
        self.ask("scontrol", "update", "PartitionName=main", f"State={state}")
        self.is_closed = state != "UP"

    def node_states(self):
        with contextlib.suppress(subprocess.CalledProcessError):
            return dict(line.split() for line in self.ask("sinfo", "-hN", "-o", "%N %T").splitlines())
        return {"": "unknown"}

    def jobs(self):
        """Returns {id: state} of the jobs of this test."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--format=%i %T").splitlines()
        known = {int(number): state for number, state in (line.split() for line in lines)}
        return {number: state for number, state in known.items() if number > self.first_job}

    def steps(self):
        """Returns the processes of jobs on any node, and whether Slurm still has a record of a job. A process that a
        shell forked has its parent's command until exec, and does not count."""
        found = {pid: self.parent_of(pid) for pid in self.leftover() if b"run-job" in self.command_of(pid)}
        return [pid for pid, parent in found.items() if parent not in found]

    @staticmethod
    def parent_of(pid):
        with contextlib.suppress(OSError):
            return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return None

    @staticmethod
    def command_of(pid):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return []

    def cancel_all(self):
        if self.processes["slurmctld"].poll() is None:  # otherwise the command would wait for it
            self.ask("scancel", "--user", pwd.getpwuid(os.getuid()).pw_name, check=False)

    def is_idle(self):
        return not self.steps() and set(self.node_states().values()) == {"idle"}

    def renew(self):
        """Prepares for the next test by removing all jobs and files of this one. Returns False if this is impossible
        and another Slurm is needed."""
        if not self.is_whole or any(process.poll() is not None for process in self.processes.values()):
            return False
        self.cancel_all()
        if self.is_closed:
            self.set_partition("UP")
        wait_for(self.is_idle, 60, "idle nodes")
        self.first_job = max(self.jobs(), default=self.first_job)
        self.share = self.folder / f"share-{self.first_job}"  # a daemon may still be writing to the old folder
        self.share.mkdir(exist_ok=True)
        return True

    def has_ended(self):
        """Kills the remaining processes, and checks for new ones that a slurmstepd has started meanwhile."""
        left = list(self.leftover())
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    def stop(self):
        """Kills all processes. The state is not needed, and an orderly end of slurmctld takes up to 10 s."""
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)
        wait_for(self.has_ended, 60, "the end of what Slurm has started")
        if self.cables:
            self.cables.remove_cables()

    def cut(self, name):
        """Disconnects the node from the network. The node continues, and still has access to the share."""
        self.is_whole = False
        self.cables.cut(name)

    def leftover(self):
        """Returns live processes that have the configuration of this Slurm in their environment: slurmstepd and its
        children."""
        mark = f"SLURM_CONF={self.folder}/".encode()
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes():
                        yield int(entry.name)


# complete Slurms that tests have returned, by their arguments: a fresh one needs seconds to start its first job
idle = {}


def stop_idle():
    while idle:
        idle.popitem()[1].stop()


def waiting(path):
    """Returns a line for sh that waits until the file exists. The wait ends with the test and with its folder, even
    if no process kills it."""
    return f"while [ ! -e {path} ]; do [ -d {path.parent} ] && [ -d /proc/{os.getpid()} ] || exit 1; sleep 0.1; done"


def played(folder, **scripts):
    """Returns the environment of a daemon whose Slurm commands are replaced by the given scripts for sh, by name."""
    (folder / "bin").mkdir()
    for name, script in scripts.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "share").mkdir()
    return types.SimpleNamespace(share=folder / "share", environment={"PATH": f"{folder}/bin:{os.environ['PATH']}"})


def multiply_job(d, count, **made):
    """Copies job 1 to jobs 2 to `count` + 1, with other values in the given columns. Values are SQL, and n is the
    job's number minus 1. `d` must be stopped."""
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(job)") if row[1] != "id"]
        made = {"pipeline": "'p' || n", **made}
        db.execute(f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}) "
                   f"INSERT INTO job (id, {', '.join(columns)}) SELECT n + 1, "
                   f"{', '.join(made.get(column, column) for column in columns)} FROM numbers, job WHERE id = 1")
        db.execute("INSERT INTO event (at, kind, series_id, job_id, from_state, to_state, detail) "
                   "SELECT e.at, e.kind, e.series_id, job.id, e.from_state, e.to_state, e.detail "
                   "FROM event e JOIN job ON job.id > 1 WHERE e.job_id = 1")


@pytest.fixture
def cluster(tmp_path_factory, request):
    """Returns running Slurms for this test alone."""
    if missing():
        pytest.skip(f"Slurm is not installed: {', '.join(missing())} (tests/tools/install-deps.sh test)")
    request.config.add_cleanup(stop_idle)
    taken = []

    def take(**options):
        site = idle.pop(repr(options), None) or Cluster(tmp_path_factory.mktemp("slurm"), **options)
        taken.append((repr(options), site))
        return site if site.processes else site.start()

    yield take
    for made_with, site in taken:
        again = False
        try:
            again = made_with not in idle and site.renew()
        finally:
            if again:
                idle[made_with] = site
            else:
                site.stop()
