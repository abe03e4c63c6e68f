"""The configuration of commands without --config: that of the running daemon, which is found in /proc. Each test has
its own process namespace, because daemons of other tests run at the same time."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess

import pytest
from conftest import BIN, SETTINGS, wait_for
from test_status import NOBODY, open_folder  # noqa: F401

USAGE, NO_DAEMON, CONFIG = 2, 4, 5
USUAL = pathlib.Path("/etc/noctule/noctule.conf")
READING = (("status",), ("jobs",), ("series",), ("deliveries",), ("destinations",), ("ping",), ("report",), ("check-config",),
           ("doctor", "--json"), ("jobs", "--json"))


class Machine:
    """A namespace of processes. All of them end with it."""

    def __init__(self):
        self.users = ["--user", "--map-root-user"] if os.geteuid() else []
        self.init = subprocess.Popen(["unshare", *self.users, "--pid", "--fork", "--kill-child", "--mount-proc",
                                      "sleep", "infinity"], stderr=subprocess.PIPE)
        self.first = wait_for(self.child, 60, "the first process")

    def child(self):
        if self.init.poll() is not None:
            pytest.skip(f"no namespace of processes here: {self.init.stderr.read().decode()}")
        children = pathlib.Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        with contextlib.suppress(OSError):  # the first child can be a helper that has ended
            return children and pathlib.Path(f"/proc/{children[0]}/comm").read_text() == "sleep\n" and children[0]
        return None

    def command(self, *words, folder="/", user=None):
        users = ["--user", "--preserve-credentials"] if self.users else []
        other = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        return ["nsenter", f"--target={self.first}", *users, "--pid", "--mount", f"--wd={folder}", *other, *map(str, words)]

    def environment(self, **named):
        return {**{name: value for name, value in os.environ.items() if name != "NOCTULE_CONFIG"}, **named}

    def noctule(self, *words, status=0, folder="/", user=None, **named):
        done = subprocess.run(self.command(BIN / "noctule", *words, folder=folder, user=user), text=True, capture_output=True,
                              env=self.environment(**named), timeout=60)
        assert status in (None, done.returncode), done
        return done

    def processes(self, name="noctuled"):
        """Returns the live processes with their numbers here. A child has its parent's name until exec."""
        done = subprocess.run(self.command("ps", "-o", "pid=,ppid=,stat=", "-C", name), text=True, capture_output=True)
        alive = {int(pid): int(parent) for pid, parent, state in map(str.split, done.stdout.splitlines()) if "Z" not in state}
        return [pid for pid, parent in alive.items() if parent not in alive]

    def start(self, config, *words, root=None, folder="/", user=None, wrapper=(), **named):
        """Starts a daemon with that configuration, and waits until it replies. Returns its number here, and the
        process that waits for it."""
        before = set(self.processes())
        with open(config.with_suffix(".log"), "ab") as log:
            waits = subprocess.Popen(self.command(*wrapper, BIN / "noctuled", *words, folder=folder, user=user), stdout=log,
                                     stderr=log, env=self.environment(**named))
        ping = ("--config", config, *(("--root", root) if root else ()), "ping")
        wait_for(lambda: self.noctule(*ping, user=user, status=None).returncode == 0, 60, "the daemon's answer")
        (number,) = set(self.processes()) - before
        return number, waits

    def kill(self, number, waits):
        subprocess.run(self.command("kill", "-KILL", str(number)), check=True)
        waits.wait(60)

    def end(self):
        self.init.kill()
        self.init.wait(60)
        self.init.stderr.close()


@pytest.fixture
def machine():
    made = Machine()
    yield made
    made.end()


def configure(folder, owner=None):
    """Writes a configuration. Returns it and its root."""
    folder.mkdir(exist_ok=True)
    (folder / "root" / "inbox").mkdir(parents=True)
    (folder / "noctule.conf").write_text(SETTINGS.format(root=folder / "root", after="keep", quiet=1.0, attempts=3,
                                                         pipeline_extra=""))
    for path in (folder, folder / "root", folder / "root" / "inbox", folder / "noctule.conf") if owner else ():
        os.chown(path, owner, owner)
    return folder / "noctule.conf", folder / "root"


def without_daemon(machine):
    """Returns the result without a daemon: the usual file, if this machine has it."""
    done = machine.noctule("check-config", status=None)
    assert str(USUAL) in done.stdout + done.stderr and "of the running noctuled" not in done.stderr
    return done


def test_no_running_daemon(machine):
    without_daemon(machine)
    if not USUAL.exists():
        assert "give its path with --config or NOCTULE_CONFIG" in machine.noctule("jobs", status=CONFIG).stderr


def test_one_running_daemon(machine, tmp_path):
    config, root = configure(tmp_path / "one")
    other, _ = configure(tmp_path / "other")
    number, waits = machine.start(config, "--config", config)
    line = f"noctule: using {config} of the running noctuled (process {number})\n"
    for words in READING:
        done = machine.noctule(*words, status=None)
        assert done.returncode in ((0, 1, 2) if words[0] == "doctor" else (0, 1)), done
        assert done.stderr == line, done
    assert f"{config}: OK\nroot: {root}\n" in machine.noctule("check-config").stdout
    told = json.loads(machine.noctule("doctor", "--json", status=None).stdout)
    assert next(check for check in told["checks"] if check["check"] == "configuration")["text"].startswith(str(config))
    assert f"root {root}" in machine.noctule("ping").stdout
    assert "there is no job 1" in machine.noctule("cancel", "1", status=3).stderr  # also for commands with effects
    # A given configuration has precedence, and commands that need none search no process.
    assert machine.noctule("--config", other, "ping", status=NO_DAEMON).stderr.endswith(
        f"with root {other.parent}/root: start it (systemctl start noctule, or noctuled --config FILE)\n")
    assert str(other) in machine.noctule("check-config", NOCTULE_CONFIG=str(other)).stdout
    for words in (("check-config", other), ("version",), ("help",), ("presets",), ("status", "--help")):
        assert not machine.noctule(*words).stderr
    assert machine.noctule("jbos", status=USAGE).stderr.startswith("noctule: there is no command")
    # After any end the kernel's list is right, which a file would not be.
    machine.kill(number, waits)
    without_daemon(machine)
    number, _ = machine.start(config, "--config", config)
    assert machine.noctule("ping").stderr == f"noctule: using {config} of the running noctuled (process {number})\n"


@pytest.mark.parametrize("words, named", [(["--config", "noctule.conf"], {}), (["-cnoctule.conf"], {}),
                                          (["--conf=../one/noctule.conf"], {}), ([], {"NOCTULE_CONFIG": "noctule.conf"})], ids=str)
def test_every_form_of_the_config_option(machine, tmp_path, words, named):
    config, root = configure(tmp_path / "one")
    number, _ = machine.start(config, *words, folder=tmp_path / "one", **named)
    done = machine.noctule("ping")
    assert f"root {root}" in done.stdout and done.stderr.endswith(f"noctule.conf of the running noctuled (process {number})\n")
    assert done.stderr.startswith(f"noctule: using {tmp_path}/one/")


def test_another_root_than_the_configured_one(machine, tmp_path):
    config, _ = configure(tmp_path / "one")
    (tmp_path / "there").mkdir()
    number, _ = machine.start(config, "--config", config, "--root", "there", root=tmp_path / "there", folder=tmp_path)
    done = machine.noctule("ping")
    assert f"root {tmp_path}/there\n" in done.stdout
    assert done.stderr == f"noctule: using {config} and root {tmp_path}/there of the running noctuled (process {number})\n"


def usual_run(machine, folder, user=None):
    """Runs noctule run without --config. It does not mention daemons, and reads the usual file or reports that it is
    missing."""
    done = machine.noctule("run", "-p", "head-ct", "-o", folder / "out", folder / "nothing", status=None, user=user)
    assert done.returncode == (3 if USUAL.exists() else CONFIG)
    assert "noctuled" not in done.stderr and "process" not in done.stderr
    assert USUAL.exists() or str(USUAL) in done.stderr


def test_run_ignores_daemons(machine, tmp_path):
    """With no, one or several daemons noctule run reads the usual configuration, or the given one."""
    usual_run(machine, tmp_path)
    configs = [configure(tmp_path / name)[0] for name in ("one", "two")]
    for config in configs:
        machine.start(config, "--config", config)
        usual_run(machine, tmp_path)
    words = ("run", "-p", "head-ct", "-o", tmp_path / "out", tmp_path / "nothing")
    assert "nothing" in machine.noctule("--config", configs[1], *words, status=3).stderr
    assert "nothing" in machine.noctule(*words, status=3, NOCTULE_CONFIG=str(configs[0])).stderr


def test_several(machine, tmp_path):
    configs, roots = zip(*(configure(tmp_path / name) for name in ("one", "two")), strict=True)
    first, second = (machine.start(config, "--config", config) for config in configs)
    names = [f"{config} (process {number})" for config, (number, _) in zip(configs, (first, second), strict=True)]
    sentence = "give --config, because noctuled runs with several configurations: " + ", ".join(names)
    for words in (("jobs",), ("status",), ("cancel", "1"), ("check-config",)):
        assert machine.noctule(*words, status=CONFIG).stderr == f"noctule: {sentence}\n"
    assert machine.noctule("status", "--check", status=2).stdout == f"NOCTULE CRITICAL: {sentence} |\n"
    told = json.loads(machine.noctule("doctor", "--json", status=2).stdout)["checks"]
    assert [finding["text"] for finding in told[0]["findings"]] == [sentence]
    # The root selects one, and so does the end of the other.
    (roots[1] / "lock").unlink()  # the lock of the folder and the socket remain
    done = machine.noctule("--root", roots[1], "ping")
    assert f"root {roots[1]}" in done.stdout and f"process {second[0]}" in done.stderr
    assert not machine.noctule("jobs", NOCTULE_CONFIG=str(configs[0])).stderr
    machine.kill(*first)
    assert machine.noctule("ping").stderr == f"noctule: using {configs[1]} of the running noctuled (process {second[0]})\n"
    machine.kill(*second)
    without_daemon(machine)


def test_zombies_and_containers_are_ignored(machine, tmp_path):
    """A zombie still has a name and a number. A process in a container has other paths."""
    config, _ = configure(tmp_path / "one")
    number, waits = machine.start(config, "--config", config)
    waits.send_signal(signal.SIGSTOP)
    subprocess.run(machine.command("kill", "-KILL", str(number)), check=True)
    wait_for(lambda: number not in machine.processes(), 60, "its death")
    assert subprocess.run(machine.command("cat", f"/proc/{number}/comm"), capture_output=True).stdout == b"noctuled\n"
    without_daemon(machine)
    waits.send_signal(signal.SIGCONT)
    waits.wait(60)
    _, inside = machine.start(config, "--config", config, wrapper=("unshare", "--pid", "--fork", "--kill-child"))
    without_daemon(machine)
    assert machine.noctule("--config", config, "ping").returncode == 0
    inside.kill()
    inside.wait(60)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another")
def test_of_other_users(open_folder, machine):  # noqa: F811
    """Files and command lines of another user are ignored. Own ones and those of root are used."""
    config, _ = configure(open_folder / "theirs", NOBODY)
    number, waits = machine.start(config, "--config", config, user=NOBODY)
    assert f"process {number}" in machine.noctule("ping", user=NOBODY).stderr
    done = without_daemon(machine)
    if not USUAL.exists():
        assert done.returncode == CONFIG
        assert f"{USUAL} does not exist, and noctuled (process {number} of user nobody) runs with {config}" in done.stderr
    usual_run(machine, open_folder)
    os.chown(config, 0, 0)  # root's file, but the daemon is another user's
    without_daemon(machine)
    machine.kill(number, waits)

    config, _ = configure(open_folder / "ours")
    number, waits = machine.start(config, "--config", config)
    assert f"using {config} of the running noctuled" in machine.noctule("check-config", user=NOBODY).stderr
    for mode in (0o646, 0o600):
        config.chmod(mode)
        without = machine.noctule("check-config", status=None, user=NOBODY)
        assert "of the running noctuled" not in without.stderr
        assert f"using {config} of the running noctuled" in machine.noctule("check-config").stderr
    machine.kill(number, waits)
    config.chmod(0o644)
    number, _ = machine.start(config, "--config", "noctule.conf", folder=config.parent)
    without = machine.noctule("check-config", status=None, user=NOBODY)
    assert "of the running noctuled" not in without.stderr
    if not USUAL.exists():
        assert f"noctuled (process {number} of user root) runs with a file that this user cannot see" in without.stderr
    assert f"process {number}" in machine.noctule("ping").stderr
