"""Removal of old data, and protection of undelivered data: the real daemon, also killed during removal, and resent
series."""

import json
import os
import re
import shutil
import signal
import sqlite3

from conftest import free_port, phantom, storescu, wait_for

NOW = "series_days = 1e-8; results_days = 1e-8; quarantine_days = 1e-8; min_days = 0.0;"
PATIENT = "NP000001"
PARTIAL = 1  # exit status of a partly refused command


def working(daemon, tmp_path, deliver="shelf", extra="", **options):
    """A daemon that delivers to a folder, and has a destination without an archive."""
    destinations = (f'destinations = ( {{ name = "shelf"; folder = "{tmp_path}/shelf"; }}, {{ name = "gone"; '
                    f'ae_title = "GONE"; host = "127.0.0.1"; port = {free_port()}; }} );\n')
    options = {"after": "delete", **options}
    return daemon(quiet=60.0, pipeline_extra=f'deliver = [ "{deliver}" ];', extra=destinations + extra, **options).start()


def keep(d, group):
    """Replaces the retention settings of the configuration, and reloads it."""
    text = re.sub(r"retention = \{.*\};\n", "", d.config.read_text())
    d.config.write_text(text + f"retention = {{ {group} }};\n")
    if d.process:
        d.process.send_signal(signal.SIGHUP)


def run_series(d, tmp_path, state="SENT"):
    """Processes and delivers a series. Returns its files."""
    files = phantom(tmp_path / "images", "--size", "32x32x6")
    for path in files:  # renamed into place, so that the receiver need not wait for a stable size
        shutil.copy(path, d.inbox / f"{path.name}.part").rename(d.inbox / path.name)
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE state = ?", state), 60, "the delivery")
    return files


def files_below(d):
    """Returns the remaining files of images, results and quarantine. Folders may disappear meanwhile."""
    return sorted(os.path.relpath(os.path.join(folder, file), d.root)
                  for name in ("series", "outbox", "removed", "quarantine")
                  for folder, _, files in os.walk(d.root / name) for file in files)


def wait_removed(d):
    wait_for(lambda: not d.query("SELECT 1 FROM removal UNION ALL SELECT 1 FROM v_series WHERE removed_at IS NULL "
                                 "UNION ALL SELECT 1 FROM v_jobs WHERE removed_at IS NULL") and not files_below(d), 30,
             f"the end of {files_below(d)}")


def test_delivered_series_are_removed_and_may_be_sent_again(daemon, tmp_path):
    d = working(daemon, tmp_path, dicom='peers = ( { ae_title = "STORESCU"; } );')
    files = run_series(d, tmp_path)
    (d.inbox / "junk.dcm").write_bytes(b"no DICOM")
    wait_for(lambda: d.query("SELECT 1 FROM v_quarantine"), 60, "the quarantined file")
    keep(d, NOW)
    wait_removed(d)
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["state"], series["instances"], series["removed_at"] is None) == ("SETTLED", len(files), False)
    assert d.jobs("DONE")[0]["result_path"]
    assert d.query("SELECT removed_at FROM v_quarantine")[0][0]
    assert not list((d.root / "quarantine").iterdir()), "the empty folder of the day stayed"
    for command, code in ((("retry", "1"), "SERIES_REMOVED"), (("resend", "1"), "RESULTS_REMOVED"),
                          (("complete", "--accept-missing", series["series_uid"]), "SERIES_REMOVED"),
                          (("submit", "--rules", series["series_uid"]), "SERIES_REMOVED"),
                          (("explain", series["series_uid"]), "SERIES_REMOVED")):
        answer = d.ctl(*command, check=False)
        assert answer.returncode != 0 and code in answer.stderr + answer.stdout
    assert d.ctl("submit", "--rules").stdout == "no matching series\n"
    keep(d, "series_days = 0.0;")
    storescu(d.port, *files)
    d.wait_jobs(2)
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["revision"], series["instances"], series["removed_at"]) == (2, len(files), None)
    assert len(list((d.root / "series").rglob("*.dcm"))) == len(files)
    assert [job["state"] for job in d.jobs()] == ["DONE", "DONE"]


def test_short_ages_are_applied_without_a_command(daemon, tmp_path):
    d = working(daemon, tmp_path, extra=f"retention = {{ {NOW} }};\n")
    run_series(d, tmp_path)
    wait_removed(d)


def test_undelivered_data_stays_on_a_full_disk(daemon, tmp_path):
    d = working(daemon, tmp_path, deliver="gone")
    run_series(d, tmp_path, state="DELAYED")
    before = files_below(d)
    keep(d, NOW + "low_mib = 1e9; high_mib = 1e9;")
    wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RETENTION_STUCK'"), 60, "the event")
    assert files_below(d) == before
    assert not d.query("SELECT 1 FROM v_series WHERE removed_at IS NOT NULL")


def test_delivered_data_is_removed_for_space(daemon, tmp_path):
    d = working(daemon, tmp_path)
    run_series(d, tmp_path)
    keep(d, "min_days = 0.0; low_mib = 1e9; high_mib = 1e9;")
    wait_removed(d)
    assert "for want of space" in d.query("SELECT detail FROM v_events WHERE kind = 'SERIES_REMOVED'")[0][0]


def test_inbox_keep_protects_its_series(daemon, tmp_path):
    d = working(daemon, tmp_path, after="keep")
    files = run_series(d, tmp_path)
    keep(d, NOW)
    wait_for(lambda: d.jobs()[0]["removed_at"], 60, "the end of the results")
    assert len(list((d.root / "series").rglob("*.dcm"))) == len(files)
    # The originals are removable only after the receiver has found them again.
    keep(d, NOW + ' inbox = "delete";')
    d.stop()
    d.start()
    wait_removed(d)
    wait_for(lambda: not list(d.inbox.iterdir()), 60, "the empty inbox")
    d.stop()
    d.start()
    assert d.query("SELECT revision FROM v_series")[0][0] == 1


def test_a_purged_instance_does_not_return_from_its_inbox(daemon, tmp_path):
    d = working(daemon, tmp_path, after="keep")
    files = run_series(d, tmp_path)
    uid = d.query("SELECT series_uid FROM v_series")[0][0]
    assert f"; kept in their inbox and not received again: {len(files)} originals" in d.ctl("purge", "--yes", uid).stdout
    for _ in range(2):
        d.stop()
        d.start()
        wait_for(lambda: f"event=inbox.swept inbox={d.inbox} known={len(files)} " in d.log.read_text().split("daemon.started")[-1],
                 20, "a sweep")
        assert [row[0] for row in d.query("SELECT revision FROM v_series WHERE removed_at IS NOT NULL")] == [1]
    for path in d.inbox.iterdir():  # deliberately sent again
        path.touch()
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE revision = 2 AND instances = ?", len(files)), 60, "the series")


def test_a_killed_removal_continues(daemon, tmp_path):
    d = working(daemon, tmp_path)
    run_series(d, tmp_path)
    d.stop()
    keep(d, NOW)
    for point in ("retention_after_mark", "retention_after_set_aside", "file_in_remove", "retention_after_delete"):
        d.environment["NOCTULE_CRASH_AT"] = point
        d.start(wait=False)
        assert d.process.wait(60) == -signal.SIGKILL, point
        assert d.query("SELECT 1 FROM v_series WHERE removed_at IS NOT NULL"), "the row is the first to know"
        assert d.query("SELECT 1 FROM removal"), "and what is to go is known until it is gone"
    del d.environment["NOCTULE_CRASH_AT"]
    d.start()
    wait_removed(d)
    assert d.query("PRAGMA integrity_check")[0][0] == "ok"
    assert [row[0] for row in d.query("SELECT kind FROM v_events WHERE kind LIKE '%REMOVED' ORDER BY event")] == [
        "SERIES_REMOVED", "RESULTS_REMOVED"]


def test_a_leaping_clock_removes_no_data(daemon, tmp_path):
    """A wrong clock makes all data look old. The last record of free space holds the earlier time."""
    d = working(daemon, tmp_path)
    run_series(d, tmp_path)
    wait_for(lambda: d.query("SELECT 1 FROM disk"), 60, "the note")
    d.stop()
    db = sqlite3.connect(d.root / "noctule.db")
    db.execute("UPDATE disk SET at = '2020-01-01T00:00:00.000Z'")
    db.commit()
    db.close()
    keep(d, NOW)
    before = files_below(d)
    for leaps in (1, 2):  # a restart does not make it plausible
        d.start()
        wait_for(lambda n=leaps: len(d.query("SELECT 1 FROM v_events WHERE kind = 'CLOCK_LEAPT'")) == n, 60, "the event")
        keep(d, NOW)
        wait_for(lambda: d.query("SELECT 1 FROM v_events WHERE kind = 'RELOAD' AND event > "
                                 "(SELECT max(event) FROM v_events WHERE kind = 'CLOCK_LEAPT')"), 60, "the reload")
        d.stop()
    assert files_below(d) == before


def test_purge_removes_a_series_at_once(daemon, tmp_path):
    d = working(daemon, tmp_path, deliver="gone")
    files = run_series(d, tmp_path, state="DELAYED")
    (series,) = d.query("SELECT * FROM v_series")
    uid = series["series_uid"]
    broken = files[0].read_bytes()[:-100]
    (d.inbox / "Doe^Jane.dcm").write_bytes(broken)
    (d.inbox / "Roe^Rita.txt").write_bytes(b"no DICOM")
    wait_for(lambda: len(d.query("SELECT 1 FROM v_quarantine")) == 2, 60, "the quarantined files")
    before = files_below(d)
    told = d.ctl("purge", uid, check=False)
    assert told.returncode == PARTIAL and "--undelivered" in told.stderr
    told = d.ctl("purge", "--undelivered", uid, check=False)
    assert told.returncode == PARTIAL and "6 images" in told.stdout and "--yes" in told.stderr
    assert d.ctl("purge", "--patient", "nobody", "--yes").stdout == "no matching series\n"
    assert d.ctl("purge", "--before", "1d", "--yes").stdout == "no matching series\n"
    assert files_below(d) == before, "what was only told of"
    (would,) = json.loads(d.ctl("purge", "--patient", PATIENT, "--undelivered", "--dry-run", "--json").stdout)
    assert (would["series_uid"], would["images"], would["undelivered"], would["removed"]) == (uid, 6, 1, False)
    (done,) = json.loads(d.ctl("purge", "--patient", PATIENT, "--undelivered", "--yes", "--json").stdout)
    assert done == {**would, "removed": True}
    (stray,) = [path for path in files_below(d) if not path.startswith("removed") and "reason" not in path]
    assert stray.startswith("quarantine/"), "the rest is gone when it is said so"
    (_, would) = json.loads(d.ctl("purge", "--before", "2100", "--dry-run", "--json").stdout)
    assert (would["series_uid"], would["quarantined"], would["removed"]) == ("", 1, False)
    told = d.ctl("purge", "--before", "2100", "--yes").stdout
    assert "1 file in quarantine without a known series: removed" in told
    assert not [path for path in files_below(d) if not path.startswith("removed")]
    wait_removed(d)
    assert [row["state"] + row["code"] for row in d.query("SELECT * FROM v_deliveries")] == ["CANCELLEDPURGED"]
    assert re.search("purged by \\S+", d.query("SELECT detail FROM v_events WHERE kind = 'SERIES_REMOVED'")[0][0])
    d.stop()
    for name in ("noctule.db", "noctule.db-wal"):
        for person in (b"Doe^Jane", b"Roe^Rita"):
            assert person not in (d.root / name).read_bytes(), f"the name {person} stands in {name}"
    assert d.ctl("purge", "1.2.3", "--yes", check=False).returncode == 4, "nobody is there to be asked"
