"""`noctule status` with real alerts: of the daemon itself, of its children, destinations and queues."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import BIN, HURRY, Clock, StoreScp, drop, wait_for
from test_daemon import reload
from test_deliveries import small, to_archive, to_folder

NOBODY = 65534


def check(d, expected, **options):
    """Returns the text of status --check after the verdict, which must be `expected`. Checks that the exit status
    matches."""
    done = subprocess.run([BIN / "noctule", "--config", d.config, "status", "--check"], text=True, capture_output=True,
                          **options)
    verdict, _, text = done.stdout.partition(": ")
    assert (verdict, done.returncode) == (f"NOCTULE {expected}", ["OK", "WARNING", "CRITICAL"].index(expected)), done
    assert done.stdout.count("\n") == 1 and done.stdout.count("|") == 1
    return text


@pytest.fixture
def open_folder():
    """A folder that other users may read. A test names it before its daemon, so that the daemon ends first."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="noctule-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_an_unreachable_daemon(open_folder, daemon):
    d = daemon()
    d.config.write_text(d.config.read_text().replace(f'root = "{d.root}"', f'root = "{open_folder}/root"'))
    d.root, d.config = open_folder / "root", shutil.copy(d.config, open_folder)
    assert "there is no database" in check(d, "CRITICAL")
    d.start()
    check(d, "OK")
    assert json.loads(d.ctl("status", "--json").stdout)["daemon"] == "running"
    if os.geteuid() == 0:  # may become another user
        told = check(d, "CRITICAL", user=NOBODY)
        assert told.startswith("daemon: no permission to connect to noctuled: run this as root | jobs_ready=0"), told
    os.kill(d.process.pid, signal.SIGSTOP)
    try:
        told = check(d, "CRITICAL", env={**os.environ, **HURRY})
        assert told.startswith(f"daemon: noctuled (process {d.process.pid}) did not answer within 10 seconds | jobs_ready=0")
    finally:
        os.kill(d.process.pid, signal.SIGCONT)
    (d.root / "run" / "control.sock").unlink()
    told = d.ctl("status").stdout
    assert "Daemon      not answering\n" in told
    assert f"Broken      noctuled (process {d.process.pid}) runs but cannot be reached: No such file or directory\n" in told
    d.kill_all()
    told = d.ctl("status")
    assert told.returncode == 0 and "Daemon      not running\n" in told.stdout
    assert "it ended unexpectedly, see its log (journalctl -u noctule); its last record is from 20" in told.stdout
    d.start()
    assert d.stop() == 0
    assert re.search(r"noctuled does not run with root .*: it was stopped \(since 20\S+ \S+ [+-]\d{4}\) \| ", check(d, "CRITICAL"))
    with open(d.root / "noctule.db", "r+b") as database:
        database.write(b"damaged")
    assert "not a database" in check(d, "CRITICAL")
    told = d.ctl("status", "--json", check=False)
    assert told.returncode == 6 and json.loads(told.stdout)["daemon"] == "not running"
    pathlib.Path(d.config).write_text("damaged {")
    assert "noctule.conf:1: " in check(d, "CRITICAL")


def test_a_read_only_root(daemon, tmp_path):
    d = daemon().start()
    assert d.stop() == 0
    if subprocess.run(["mount", "--bind", d.root, d.root], capture_output=True).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", d.root], check=True)
        told = d.ctl("status")
        assert "Jobs        0 ready" in told.stdout and ": it was stopped (since" in told.stdout and not told.stderr
        d.start(wait=False)  # the daemon runs with readable files, and has no room for its socket
        wait_for(lambda: "cannot be reached" in d.ctl("status").stdout or d.process.poll() is not None, 60, "the daemon")
        assert d.process.poll() is None and f"(process {d.process.pid}) runs but" in d.ctl("status").stdout
    finally:
        d.kill_all()
        subprocess.run(["umount", "--lazy", d.root], check=True)


def test_waiting_items_and_broken_conditions(daemon, tmp_path):
    archive, clock = StoreScp(tmp_path / "archive"), Clock(tmp_path)
    d = daemon(quiet=600.0, environment=clock.environment, pipeline_extra='deliver = [ "PACS", "OUT" ];', extra=(
        'delivery = { retry_seconds = 0.2; retry_max_seconds = 0.5; breaker_failures = 3; breaker_seconds = 0.5; };'
        f'destinations = ( {to_archive(archive.port)}, {to_folder(tmp_path / "out")} );')).start()
    drop(small(tmp_path / "first"), d.inbox / "first")
    told = wait_for(lambda: "PACS is down" in (told := d.ctl("status").stdout) and told, 60, "the destination that is down")
    line = next(line for line in told.splitlines() if "PACS" in line)
    assert re.fullmatch(r"Attention   destination PACS is down; 1 result waits for it: 3 failures in a row; "
                        r"it is tried every 0.5 s; the last: .*refused.* \(since 20\S+ \S+ [+-]\d{4}\)", line,
                        re.IGNORECASE), line
    assert "destination PACS is down; 1 result" in check(d, "WARNING")
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE destination = 'OUT' AND state = 'SENT'"), 60, "the first result")

    d.ctl("hold", "--pipeline", "head-ct", "--reason", "a new coil | a phantom")
    d.ctl("hold", "--destination", "OUT")
    drop(small(tmp_path / "second", seed=2), d.inbox / "second")
    held = r"^Waits       1 job for the release of pipeline head-ct, held by \S.*: a new coil \| a phantom \(since 20\S+ \S+ [+-]\d{4}\)$"
    wait_for(lambda: re.search(held, d.ctl("status").stdout, re.MULTILINE), 60, "the job that is held")
    assert re.search(r"^Waits       0 results for the release of destination OUT, held by [^:]+ \(since", d.ctl("status").stdout,
                     re.MULTILINE)
    assert "Held        destination OUT; pipeline head-ct: noctule release" in d.ctl("status").stdout

    (worker,) = d.children("worker")
    couriers = d.children("courier")
    for pid in (worker, *couriers):
        os.kill(pid, signal.SIGSTOP)
    hangs = ["Broken      the worker 0 hangs: no message for", "Broken      the courier for PACS hangs: no message",
             "Broken      the courier for OUT hangs: no message for"]
    clock.pass_time(16)  # of silence; the receiver sends its next sign of life within 5 s
    wait_for(lambda: all(line in (told := d.ctl("status").stdout) for line in hangs) and "the intake" not in told, 60, "who hangs")
    assert "the worker 0 hangs" in check(d, "CRITICAL")
    for pid in (worker, *couriers):
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: "hangs" not in d.ctl("status").stdout, 60, "their sign of life")

    archive.start()
    try:
        d.ctl("release", "--pipeline", "head-ct")
        d.ctl("release", "--destination", "OUT")
        reload(d)
        wait_for(lambda: len(d.query("SELECT 1 FROM v_deliveries WHERE state = 'SENT'")) == 4, 60, "the deliveries")
    finally:
        archive.stop()
    wait_for(lambda: d.ctl("status").stdout.splitlines()[-1] == "Daemon      running", 60, "that nothing is left to tell")
    check(d, "OK")
