"""The daemon process: children, operator commands, reload, drain, notifications to systemd, rights of clients."""

import contextlib
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import threading

import proto
import pytest
from conftest import (BIN, HURRY, SANITIZED, SOURCE, Clock, drop, is_listening, open_files, phantom, run_program,
                      wait_for)

BIG = ("--size", "512x512x200")  # a job long enough to be caught while it runs


def frame(kind, *fields):
    """Returns a frame with the given fields: ints as int64, text with its length."""
    body = b"".join(struct.pack("<q", f) if isinstance(f, int) else struct.pack("<I", len(f)) + f.encode() for f in fields)
    return struct.pack("<IH", 2 + len(body), kind) + body


def control(d):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(60)
    client.connect(str(d.root / "run" / "control.sock"))
    return client


def answer(client):
    """Returns status and message of an ANSWER, or None if the daemon closed the connection."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack("<I", data[:4])[0]:
        try:
            more = client.recv(4096)
        except ConnectionResetError:
            return None
        if not more:
            return None
        data += more
    told = proto.decode(data[4:])
    assert told.name == "ANSWER"
    return told["status"], told["message"]


def change(d, old, new):
    text = d.config.read_text()
    assert old in text
    d.config.write_text(text.replace(old, new))


def events(d, kind):
    return d.query("SELECT * FROM v_events WHERE kind = ?", kind)


def reload(d):
    before = len(events(d, "RELOAD")) + len(events(d, "RELOAD_FAILED"))
    d.process.send_signal(signal.SIGHUP)
    wait_for(lambda: len(events(d, "RELOAD")) + len(events(d, "RELOAD_FAILED")) > before, 60, "the reload")


def stopped(pid):
    """Returns whether the process is stopped by a signal (state T in /proc)."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    return False


def stops_midway(tmp_path):
    """Returns the environment of a daemon with a worker that stops in its first job, between computation and results."""
    return {"NOCTULE_CRASH_AT": "worker_after_compute", "NOCTULE_CRASH_ONCE": str(tmp_path / "midway"),
            "NOCTULE_CRASH_STOPS": ""}


def wait_midway(d):
    """Waits for a worker that stopped midway. Returns its PID. Its job is RUNNING until the worker continues."""
    (pid,) = wait_for(lambda: [pid for pid in d.children("worker") if stopped(pid)], 60, "a worker that stopped midway")
    assert d.jobs("RUNNING")
    return pid


def ready_children(d):
    return wait_for(lambda: len(d.children("intake")) == 1 and len(d.children("worker")) == 1
                    and all(f"child.ready child={role}" in d.log.read_text() for role in ("intake", "worker"))
                    and (d.children("intake"), d.children("worker")), 60, "the children")


# ------------------------------------------------------------------------------ operators ---------


@pytest.mark.parametrize("garbage", [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0",
    proto.encode("PING") + b"\xff" * 6,
    frame(64),
    frame(64, 1, 1),
    frame(2),
    frame(40),
    frame(19, 1, 0),
    frame(48, 1, "PACS", "/x", "1.2", "1.3"),
    frame(50, 0),
    frame(69, 1, 0, ""),
    os.urandom(4096),
])
def test_garbage_from_a_client_closes_its_connection(daemon, garbage):
    d = daemon().start()
    ready_children(d)
    with control(d) as good, control(d) as bad:
        bad.sendall(garbage)
        heard = answer(bad)
        assert heard is None or (garbage.startswith(proto.encode("PING")) and answer(bad) is None)
        good.sendall(proto.encode("PING"))
        assert answer(good)[0] == 0
    assert d.process.poll() is None
    assert len(d.children()) == 2


def test_slow_and_vanished_clients_do_not_affect_others(daemon):
    d = daemon().start()
    with control(d) as slow:
        slow.sendall(proto.encode("PING")[:3])
        for _ in range(50):
            with control(d) as hasty:
                hasty.sendall(proto.encode("PING"))
        with control(d) as good:
            good.sendall(proto.encode("PING"))
            assert answer(good)[0] == 0
        slow.sendall(proto.encode("PING")[3:])
        assert answer(slow)[0] == 0


def test_impossible_requests_get_an_error_message(daemon):
    d = daemon().start()
    with control(d) as client:
        for request in (proto.encode("RETRY", 4711, 0, 0, 0), proto.encode("CANCEL", 4711), proto.encode("COMPLETE", "1.2.3", 1, "jane")):
            client.sendall(request)
            status, message = answer(client)
            assert status == -2 and len(message) > 10


ASKED = [("ping",), ("retry", "1"), ("cancel", "1"), ("hold", "--queue"), ("release", "--queue"), ("pause",), ("drain",), ("resume",), ("priority", "1", "3"),
         ("complete", "1.2.3"), ("resend", "1"), ("submit", "--rules", "1.2.3"), ("purge", "--yes", "1.2.3"),
         ("accept", "1"), ("reject", "1", "it is the table")]


def test_commands_fail_when_the_daemon_is_stopped(daemon):
    """A daemon stopped by SIGSTOP: the kernel accepts connections and requests, and no reply comes. Every command
    ends with an error."""
    d = daemon().start()
    os.kill(d.process.pid, signal.SIGSTOP)
    asking = [subprocess.Popen([BIN / "noctule", "--config", d.config, *command], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={**os.environ, **HURRY}) for command in ASKED]
    told = [(each.communicate(timeout=60), each.returncode) for each in asking]
    words = f"noctule: noctuled (process {d.process.pid}) did not answer within 10 seconds: it may be starting or busy; try again, or read its log\n"
    for command, ((out, error), status) in zip(ASKED, told):
        assert (status, out, error) == (4, "", words), command
    os.kill(d.process.pid, signal.SIGCONT)
    wait_for(d.answers, 60, "an answer")


def test_a_command_fails_when_the_daemon_is_killed(daemon):
    d = daemon().start()
    os.kill(d.process.pid, signal.SIGSTOP)
    asking = [subprocess.Popen([BIN / "noctule", "--config", d.config, *command], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE) for command in ASKED]

    connected = set()

    def all_connected():
        """Returns whether each command was seen with its connection or has ended since. A loaded machine starts
        commands slowly."""
        for each in asking:
            with contextlib.suppress(OSError):
                if each.poll() is not None or any("socket:" in name for name in open_files(each.pid)):
                    connected.add(each)
        return len(connected) == len(asking)

    wait_for(all_connected, 60, "all of their connections")
    d.kill_all()
    for command, each in zip(ASKED, asking):
        out, error = each.communicate(timeout=60)
        assert (each.returncode, out) == (4, "") and error.startswith("noctule: noctuled "), (command, error)
        assert error.count("\n") == 1


def test_exit_codes_match_the_outcome(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    d.ctl("hold", "--queue")
    drop(phantom(tmp_path / "series", "--size", "32x32x6"), d.inbox)
    (job,) = d.wait_jobs(states=("READY",))
    for jobs, status, lines in [((4711, 4712), 3, 2), ((job["job"], 4711), 3, 2), ((job["job"],), 1, 1)]:
        done = d.ctl("cancel", *jobs, check=False)
        assert (done.returncode, len((done.stdout + done.stderr).splitlines())) == (status, lines), jobs
        assert d.jobs()[0]["state"] == ("READY" if job["job"] not in jobs else "CANCELLED")


def test_the_socket_and_the_copy_are_private(daemon):
    d = daemon().start()
    for name in ("control.sock", "noctule.conf"):
        assert (d.root / "run" / name).stat().st_mode & 0o077 == 0


def test_a_running_job_can_be_cancelled(daemon, tmp_path):
    files = phantom(tmp_path / "first", "--size", "64x64x20")
    d = daemon(quiet=600.0, environment=stops_midway(tmp_path)).start()
    _, worker = ready_children(d)
    drop(files, d.inbox)
    pid = wait_midway(d)
    (job,) = d.jobs("RUNNING")
    d.ctl("cancel", job["job"])
    os.kill(pid, signal.SIGCONT)
    (job,) = d.jobs()
    assert (job["state"], job["code"]) == ("CANCELLED", "CANCELLED")
    drop(phantom(tmp_path / "small", "--size", "32x32x6", "--seed", "9"), d.inbox / "small")
    d.wait_jobs(2)
    assert [j["state"] for j in d.jobs()] == ["CANCELLED", "DONE"]
    assert d.children("worker") == worker, "the worker had to die for a cancelled job"
    wait_for(lambda: not (d.root / "outbox" / str(job["job"])).exists(), 60, "the removal of its output")
    assert not list((d.root / "jobs").iterdir())
    d.ctl("retry", job["job"])
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "the retried job")


def test_complete_ends_the_quiet_time_at_once(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(quiet=600.0)
    change(d, "complete_seconds = 0.3", "complete_seconds = 600.0")
    d.start()
    drop(files, d.inbox)
    (series,) = wait_for(lambda: d.query("SELECT * FROM v_series WHERE instances = 6"), 60, "the series")
    assert series["state"] == "GATHERING"
    d.ctl("complete", series["series_uid"])
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"
    assert "operator" in d.query("SELECT evidence FROM v_series")[0][0]


def test_a_series_without_a_matching_rule_is_reported(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(quiet=600.0)
    change(d, 'modality = "CT"', 'modality = "PT"')
    d.start()
    drop(files, d.inbox)
    (event,) = wait_for(lambda: events(d, "NO_RULE"), 60, "the event")
    assert "modality CT" in event["detail"]
    (series,) = d.query("SELECT * FROM v_series")
    assert series["state"] == "SETTLED" and "no rule" in series["evidence"]
    assert series["code"] == "NO_RULE" and "No rule matches" in series["message"]
    assert d.query("SELECT series_without_rule FROM v_night")[0][0] == 1
    assert "no rule for 1 of the settled" in d.ctl("status").stdout
    assert d.jobs() == []


# ------------------------------------------------------------------- restart, reload, drain --------


def test_timers_survive_a_restart(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    clock = Clock(tmp_path)
    d = daemon(quiet=45.0, environment=clock.environment)
    change(d, "complete_seconds = 0.3", "complete_seconds = 45.0")
    d.start()
    drop(files, d.inbox)
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE instances = 6"), 60, "the series")
    assert d.stop() == 0
    assert d.query("SELECT state FROM v_series")[0][0] == "GATHERING"
    shutil.rmtree(d.inbox)
    d.inbox.mkdir()
    d.start()
    d.wait_log("event=child.ready child=intake", 2)  # the quiet time starts again
    clock.pass_time(46)
    (job,) = d.wait_jobs()
    assert job["state"] == "DONE"


def test_jobs_wait_for_the_next_daemon(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "64x64x20")
    d = daemon(quiet=600.0, environment=stops_midway(tmp_path)).start()
    drop(files, d.inbox)
    pid = wait_midway(d)
    d.process.send_signal(signal.SIGTERM)
    d.wait_log("event=daemon.draining")
    d.process.send_signal(signal.SIGTERM)
    # Nothing else ends the stopped worker before the grace period of the first SIGTERM: 25 s by the daemon's clock.
    d.wait_log(f"event=child.kill child=worker number=0 pid={pid} why=\"the daemon stops\"")
    os.kill(pid, signal.SIGCONT)
    assert d.stop() == 0
    (job,) = d.jobs()
    assert (job["state"], job["attempts"]) in [("READY", 0), ("DONE", 1)]
    assert not list(d.root.rglob("*.part")) and not list((d.root / "jobs").iterdir())
    d.start()
    (job,) = d.wait_jobs()
    assert (job["state"], job["attempts"]) == ("DONE", 1)


def test_a_killed_daemons_job_keeps_its_attempt(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "64x64x20")
    d = daemon(quiet=600.0, environment=stops_midway(tmp_path)).start()
    drop(files, d.inbox)
    pid = wait_midway(d)
    d.process.kill()
    d.process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    d.start()
    (job,) = d.wait_jobs()
    assert (job["state"], job["attempts"]) == ("DONE", 2)
    assert not list(d.root.rglob("*.part"))


def test_reload_refuses_another_root(daemon, tmp_path):
    d = daemon().start()
    change(d, f'root = "{d.root}"', f'root = "{tmp_path}/elsewhere"')
    reload(d)
    (event,) = events(d, "RELOAD_FAILED")
    assert "root cannot change" in event["detail"]
    assert not (tmp_path / "elsewhere").exists()
    assert str(d.root) in (d.root / "run" / "noctule.conf").read_text()


def test_reload_replaces_the_worker_only_if_required(daemon):
    d = daemon().start()
    intake, worker = ready_children(d)
    change(d, "retry_seconds = 0.2", "retry_seconds = 0.3")
    reload(d)
    assert (d.children("intake"), d.children("worker")) == (intake, worker)
    change(d, "lanes = 2", "lanes = 1")
    reload(d)
    wait_for(lambda: d.children("worker") not in ([], worker), 60, "another worker")
    assert d.children("intake") == intake
    assert d.ctl("ping").returncode == 0


def test_new_lanes_run_jobs(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    ready_children(d)
    change(d, "lanes = 2", "lanes = 3")
    reload(d)
    for seed in range(1, 7):
        drop(phantom(tmp_path / str(seed), "--size", "32x32x6", "--seed", str(seed)), d.inbox / str(seed))
    assert {j["state"] for j in d.wait_jobs(6)} == {"DONE"}


def test_missing_files_are_reported_at_start(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "32x32x6")
    d = daemon(after="delete", quiet=600.0).start()
    drop(files, d.inbox)
    d.wait_jobs()
    assert d.stop() == 0
    next((d.root / "series").rglob("*.dcm")).unlink()
    d.start()
    wait_for(lambda: events(d, "INSTANCE_MISSING"), 60, "the report")
    assert d.query("SELECT missing_files FROM v_series")[0][0] == 1


# --------------------------------------------------------------------------------- children --------


def test_a_job_beyond_its_time_limit_loses_its_worker(daemon, tmp_path):
    files = phantom(tmp_path / "series", "--size", "64x64x20")
    clock = Clock(tmp_path)
    d = daemon(quiet=600.0, attempts=2, environment={**stops_midway(tmp_path), **clock.environment})
    change(d, "max_attempts = 2;", "max_attempts = 2; deadline_seconds = 1.0;")
    d.start()
    drop(files, d.inbox)
    for attempt in (1, 2):
        pid = wait_midway(d)  # a stopped worker cannot reply
        if attempt == 1:
            (tmp_path / "midway").unlink()  # the second attempt must stop midway too

        def is_gone():
            clock.pass_time(1)
            return not os.path.exists(f"/proc/{pid}")

        wait_for(is_gone, 60, "the end of the worker")
    (job,) = wait_for(lambda: d.jobs("FAILED"), 60, "the failure")
    assert (job["code"], job["attempts"]) == ("DEADLINE_EXCEEDED", 2)
    d.ctl("retry", job["job"])
    change(d, "deadline_seconds = 1.0;", "deadline_seconds = 600.0;")
    reload(d)
    wait_for(lambda: d.jobs("DONE"), 60, "the retried job")


def test_a_job_that_exceeds_memory_fails_before_it_starts(daemon, tmp_path):
    d = daemon(quiet=600.0)
    change(d, "retry_max_seconds = 1.0;", "retry_max_seconds = 1.0; memory_mib = 8.0;")
    d.start()
    (worker,) = wait_for(lambda: d.children("worker"), 60, "the worker")
    drop(phantom(tmp_path / "large", "--size", "256x256x64"), d.inbox)
    (d.inbox / "small").mkdir()
    drop(phantom(tmp_path / "small", "--size", "32x32x6", "--seed", "2"), d.inbox / "small")
    d.wait_jobs(2)
    (large,) = d.jobs("FAILED")
    assert (large["code"], large["attempts"]) == ("JOB_TOO_LARGE", 1)
    assert re.fullmatch(r"256 x 256 x 64 voxels need \d+ MiB of memory, and a job may take 8", large["message"])
    assert len(d.jobs("DONE")) == 1 and d.children("worker") == [worker], "the others go on"
    limits = pathlib.Path(f"/proc/{worker}/limits").read_text()
    if not SANITIZED:  # AddressSanitizer reserves terabytes
        # two lanes, 64 MiB per thread in each, and what the process has at its start
            assert int(re.search(r"Max data size +(\d+)", limits)[1]) < (2 << 30) + len(os.sched_getaffinity(0)) * (128 << 20)
    change(d, "memory_mib = 8.0;", "memory_mib = 1024.0;")
    reload(d)
    wait_for(lambda: d.children("worker") and worker not in d.children("worker"), 60, "a worker that may take more")
    d.ctl("retry", str(large["job"]))
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "both jobs done")


# For the same series as head-ct. The number of distances determines its duration.
COSTLY = """{{ name = "costly"; {limits} segments = ( {{ label = "Brain"; range = [ 0.0, 80.0 ];
    shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} );
    type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
  texture = {{ regions = [ "volume" ]; glcm = {{ distances = [ {distances} ]; }}; }}; }}"""


def add_pipeline(d, text):
    """Adds a pipeline for the same series as the existing one."""
    change(d, "pipelines = (", f"pipelines = ( {text},")
    change(d, "rules = (", 'rules = ( { match = { modality = "CT"; }; pipeline = "costly"; }, ')


def test_a_pipeline_has_a_separate_memory_limit(daemon, tmp_path):
    d = daemon(quiet=600.0)
    add_pipeline(d, COSTLY.format(limits="memory_mib = 2.0;", distances="1"))
    d.start()
    drop(phantom(tmp_path / "series", "--size", "128x128x64"), d.inbox)
    failed, done = sorted(d.wait_jobs(2), key=lambda job: job["pipeline"])
    assert (failed["state"], failed["code"], failed["attempts"]) == ("FAILED", "JOB_TOO_LARGE", 1)
    assert re.fullmatch(r"128 x 128 x 64 voxels need \d+ MiB of memory, and a job may take 2 "
                        r"\(memory_mib of pipeline costly\)", failed["message"])
    assert done["state"] == "DONE", "another pipeline has the machine's"
    change(d, "memory_mib = 2.0;", "memory_mib = 200.0;")
    reload(d)
    d.ctl("retry", "--current", failed["job"])
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "both jobs done")


def test_a_pipelines_time_limit_ends_only_its_job(daemon, tmp_path):
    """The job is stopped, and the worker's other jobs continue."""
    d = daemon(quiet=600.0, attempts=1)
    add_pipeline(d, COSTLY.format(limits="deadline_seconds = 0.5;", distances=", ".join(map(str, range(1, 17)))))
    d.start()
    (worker,) = wait_for(lambda: d.children("worker"), 60, "the worker")
    drop(phantom(tmp_path / "series", *BIG), d.inbox)
    ended = d.wait_jobs(2, seconds=240)
    failed, done = sorted(ended, key=lambda job: job["pipeline"])
    assert (failed["state"], failed["code"], failed["attempts"]) == ("FAILED", "DEADLINE_EXCEEDED", 1)
    assert failed["message"] == "attempt 1 took longer than its pipeline's deadline_seconds (0.5 s)"
    assert (done["state"], done["attempts"]) == ("DONE", 1)
    assert d.children("worker") == [worker] and not events(d, "WORKER_DIED")
    assert not list(d.root.glob("outbox/*/*.part"))


def test_workers_that_die_at_start_are_restarted(daemon):
    d = daemon().start()
    ready_children(d)
    for _ in range(4):
        (pid,) = wait_for(lambda: d.children("worker"), 60, "a worker")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda gone=pid: d.children("worker") not in ([], [gone]), 60, "another worker")
    assert len(events(d, "WORKER_DIED")) >= 4
    assert d.process.poll() is None


def test_children_inherit_no_descriptor_and_ignore_ctrl_c(daemon):
    d = daemon().start()
    ready_children(d)
    for pid in d.children():
        names = open_files(pid)
        assert not [name for name in names if "noctule.db" in name or name.endswith("/lock")], names
        os.kill(pid, signal.SIGINT)
    assert d.ctl("ping").returncode == 0
    assert len(d.children()) == 2


def test_the_daemon_leaves_no_process_or_socket(daemon):
    d = daemon().start()
    ready_children(d)
    children = d.children()
    assert d.stop() == 0
    assert not any(os.path.exists(f"/proc/{pid}") for pid in children)
    assert not (d.root / "run" / "control.sock").exists()
    assert events(d, "START") and events(d, "STOP")
    assert d.query("PRAGMA integrity_check")[0][0] == "ok"


# -------------------------------------------------------------------------- the program ------------


@pytest.mark.parametrize("arguments", [("--no-such",), ("extra",), ("--slot", "x"), ("--config",)])
def test_wrong_arguments(arguments):
    result = run_program("noctuled", *arguments, check=False)
    assert result.returncode == 2 and "usage:" in result.stderr + result.stdout


def test_help_and_version():
    assert "--config" in run_program("noctuled", "--help").stdout
    assert run_program("noctuled", "--version").stdout.startswith("noctuled ")


def test_an_unknown_role_and_a_role_without_a_daemon(tmp_path):
    d = run_program("noctuled", "--role", "nobody", check=False)
    assert d.returncode == 2
    for role in ("intake", "worker"):
        result = run_program("noctuled", "--role", role, "--config", "/nowhere", check=False, timeout=60,
                             stdin=subprocess.DEVNULL)
        assert result.returncode > 0


def test_a_missing_configuration_is_refused(tmp_path):
    result = run_program("noctuled", "--config", tmp_path / "none.conf", check=False)
    assert result.returncode == 5 and "none.conf" in result.stderr


def test_a_foreign_database_is_refused(daemon):
    d = daemon()
    (d.root / "noctule.db").write_text("this is no database, and long enough to be looked at" * 40)
    result = run_program("noctuled", "--config", d.config, check=False)
    assert result.returncode == 6 and "noctule.db" in result.stderr


def test_a_lost_database_is_not_replaced_by_a_new_one(daemon, tmp_path):
    """A database that is missing, empty or without tables is refused. No job runs again unless the operator requests
    a new database."""
    d = daemon()
    (d.root / "inbox" / "before.txt").write_text("a fresh root may have files in its inbox")
    d.start()
    drop(phantom(tmp_path / "series", "--size", "32x32x6"), d.inbox)
    (job,) = d.wait_jobs()
    assert d.stop() == 0
    files = {path.name: path.read_bytes() for path in d.root.glob("noctule.db*")}
    database = d.root / "noctule.db"

    def lose(content):
        for path in d.root.glob("noctule.db*"):
            path.unlink()
        if content is not None:
            database.write_bytes(content)

    empty = tmp_path / "empty.db"
    with contextlib.closing(sqlite3.connect(empty)) as db:
        db.execute("VACUUM")
    for content in (None, b"", empty.read_bytes()):
        lose(content)
        told = run_program("noctuled", "--config", d.config, check=False)
        assert told.returncode == 9, told
        assert "DATABASE_LOST" in told.stderr and str(database) in told.stderr and "--new-database" in told.stderr
        assert (database.read_bytes() if database.exists() else None) == content, "it changed what it refused"
        if not content:
            told = d.ctl("status", check=False)
            assert told.returncode == 6 and "DATABASE_LOST" in told.stderr and "restore the backup" in told.stderr
    (d.root / "database.made").unlink()  # as in a root from before the marker existed
    lose(None)
    assert run_program("noctuled", "--config", d.config, check=False).returncode == 9

    for name, content in files.items():
        (d.root / name).write_bytes(content)
    d.start()
    assert [row["job"] for row in d.jobs()] == [job["job"]] and not events(d, "DATABASE_RENEWED")
    d.stop()
    lose(None)
    d.start(arguments=["--new-database"])
    assert len(d.wait_jobs()) == 1, "stored series run anew"
    assert len(events(d, "DATABASE_RENEWED")) == 1
    d.stop()
    d.start()
    assert len(events(d, "DATABASE_RENEWED")) == 1


def test_an_old_database_is_rebuilt_to_shrink(daemon, tmp_path):
    """A database from before schema version 11 is rebuilt if there is room. Removed rows then make room."""
    d = daemon()
    steps = sorted((SOURCE / "db" / "migrations").glob("*.sql"))[:10]
    with contextlib.closing(sqlite3.connect(d.root / "noctule.db")) as db:
        for step in steps:
            db.executescript(step.read_text())
        db.executescript(f"PRAGMA user_version = {len(steps)}; PRAGMA application_id = 0x4e6f6374;")
        db.execute("INSERT INTO event (at, kind, detail) VALUES ('2026-01-31T02:03:23.000Z', 'TEST', '')")
        db.execute("CREATE TABLE gone (bytes)")
        db.executemany("INSERT INTO gone VALUES (zeroblob(?))", [(4000,)] * 1000)
        db.execute("DROP TABLE gone")
        db.commit()
    before = (d.root / "noctule.db").stat().st_size
    room = d.config.read_text()
    d.config.write_text(room.replace("min_free_mib = 1;", "min_free_mib = 1e9;"))
    d.start()
    d.wait_log("event=database.not_rebuilt")
    assert d.query("PRAGMA auto_vacuum")[0][0] == 0
    d.stop()
    d.config.write_text(room)
    d.start()
    assert d.query("PRAGMA auto_vacuum")[0][0] == 2
    assert (d.root / "noctule.db").stat().st_size < before / 4
    assert len(d.query("SELECT 1 FROM v_events WHERE kind = 'TEST'")) == 1
    assert d.query("PRAGMA integrity_check")[0][0] == "ok"
    assert d.log.read_text().count("event=database.rebuilt") == 1


def test_the_root_option_wins(daemon, tmp_path):
    d = daemon()
    other = tmp_path / "other"
    process = subprocess.Popen([run_path(), "--config", d.config, "--root", other], stderr=subprocess.PIPE)
    try:
        wait_for((other / "run" / "control.sock").exists, 60, "the socket")
    finally:
        process.terminate()
        process.communicate(timeout=40)
    assert process.returncode == 0
    assert (other / "noctule.db").exists() and not (d.root / "noctule.db").exists()


def run_path():
    from conftest import BIN

    return BIN / "noctuled"


# ------------------------------------------------------------------------------- systemd -----------


def test_systemd_receives_ready_reloading_watchdog_and_stopping(daemon, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(tmp_path / "notify"))
        messages = queue.SimpleQueue()

        def read_messages():
            """The socket holds ten messages. Then the daemon waits for a reader, as it never has to for systemd."""
            with contextlib.suppress(OSError):
                while True:
                    messages.put(notify.recv(4096).decode())

        threading.Thread(target=read_messages, daemon=True).start()
        d = daemon(environment={"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
        d.start()

        def receive_words(*words):
            """Waits until each word was received, in any order. Returns the message with the last word."""
            heard = []

            def has_all_words():
                heard.append(messages.get(timeout=60))
                return all(any(word in message for message in heard) for word in words)

            wait_for(has_all_words, 60, f"{words} from the daemon")
            return next(message for message in heard if words[-1] in message)

        receive_words("READY=1", "WATCHDOG=1", "STATUS=working")
        d.process.send_signal(signal.SIGHUP)
        assert "MONOTONIC_USEC=" in receive_words("RELOADING=1")
        receive_words("READY=1")
        d.process.send_signal(signal.SIGTERM)
        receive_words("STOPPING=1")
        assert d.process.wait(40) == 0


def test_ready_and_ping_mean_that_the_port_is_open(daemon, tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(tmp_path / "notify"))
        notify.settimeout(60)
        clock = Clock(tmp_path)
        d = daemon(environment={"NOTIFY_SOCKET": str(tmp_path / "notify"), **clock.environment}, dicom="")
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", d.port))
            other.listen()
            d.start(wait=False)
            why = f"port {d.port} is not open: Address already in use"
            wait_for(lambda: why in d.ctl("ping", check=False).stderr, 60, "what ping says")
            check = d.ctl("status", "--check", check=False)
            assert check.returncode == 2 and re.match(f"NOCTULE CRITICAL: reception: {why} \\(since [-:+ 0-9]+\\) \\| jobs_ready=0 ", check.stdout)
            heard = ""
            while f"STATUS={why}" not in heard:
                heard += notify.recv(4096).decode() + "\n"
        clock.pass_time(5)  # until the next try to open the port
        while "READY=1" not in heard:
            heard += notify.recv(4096).decode() + "\n"
        assert is_listening(d.port) and d.ctl("ping").returncode == 0
        assert "EXTEND_TIMEOUT_USEC=" in heard
        check = d.ctl("status", "--check")
        assert check.stdout.startswith("NOCTULE OK: no alert needs attention | ")


def test_status_names_a_child_that_keeps_dying(daemon):
    d = daemon().start()
    for _ in range(3):
        (pid,) = wait_for(lambda: d.children("intake"), 60, "the intake")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: pid not in d.children("intake"), 60, "its end")
    status = json.loads(d.ctl("status", "--json").stdout)
    (trouble,) = [t for t in status["troubles"] if "the intake died" in t["text"]]
    assert "times, the last time by signal 9" in trouble["text"] and trouble["since"]
    wait_for(d.answers, 60, "the intake again")
    check = d.ctl("status", "--check", check=False)
    assert check.returncode == 1 and "NOCTULE WARNING: intake: the intake died 3 times" in check.stdout
    assert "Attention   the intake died 3 times" in d.ctl("status").stdout
    assert d.stop() == 0
    check = d.ctl("status", "--check", check=False)
    assert check.returncode == 2 and "NOCTULE CRITICAL: daemon: noctuled does not run" in check.stdout


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_unit_is_valid_and_hardened(tmp_path):
    unit = tmp_path / "noctule.service"
    text = (SOURCE / "systemd" / "noctule.service").read_text()
    unit.write_text(text.replace("@bindir@", str(run_path().parent)))
    result = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert result.returncode == 0 and not result.stderr.strip(), result.stderr
    result = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=10", unit],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-300:]
