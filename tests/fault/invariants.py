"""Invariants after any event, checked from outside: the database with an administrator's access, and the files."""

import collections
import contextlib
import http.client
import io
import pathlib

import pydicom
import pytest
from conftest import wait_for
from hospital import NAME, PAGES, SECONDS, read_page
from patients import SIGNS
from test_receive import data_set_of, stored

# States that jobs leave only by command.
ENDED = {"DONE", "EMPTY", "FAILED", "CANCELLED"}


def settled(d):
    """Waits until all instances are received and processed, and all results delivered, except to SLOW."""
    try:
        wait_for(lambda: not unsent(d), SECONDS, "the delivery of every result")
    except pytest.fail.Exception:
        for row in d.query("SELECT * FROM v_deliveries WHERE destination <> 'SLOW' AND state <> 'SENT'"):
            print(dict(row))
        raise
    wait_for(lambda: not list(d.inbox.glob("copied */*")), SECONDS, "the end of the inbox's files")
    wait_for(lambda: not list((d.root / "incoming").rglob("*.part")), SECONDS, "an end of what was half-done")
    page_is_back(d)


def page_is_back(d):
    """Checks that the web UI answers every request after all disasters."""

    def answers():
        with contextlib.suppress(OSError, http.client.HTTPException):
            return all(read_page(d, path) == 200 for path in PAGES if "?" not in path)
        return False

    wait_for(answers, SECONDS, "the page")


def unsent(d):
    """Returns the unsent results. A result that another one has replaced need not be sent."""
    return d.query("SELECT path FROM v_deliveries WHERE destination <> 'SLOW' AND state <> 'SENT' "
                   "AND NOT (state = 'CANCELLED' AND code = 'SUPERSEDED')")


def check(d, promised, sessions, archive=None, orthanc=None, corrected=()):
    """Checks all invariants after the daemon's end."""
    wait_for(lambda: not in_sessions(sessions), SECONDS, "the end of every child")
    check_instances(d, promised)
    check_jobs(d, promised, corrected)
    check_revisions(d, corrected)
    check_identity(d, corrected)
    check_folder(d)
    if archive:
        check_archive(d, archive)
    if orthanc:
        check_orthanc(d, orthanc)
    check_leftovers(d)
    check_database(d)
    check_events(d)
    check_log(d)
    check_privacy(d)


def in_sessions(sessions):
    """Returns the processes in the daemons' sessions, which their children never leave."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(stat[3]) in sessions and stat[0] != "Z":
                found.append(int(entry.name))
    return found


def check_instances(d, promised):
    """Checks that every acknowledged instance is stored once, as sent, and that there are no others."""
    on_record = stored(d)
    assert on_record.keys() == promised.keys()
    (count,) = d.query("SELECT count(*), count(DISTINCT sop_instance_uid) FROM instance")
    assert count[0] == count[1]
    for instance, sent in promised.items():
        assert data_set_of(on_record[instance]) == sent.data, instance
    files = {path for path in (d.root / "series").rglob("*") if path.is_file()}
    assert files == set(on_record.values())


def check_jobs(d, promised, corrected=()):
    """Checks that each series has one current result, and a second one only after a correction of its own."""
    series = {each.series for each in promised.values()}
    current = collections.Counter(row["series_uid"] for row in d.jobs("DONE") if row["superseded_by"] is None)
    assert current == collections.Counter(series)
    assert {row["state"] for row in d.jobs()} <= ENDED
    others = [row["series_uid"] for row in d.jobs("DONE") if row["superseded_by"] is not None]
    assert set(others) <= set(corrected)


def check_revisions(d, corrected):
    """Checks that only a correction of its own changed a series, not a failure of another one on its association."""
    for row in d.query("SELECT * FROM v_series"):
        assert (row["state"], row["revision"]) == ("SETTLED", 1) or row["series_uid"] in corrected, dict(row)


def check_identity(d, corrected):
    """Checks that the result of a corrected series has the right patient and new UIDs, and refers to the replaced
    one."""
    for uid, patient in dict(corrected).items():
        rows = d.query("SELECT * FROM v_results WHERE series_uid = ? AND kind = 'seg' ORDER BY job", uid)
        made = [pydicom.dcmread(d.root / row["path"], stop_before_pixels=True) for row in rows]
        assert made[-1].PatientID == patient
        assert len({each.SOPInstanceUID for each in made}) == len({each.SeriesInstanceUID for each in made}) == len(made) > 1
        for before, after, row in zip(made, made[1:], rows[1:], strict=False):
            assert after.ReferencedImageSequence[0].ReferencedSOPInstanceUID == before.SOPInstanceUID == row["replaces"]


def results_of(d):
    """Returns the outbox files by SOP Instance UID."""
    return {row["sop_instance_uid"]: d.root / row["path"] for row in d.query("SELECT * FROM v_results WHERE kind = 'seg'")}


def check_arrived(d, destination, arrived):
    """Checks that each arrived object is a result, and that each sent result arrived. A result that was replaced
    before its delivery may be absent."""
    sent = {row[0] for row in d.query("SELECT sop_instance_uid FROM v_deliveries WHERE destination = ? AND state = 'SENT'", destination)}
    current = {row[0] for row in d.query("SELECT sop_instance_uid FROM v_results WHERE superseded_by IS NULL AND kind = 'seg'")}
    assert current <= sent <= arrived <= results_of(d).keys()


def check_folder(d):
    """Checks that the folder contains each result of the outbox once, byte for byte, and no other file."""
    results = results_of(d)
    out = sorted(path for path in (d.folder / "out").rglob("*") if path.is_file())
    check_arrived(d, "OUT", {path.stem for path in out})
    for path in out:
        assert path.suffix == ".dcm" and path.read_bytes() == results[path.stem].read_bytes()


def check_archive(d, archive):
    """Checks that the archive has each result at least once, always with the same data set. The slow archive has no
    results."""
    results, arrived = results_of(d), set()
    for path in archive.files():
        uid = pydicom.dcmread(path, stop_before_pixels=True).SOPInstanceUID
        assert data_set_of(path) == data_set_of(results[uid]), path
        arrived.add(uid)
    check_arrived(d, "PACS", arrived)
    assert not d.query("SELECT * FROM v_deliveries WHERE destination = 'SLOW' AND state = 'SENT'")


def check_orthanc(d, orthanc):
    """Checks that Orthanc, which keeps the first object of a UID, has each result as in the outbox."""
    results, arrived = results_of(d), set()
    for instance in orthanc.instances():
        held = pydicom.dcmread(io.BytesIO(orthanc.file(instance)))
        assert held == pydicom.dcmread(results[held.SOPInstanceUID])
        arrived.add(held.SOPInstanceUID)
    check_arrived(d, "ORTHANC", arrived)


def check_leftovers(d):
    """Checks that the service's folders contain no partial files."""
    assert not list((d.root / "incoming").rglob("*.part"))
    jobs = {path.parent for path in (d.root / "outbox").rglob("seg.dcm")}
    assert len(jobs) == len(d.jobs("DONE"))
    told = {row["path"] for row in d.query("SELECT path FROM v_quarantine")}
    there = {str(path.relative_to(d.root)) for path in (d.root / "quarantine").rglob("*")
             if path.is_file() and not path.name.endswith(".reason.json")}
    assert there <= told, "a file in quarantine that no row tells of"


def check_database(d):
    assert [tuple(row) for row in d.query("PRAGMA integrity_check")] == [("ok",)]
    assert d.query("PRAGMA foreign_key_check") == []


def check_events(d):
    """Checks that the events of a job, a delivery or a series are a valid sequence, and end in its state."""
    for kind, column, table, key in (("job", "job", "v_jobs", "job"), ("delivery", "delivery", "v_deliveries", "delivery")):
        last = {}
        others = "AND delivery IS NULL" if kind == "job" else ""
        for row in d.query(f"SELECT * FROM v_events WHERE {column} IS NOT NULL AND to_state IS NOT NULL {others} "
                           "ORDER BY event"):
            here = row[column]
            assert (row["from_state"] or None) == last.get(here), (kind, here, dict(row), last.get(here))
            last[here] = row["to_state"]
        states = {row[key]: row["state"] for row in d.query(f"SELECT * FROM {table}")}
        assert last == states, kind


def check_log(d):
    """Checks that no log line contains a patient's name, or, below debug, any identifier."""
    text = d.log.read_text(errors="replace")
    assert not [line for line in text.splitlines() if SIGNS.search(line) and "level=debug" not in line]
    assert NAME not in text and "runtime error" not in text and "AddressSanitizer" not in text


def check_privacy(d):
    """Checks that names of patients and of their files are only below the root, and not in events, messages or
    reports."""
    texts = {view: str([tuple(row) for row in d.query(f"SELECT * FROM {view}")])
             for view in ("v_events", "v_series", "v_stacks", "v_jobs", "v_deliveries", "v_nights")}
    texts |= {" ".join(arguments): d.ctl("report", *arguments, check=False).stdout
              for arguments in (("--since", "yesterday"), ("--since", "yesterday", "--json"))}
    html = d.folder / "checked.html"
    d.ctl("report", "--since", "yesterday", "--html", html, check=False)
    texts["html"] = html.read_text()
    for name, text in texts.items():
        assert text and NAME not in text and NAME.replace("^", "&#94;") not in text, name
