"""
The service while it works: what its children can do and what not; that they renew themselves when what they need changes; that an
older kernel keeps less and breaks nothing.
"""

import pytest
from conftest import BIN, EMULATED, drop, needs_emulator, phantom, storescu, wait_for
from intruders import ROLES, SMALL, Intruders
from test_deliveries import QUICK, objects, to_folder
from test_gpu_workers import A, Gpus

def test_what_each_child_can_do(daemon, tmp_path):
    it = Intruders(daemon, tmp_path)
    for role, letter in ROLES.items():
        assert it.done(role) == {name for name, who in it.may.items() if letter in who}, role
    storescu(it.daemon.port, *phantom(tmp_path / "sent", *SMALL, "--seed", "3"))
    it.daemon.wait_jobs(2, states=("DONE",))
    it.go_on(tmp_path)


@needs_emulator
def test_what_a_worker_of_a_gpu_can_do(daemon, tmp_path):
    gpus = Gpus(tmp_path / "gpus", A)
    it = Intruders(daemon, tmp_path, compute='backend = "cuda";', environment={"NOCTULE_EMULATOR_GPUS": str(gpus.folder)},
                   programs=EMULATED)
    assert it.done("worker") == {name for name, who in it.may.items() if "g" in who}
    it.go_on(tmp_path)


def test_without_the_kernel_they_could_do_it_all(daemon, tmp_path):
    it = Intruders(daemon, tmp_path, kernel="0 0")
    for role in ROLES:
        assert it.done(role) == set(it.may), role
    it.go_on(tmp_path)


@pytest.mark.parametrize("landlock", range(1, 6))
def test_older_kernels(daemon, tmp_path, landlock):
    """Each version of Landlock keeps what it can; the first cannot let the intake work, and leaves it."""
    it = Intruders(daemon, tmp_path, kernel=f"{landlock} 0")
    files = {"intake": landlock >= 2, "courier": True, "worker": True, "page": True}
    for role, letter in ROLES.items():
        done = it.done(role)
        assert {"signal", "fork", "control"} <= done, "seccomp's to keep, and the sixth version's"
        assert ("secret" in done) == ("database-write" in done) == ("run" in done) == (not files[role])
        for deed in ("listen", "connect"):
            assert (deed in done) == (landlock < 4 or letter in it.may[deed])
    assert f"landlock={landlock} seccomp=0" in it.daemon.log.read_text()
    it.go_on(tmp_path)


@pytest.mark.parametrize("kernel, event", [("-2 1", "role.confine"), ("-1 2", "role.call_filter")])
def test_who_cannot_be_confined_does_not_begin(daemon, kernel, event):
    """Where the kernel has what it then does not do; the daemon tells, and tries again."""
    d = daemon(environment={"LD_PRELOAD": str(BIN / "libnoctule_intruder.so"), "NOCTULE_KERNEL": kernel}).start(wait=False)
    for role in ("intake", "worker"):
        d.wait_log(f"role={role} event={event} ")
        d.wait_log(f"event=child.gone child={role} number=0", 2)
        assert f"event=child.ready child={role}" not in d.log.read_text()
    assert "the intake died" in d.ctl("status", check=False).stdout
    assert d.stop() == 0


def test_a_destination_that_becomes_another_folder(daemon, tmp_path):
    out = tmp_path / "out"
    d = daemon(quiet=600.0, pipeline_extra='deliver = [ "OUT" ];',
               extra=QUICK + f"destinations = ( {to_folder(out)} );\n").start()
    drop(phantom(tmp_path / "first", "--size", "32x32x6"), d.inbox)
    wait_for(lambda: objects(out), 60, "the first delivery")
    out.rename(tmp_path / "full")  # as a share that is mounted there from now on
    out.mkdir()
    drop(phantom(tmp_path / "second", "--size", "32x32x6", "--seed", "2"), d.inbox)
    wait_for(lambda: objects(out), 60, "the second delivery")
    assert len(objects(tmp_path / "full")) == len(objects(out)) == 1
    wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == 2, 60, "both rows")
    assert d.stop() == 0


def test_an_inbox_that_becomes_another_folder(daemon, tmp_path):
    d = daemon(quiet=600.0, after="delete").start()
    d.inbox.rename(tmp_path / "old")
    wait_for(d.inbox.is_dir, 60, "the inbox")
    drop(phantom(tmp_path / "in", "--size", "32x32x6"), d.inbox)
    d.wait_jobs(states=("DONE",))
    wait_for(lambda: not list(d.inbox.iterdir()), 60, "the originals' removal")
    assert "died" not in d.ctl("status", check=False).stdout
    assert d.stop() == 0
