"""Sandbox of a running service: allowed and denied operations of its children. Children are replaced when their
rights must change. Older kernels give less protection and must not break the service."""

import fcntl
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import threading

import pytest
from conftest import BIN, EMULATED, drop, needs_emulator, phantom, run_program, storescu, wait_for
from intruders import ROLES, SMALL, Intruders
from test_deliveries import QUICK, objects, to_folder
from test_gpu_workers import A, Gpus
from test_run import CONFIG


def test_each_child_is_limited_to_its_role(daemon, tmp_path):
    it = Intruders(daemon, tmp_path)
    for role, letter in ROLES.items():
        assert it.done(role) == {name for name, who in it.may.items() if letter in who}, role
    storescu(it.daemon.port, *phantom(tmp_path / "sent", *SMALL, "--seed", "3"))
    it.daemon.wait_jobs(2, states=("DONE",))
    it.check_service(tmp_path)


@needs_emulator
def test_a_gpu_worker_is_limited_to_its_role(daemon, tmp_path):
    gpus = Gpus(tmp_path / "gpus", A)
    it = Intruders(daemon, tmp_path, compute='backend = "cuda";', environment={"NOCTULE_EMULATOR_GPUS": str(gpus.folder)},
                   programs=EMULATED)
    assert it.done("worker") == {name for name, who in it.may.items() if "g" in who}
    it.check_service(tmp_path)


def test_without_kernel_support_the_deeds_succeed(daemon, tmp_path):
    it = Intruders(daemon, tmp_path, kernel="0 0")
    for role in ROLES:
        assert it.done(role) == set(it.may), role
    it.check_service(tmp_path)


@pytest.mark.parametrize("landlock", range(1, 6))
def test_older_kernels(daemon, tmp_path, landlock):
    """Each version of Landlock protects as much as it can. The receiver cannot work under the first version, so it
    runs without."""
    it = Intruders(daemon, tmp_path, kernel=f"{landlock} 0")
    files = {"intake": landlock >= 2, "courier": True, "worker": True, "page": True, "program": True}
    for role, letter in ROLES.items():
        done = it.done(role)
        assert {"signal", "fork", "control"} <= done, "seccomp's to keep, and the sixth version's"
        assert ("secret" in done) == ("database-write" in done) == ("run" in done) == (not files[role])
        for deed in ("listen", "connect"):
            assert (deed in done) == (landlock < 4 or letter in it.may[deed])
    assert f"landlock={landlock} seccomp=0" in it.daemon.log.read_text()
    it.check_service(tmp_path)


@pytest.mark.parametrize("kernel, event", [("-2 1", "role.confine"), ("-1 2", "role.call_filter")])
def test_a_child_without_confinement_does_not_start(daemon, kernel, event):
    """If the kernel offers confinement and then fails, the child does not start. The daemon reports this and tries
    again."""
    d = daemon(environment={"LD_PRELOAD": str(BIN / "libnoctule_intruder.so"), "NOCTULE_KERNEL": kernel}).start(wait=False)
    for role in ("intake", "worker"):
        d.wait_log(f"role={role} event={event} ")
        d.wait_log(f"event=child.gone child={role} number=0", 2)
        assert f"event=child.ready child={role}" not in d.log.read_text()
    assert "the intake died" in d.ctl("status", check=False).stdout
    assert d.stop() == 0


def test_a_replaced_destination_folder_stays_writable(daemon, tmp_path):
    out = tmp_path / "out"
    d = daemon(quiet=600.0, pipeline_extra='deliver = [ "OUT" ];',
               extra=QUICK + f"destinations = ( {to_folder(out)} );\n").start()
    drop(phantom(tmp_path / "first", "--size", "32x32x6"), d.inbox)
    wait_for(lambda: objects(out), 60, "the first delivery")
    out.rename(tmp_path / "full")  # like a share that is mounted there from now on
    out.mkdir()
    drop(phantom(tmp_path / "second", "--size", "32x32x6", "--seed", "2"), d.inbox)
    wait_for(lambda: objects(out), 60, "the second delivery")
    assert len(objects(tmp_path / "full")) == len(objects(out)) == 1
    wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == 2, 60, "both rows")
    assert d.stop() == 0


def test_a_replaced_inbox_folder_stays_readable(daemon, tmp_path):
    d = daemon(quiet=600.0, after="delete").start()
    d.inbox.rename(tmp_path / "old")
    wait_for(d.inbox.is_dir, 60, "the inbox")
    drop(phantom(tmp_path / "in", "--size", "32x32x6"), d.inbox)
    d.wait_jobs(states=("DONE",))
    wait_for(lambda: not list(d.inbox.iterdir()), 60, "the originals' removal")
    assert "died" not in d.ctl("status", check=False).stdout
    assert d.stop() == 0


def deeds_of(tmp_path, arguments, deeds):
    """Returns {deed: errno} of a command after it has read its files. A full pipe on its standard output stops the
    command at this point."""
    listed = tmp_path / "deeds"
    listed.write_text("".join(f"{name} {what} {where}\n" for name, (what, where) in deeds.items()))
    out, into = os.pipe()
    room = fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, 4096)
    os.write(into, bytes(room))
    process = subprocess.Popen(
        [BIN / "noctule", *map(str, arguments)], stdout=into, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "LD_PRELOAD": str(BIN / "libnoctule_intruder.so"), "NOCTULE_DEEDS": str(listed)})
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        wait_for(lambda: process.poll() is not None  # write(1, ...), on x86-64 or aarch64
                 or pathlib.Path(f"/proc/{process.pid}/syscall").read_text().startswith(("1 0x1 ", "64 0x1 ")), 60, "the full pipe")
        process.send_signal(signal.SIGUSR2)
        threading.Thread(target=pipe.read, daemon=True).start()
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0 and "role.call_unknown" not in told.partition("event=intruder.deed")[0], told
    return {name: int(number) for name, number in re.findall(r"deed=(\S+) errno=(\d+)", told)}


@pytest.mark.parametrize("command", ["run", "explain"])
def test_commands_for_foreign_files_are_confined(tmp_path, command):
    """Such commands may read their input, also through a link, and write their output folder. They must not access
    other files or start programs."""
    outside, elsewhere = tmp_path / "outside", tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "secret").write_text("of others")
    files = phantom(tmp_path / "in", *SMALL)
    elsewhere.mkdir()
    moved = pathlib.Path(shutil.move(files[0], elsewhere / "first.dcm"))
    pathlib.Path(files[0]).symlink_to(moved)
    config = tmp_path / "noctule.conf"
    config.write_text(CONFIG.format(root=tmp_path / "root"))
    output = tmp_path / "output"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        deeds = {"input": ("read", files[1]), "link": ("read", moved), "secret": ("read", outside / "secret"),
                 "shadow": ("read", "/etc/shadow"), "outside": ("make", outside / "made"), "input-make": ("make", tmp_path / "in" / "made"),
                 "output-make": ("make", output / "made"), "run": ("run", outside / "secret"), "fork": ("fork", "-"),
                 "connect": ("connect", listener.getsockname()[1]), "signal": ("signal", "-")}
        options = ["--pipeline", "ball", "--output", output] if command == "run" else []
        told = deeds_of(tmp_path, ["--config", config, command, *options, tmp_path / "in"], deeds)
    assert {name for name, error in told.items() if error == 0} == {"input", "link"} | ({"output-make"} if command == "run" else set())
    assert set(told) == set(deeds)


def test_an_output_folder_is_not_left_empty(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "text.dcm").write_text("no image")
    (tmp_path / "noctule.conf").write_text(CONFIG.format(root=tmp_path / "root"))
    done = run_program("noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "ball", "--output", tmp_path / "out",
                       tmp_path / "in", check=False)
    assert done.returncode == 1 and "no image to process" in done.stderr and not (tmp_path / "out").exists()
