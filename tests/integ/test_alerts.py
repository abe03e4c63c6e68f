"""One list of alerts: each broken condition has the same id in status, --check, doctor, report, web UI, /readyz and
/metrics. `noctule ack` records the user, the time, the reason and the expiry. It must not hide worse or new
occurrences, and restarts keep it."""

import json
import os
import re
import signal
import subprocess

import pytest
from conftest import BIN, PEERS, SOURCE, Clock, drop, free_port, phantom, wait_for
from test_daemon import change, reload
from test_page import Site
from test_reload import taken
from test_report_night import SEGMENT

# The kinds in the list for administrators.
KINDS = re.findall(r"^\| `([a-z_]+)` \| (?:yes|no) \| ", (SOURCE / "docs" / "operations.md").read_text(), re.M)
ID = rf"(?:{'|'.join(sorted(KINDS, key=len, reverse=True))})(?::[\w./-]+)?"

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 600.0; complete_seconds = 0.1; patience_seconds = 600.0; }};
jobs = {{ max_attempts = 1; memory_mib = 8.0; }};
compute = {{ lanes = 1; backend = "cpu"; }};
min_free_mib = 1;
pipelines = ( {{ name = "head-ct"; segments = ( {{ {segment} }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; }} );
"""
LICENCE = "Permission is hereby granted, free of charge\n" * 40


class Surfaces:
    """Ids of alerts per place, including acknowledged alerts."""

    def __init__(self, site, tmp_path):
        self.site, self.d, self.tmp_path = site, site.daemon, tmp_path

    def alerts(self, command="status"):
        """Returns the alerts of the JSON output."""
        return [alert for alert in json.loads(self.d.ctl(command, "--json", check=False).stdout)["alerts"]
                if alert["severity"] != "waits"]

    def check(self):
        """Returns the verdict, the exit status and the text of `status --check`."""
        done = subprocess.run([BIN / "noctule", "--config", self.d.config, "status", "--check"], text=True, capture_output=True)
        assert done.stdout.count("\n") == 1 and done.stdout.count("|") == 1
        verdict, _, text = done.stdout.partition("|")[0].partition(": ")
        return verdict, done.returncode, text

    def doctor(self):
        """Returns the findings of doctor's alert check."""
        done = subprocess.run([BIN / "noctule", "--config", self.d.config, "doctor", "--json"], text=True, capture_output=True)
        (findings,) = [check["findings"] for check in json.loads(done.stdout)["checks"] if check["check"] == "alerts"]
        return [finding["text"] for finding in findings]

    def ids(self, loads=True):
        """Returns {place: sorted ids}. doctor checks alerts only if the configuration loads."""
        d, site = self.d, self.site
        night = self.tmp_path / "night.html"
        d.ctl("report", "--html", night, check=False)
        now, _, known = self.check()[2].partition("; known: ")
        shown = {
            "status": re.findall(rf"^ {{12}}({ID}): ", d.ctl("status", check=False).stdout, re.M),
            "status --json": [alert["id"] for alert in self.alerts()],
            "status --check": re.findall(rf"(?:^|; )({ID}): ", now) + re.findall(ID, known),
            **({"doctor": [re.search(rf": ({ID}): ", text)[1] for text in self.doctor()]} if loads else {}),
            "page": re.findall(rf'<li[^>]* data-alert="({ID})"', site.text("")),
            "report": re.findall(rf"^ {{12}}({ID}): ", d.ctl("report", check=False).stdout, re.M),
            "report --json": [alert["id"] for alert in self.alerts("report")],
            "report --html": re.findall(rf'<li[^>]* data-alert="({ID})"', night.read_text()),
            "readyz": re.findall(rf"^({ID}): ", site.ask("readyz")[2].decode(), re.M),
            "metrics": re.findall(r'^noctule_alert\{alert="([^"]+)"\} \d$', site.text("metrics"), re.M),
        }
        return {place: sorted(ids) for place, ids in shown.items()}

    def wait(self, *expected, loads=True):
        """Waits until all places show exactly these alerts."""
        last = {}

        def alike():
            last.clear()
            try:
                last.update(self.ids(loads))
            except OSError:  # a reload replaces the process of the web UI
                return False
            return all(ids == sorted(expected) for ids in last.values())

        try:
            wait_for(alike, 120, f"that each place shows {expected}")
        except BaseException:
            print(last)
            raise


@pytest.fixture
def shown(daemon, tmp_path):
    """A daemon with web UI and clocks, and no alert."""
    clock = Clock(tmp_path)
    site = Site(daemon, environment=clock.environment, dicom=PEERS,
                settings=SETTINGS.format(root=tmp_path / "daemon0" / "root", segment=SEGMENT)).start()
    site.clock = clock
    surfaces = Surfaces(site, tmp_path)
    surfaces.wait()
    return surfaces


def configure(shown, old, new):
    change(shown.d, old, new)
    reload(shown.d)


def test_every_place_shows_the_same(shown, tmp_path):
    site, d = shown.site, shown.d
    assert shown.check()[:2] == ("NOCTULE OK", 0)
    assert "Working" in site.page("").data and "Working" in site.page("settings").data

    configure(shown, 'backend = "cpu"', 'backend = "cuda"')  # no device is available
    shown.wait("compute")
    assert shown.check()[:2] == ("NOCTULE CRITICAL", 2)
    assert site.ask("readyz")[0] == 503 and site.figures()['noctule_alert{alert="compute"}'] == 2
    assert "Broken: 1" in site.page("").data and "Broken: 1" in site.page("settings").data
    configure(shown, 'backend = "cuda"', 'backend = "cpu"')
    shown.wait()

    other = free_port()
    with taken(other):
        configure(shown, f"port = {d.port};", f"port = {other};")
        shown.wait("reception")
        change(d, f"port = {other};", f"port = {d.port};")
    reload(d)
    shown.wait()

    configure(shown, "min_free_mib = 1;", "min_free_mib = 1e8;")
    shown.wait("disk")
    configure(shown, "min_free_mib = 1e8;", "min_free_mib = 1;")
    shown.wait()

    text = d.config.read_text()
    d.config.write_text(text + "oops\n")  # no reload meets it
    shown.wait("config_file", loads=False)
    (fault,) = shown.alerts()
    assert f"{d.config}:" in fault["text"] and fault["since"] and b"oops" not in site.ask("readyz")[2]
    assert f"{d.config}:" in d.ctl("doctor", check=False).stdout
    assert d.ctl("report", "--send", check=False).returncode == 5
    assert d.ctl("reload", check=False).returncode == 5
    shown.wait("configuration", loads=False)  # once, not twice
    d.config.write_text(text)
    reload(d)
    shown.wait()

    (worker,) = d.children("worker")
    os.kill(worker, signal.SIGSTOP)
    site.clock.pass_time(16)  # of silence
    shown.wait("worker:0")
    assert [alert["severity"] for alert in shown.alerts()] == ["broken"]
    os.kill(worker, signal.SIGCONT)
    shown.wait()

    (d.inbox / "LICENSE.txt").write_text(LICENCE)
    shown.wait("quarantine")
    drop(phantom(tmp_path / "large", "--size", "256x256x64", "--seed", "2"), d.inbox / "large")
    shown.wait("jobs_failed", "quarantine")
    assert shown.check()[:2] == ("NOCTULE WARNING", 1)
    status, _, text = site.ask("readyz")
    assert (status, text[:3]) == (200, b"ok\n") and b"LICENSE" not in text
    for alert in shown.alerts():
        assert alert["since"] and alert["remedy"] and alert["may_acknowledge"] is True and alert["acknowledged"] is None, alert
    assert d.stop() == 0


def ack(d, *arguments, status=0):
    done = d.ctl("ack", *arguments, check=False)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout + done.stderr


def expect_acknowledged(shown, *expected):
    """Waits for these two alerts, and checks which are acknowledged."""
    shown.wait("quarantine", "jobs_failed")
    assert sorted(alert["id"] for alert in shown.alerts() if alert["acknowledged"]) == sorted(expected)
    figures = {f'noctule_alert{{alert="{alert}"}}': alert not in expected for alert in ("quarantine", "jobs_failed")}
    wait_for(lambda: figures.items() <= shown.site.figures().items(), 60, "metrics of acknowledged alerts")  # made each second
    all_known = len(expected) == 2
    assert shown.check()[:2] == (("NOCTULE OK", 0) if all_known else ("NOCTULE WARNING", 1))
    assert shown.d.ctl("report", check=False).returncode == (not all_known)


def test_acknowledged(shown, tmp_path):
    site, d = shown.site, shown.d
    (d.inbox / "LICENSE.txt").write_text(LICENCE)
    drop(phantom(tmp_path / "large", "--size", "256x256x64", "--seed", "2"), d.inbox / "large")
    expect_acknowledged(shown)
    assert "there is no current alert jobs_done" in ack(d, "jobs_done", status=3)
    assert "is not acknowledged" in ack(d, "--undo", "quarantine", status=3)
    ack(d, "--until", "2020-01-01", "quarantine", status=2)
    ack(d, "--until", "soon", "quarantine", status=2)
    assert ack(d, "quarantine", "--reason", "a | licence <b>") == "quarantine is acknowledged\n"
    expect_acknowledged(shown, "quarantine")
    ack(d, "jobs_failed", "--until", "2h")
    expect_acknowledged(shown, "quarantine", "jobs_failed")
    (about,) = [alert["acknowledged"] for alert in shown.alerts() if alert["id"] == "quarantine"]
    assert about["reason"] == "a | licence <b>" and about["by"] and about["at"] and about["until"] is None
    text = d.ctl("status").stdout
    assert re.search(r"^Known       1 file quarantined", text, re.M) and "noctule ack --undo quarantine" in text
    assert "Working" in site.page("").data and "a | licence <b>" in site.page("").data
    assert [row for row in json.loads(d.ctl("status", "--json").stdout)["troubles"] if row["level"] != "waits"] == []

    assert d.stop() == 0
    site.start()
    expect_acknowledged(shown, "quarantine", "jobs_failed")
    (d.inbox / "COPYING").write_text(LICENCE.upper())
    wait_for(lambda: len(d.query("SELECT 1 FROM v_quarantine")) == 2, 60, "the second file")
    expect_acknowledged(shown, "jobs_failed")  # the other one has occurred again
    ack(d, "quarantine")
    expect_acknowledged(shown, "quarantine", "jobs_failed")
    ack(d, "--undo", "quarantine", "--reason", "wrong one")
    expect_acknowledged(shown, "jobs_failed")
    events = [row["kind"] for row in d.query("SELECT kind FROM v_events WHERE kind LIKE '%ACKNOWLEDGE%' ORDER BY event")]
    assert events == ["ALERT_ACKNOWLEDGED"] * 3 + ["ACKNOWLEDGEMENT_ENDED"]
    assert d.stop() == 0


def test_acknowledgements_end_with_the_daemons_alert(shown):
    """An acknowledgement of the daemon's own alert ends with the condition. A restart does not end it."""
    site, d = shown.site, shown.d
    configure(shown, 'backend = "cpu"', 'backend = "cuda"')
    shown.wait("compute")
    ack(d, "compute", "--reason", "the card is being replaced")
    shown.wait("compute")
    assert shown.check()[:2] == ("NOCTULE OK", 0)
    assert site.ask("readyz")[0] == 503  # no job can run, with or without acknowledgement
    assert d.stop() == 0
    site.start()
    shown.wait("compute")
    assert shown.check()[:2] == ("NOCTULE OK", 0)
    configure(shown, 'backend = "cuda"', 'backend = "cpu"')
    shown.wait()
    site.clock.pass_time(61)  # the time that conditions have after a start to occur again
    wait_for(lambda: not d.query("SELECT 1 FROM v_acknowledgements"), 60, "the end of the acknowledgement")
    configure(shown, "min_free_mib = 1;", "min_free_mib = 1e8;")
    shown.wait("disk")
    assert "disk cannot be acknowledged: the service does not work" in ack(d, "disk", status=1)
    assert d.stop() == 0


def test_free_space_is_fresh(shown):
    """Compares v_disk, status, web UI and metric with the file system."""
    site, d = shown.site, shown.d

    def free_mib():
        disk = os.statvfs(d.root)
        return disk.f_bavail * disk.f_frsize / 2**20

    first = d.query("SELECT free_at FROM v_night")
    before = free_mib()
    site.clock.pass_time(60)
    wait_for(lambda: d.query("SELECT free_at FROM v_night") != first, 60, "a measurement of the last minute")
    ((mib, at),) = d.query("SELECT free_mib, free_at FROM v_night")
    assert min(before, free_mib()) - 1024 < mib < max(before, free_mib()) + 1024
    assert [tuple(row) for row in d.query("SELECT at, free_mib FROM v_disk ORDER BY at DESC LIMIT 1")] == [(at, mib)]
    assert re.search(r"^Disk        \d+\.\d GiB free at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4}", d.ctl("status").stdout, re.M)
    assert site.figures()["noctule_disk_free_bytes"] == pytest.approx(mib * 2**20, rel=0.2)
    assert "measured" in site.page("").data
    assert d.stop() == 0
