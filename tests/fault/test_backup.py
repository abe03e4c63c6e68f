"""Backup and restore by the commands of docs/operations.md. A service under load is backed up, another one starts
from the copy elsewhere, and then only the database is restored. After each, every acknowledged instance has its
result once."""

import concurrent.futures
import contextlib
import json
import re
import shutil
import signal
import subprocess

import pytest
import upper_layer
from conftest import BIN, SOURCE, storescp, wait_for
from hospital import SECONDS, Hospital, service
from invariants import (check_archive, check_database, check_events, check_instances, check_jobs, check_leftovers, check_log,
                        in_sessions, settled)
from test_receive import stored

PAGE = (SOURCE / "docs" / "operations.md").read_text()
WORK = 3  # jobs before, between and after the backups


# Between two steps of a backup more work arrives, on a machine of any speed.
MEANWHILE = """
count() { find %s/series -name '*.dcm' | wc -l; }
come() { local rc=$? n=$(count); until [ "$(count)" -gt "$n" ]; do sleep 0.02; done; return $rc; }
rsync() { command rsync "$@"; come; }
sqlite3() { command sqlite3 "$@"; come; }
"""


def recipe(heading, d, copies, stubs=""):
    """Runs the commands below a heading of the document, for this root and configuration."""
    (text,) = re.findall(rf"(?ms)^## {heading}$.*?^```sh\n(.*?)^```$", PAGE.replace("## ", "\n## "))
    for path, here in (("/var/lib/noctule", d.root), ("/srv/backup/noctule", copies), ("/etc/noctule", d.config.parent / "etc")):
        assert path in text or path == "/etc/noctule"
        text = text.replace(path, str(here))
    text = re.sub(r"/\d{4}-\d\d-\d\dT\d{6}$", "/last", text, flags=re.M)
    stubs += f'systemctl() {{ :; }}; chown() {{ :; }}; noctule() {{ {BIN}/noctule --config {d.config} "$@"; }}\n'
    done = subprocess.run(["bash", "-c", stubs + text], text=True, capture_output=True, timeout=SECONDS)
    assert done.returncode == 0 and "--link-dest" not in done.stderr, done.stderr
    return done.stdout


def at_work(d, jobs):
    done = len(d.jobs("DONE"))
    wait_for(lambda: len(d.jobs("DONE")) >= done + jobs, SECONDS, f"{jobs} more jobs")


@contextlib.contextmanager
def everybody(hospital):
    """Runs the hospital. At the end all started work is finished."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        people = [pool.submit(each) for each in (hospital.modality, hospital.modality, hospital.copier)]
        try:
            yield
        finally:
            hospital.closing.set()
        for each in people:
            each.result()


def send_again(d, promised):
    """Sends instances again, as a sender does on request."""
    with contextlib.closing(upper_layer.Peer(d.port, seconds=SECONDS)) as peer:
        peer.associate()
        for each in promised.values():
            assert peer.store(each.data, each.instance) == 0


def end(d, promised, archive):
    wait_for(lambda: len(d.jobs("DONE")) == len({each.series for each in promised.values()}), SECONDS, "all jobs")
    settled(d)
    session = d.process.pid
    assert d.stop(signal.SIGTERM, SECONDS) == 0
    wait_for(lambda: not in_sessions({session}), SECONDS, "the end of every child")
    check_instances(d, promised)
    check_jobs(d, promised)
    check_archive(d, archive)
    check_leftovers(d)
    check_database(d)
    check_events(d)
    check_log(d)
    for (path,) in d.query("SELECT path FROM v_results"):
        assert (d.root / path).is_file()


@pytest.fixture
def services(tmp_path):
    made = []

    def make(name, port):
        made.append(service(tmp_path / name, PACS=port))
        with open(made[-1].config, "a") as config:
            config.write(f'backup = {{ folder = "{tmp_path}/copies"; }};\n')
        (made[-1].config.parent / "etc").mkdir()
        shutil.copy(made[-1].config, made[-1].config.parent / "etc")
        return made[-1]

    yield make
    for each in made:
        each.kill_all()


def test_backup_restore_and_back(services, tmp_path):
    copies = tmp_path / "copies"
    with storescp(tmp_path / "archive", ["--unique-filenames"]) as archive:
        d = services("old", archive.port).start()
        hospital = Hospital(d, tmp_path / "sources", 1)
        with everybody(hospital):
            at_work(d, WORK)
            recipe("Backup", d, copies, MEANWHILE % d.root)
            at_work(d, WORK)
            before = dict(hospital.promised)
            recipe("Backup", d, copies, MEANWHILE % d.root)
            at_work(d, WORK)
        settled(d)
        d.kill_all()
        (told,) = [check for check in json.loads(d.ctl("doctor", "--json", check=False).stdout)["checks"]
                   if check["check"] == "backup"]
        assert told["text"] == f"the newest of 2 backups in {copies} is 0 hours old"
        every, promised = sorted(path for path in copies.iterdir() if not path.is_symlink()), hospital.promised
        assert len(every) == 2 and before.keys() < promised.keys()
        assert any(path.stat().st_nlink > 1 for path in every[1].rglob("*.dcm"))

        new = services("new", archive.port)
        shutil.rmtree(new.root)
        assert recipe("Restore", new, copies).startswith("ok\n")
        for (path,) in new.query("SELECT path FROM instance UNION SELECT path FROM result"):
            assert (new.root / path).is_file(), "a row without its file"
        new.start()
        wait_for(lambda: before.keys() <= stored(new).keys(), SECONDS, "all that was promised before the backup")
        send_again(new, promised)
        end(new, promised, archive)

        recipe("Back to an older version", d, copies)
        d.start()
        wait_for(lambda: promised.keys() <= stored(d).keys(), SECONDS, "what came since")
        end(d, promised, archive)
