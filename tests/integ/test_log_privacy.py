"""No log line at any level less verbose than debug identifies a patient, after successes and failures."""

import json
import os

import pydicom
import pytest
from conftest import PEERS, drop, free_port, phantom, storescu, wait_for
from patients import BORN, MARK, NAMES, NUMBERS, SIGNS, TEXTS, identify
from test_bad_input import KINDS
from test_deliveries import QUICK, objects, to_archive, to_folder
from test_page import Site


def marked(folder, *arguments, **changes):
    files = phantom(folder, *arguments)
    for file in files:
        dataset = pydicom.dcmread(file)
        identify(dataset, **changes)
        dataset.save_as(file)
    return [file.rename(file.with_name(f"{MARK}_{file.name}")) for file in files]


def named(text):
    """Returns the lines that identify a patient."""
    return [line for line in text.splitlines() if SIGNS.search(line)]


def logged(text):
    """Returns the lines of a log. Other output of a program goes to its user and may name the user's files."""
    return [line for line in text.splitlines() if "level=" in line]


@pytest.mark.parametrize("keyword", [*NAMES, *NUMBERS, *TEXTS, "PatientBirthDate"])
def test_a_leak_would_be_found(keyword):
    """A line with any identifier of a patient, as the log writes it, must be found. The same line without it must
    pass."""
    dataset = pydicom.Dataset()
    identify(dataset)
    line = 'ts=2026-01-31T02:03:04.567Z level=info role=daemon event=series.settled series=1.2.3 text="{}" files=6'
    leak = line.format(dataset[keyword].value)
    assert named(f"{line}\n{leak}\n{line}") == [leak]
    assert logged(leak) == [leak]


def test_a_leak_of_the_service_is_found(daemon, tmp_path):
    """A patient's name as AE title, which the log may contain, proves that the check reads the service's lines."""
    d = daemon(dicom=PEERS)
    d.start()
    (file, *_) = phantom(tmp_path / "sent", "--size", "16x16x3")
    storescu(d.port, file, calling=f"{MARK}STRANGER", check=False)
    d.wait_log("association.rejected")
    assert d.stop() == 0
    assert any("association.rejected" in line for line in logged("\n".join(named(d.log.read_text()))))


def damage_and_run_commands(d, folder, sent):
    """Makes failures: a result in the way, an image damaged after storage. Runs every command that reads patients."""
    (delivered,) = d.query("SELECT delivery, series_uid FROM v_deliveries WHERE destination = 'OUT' AND state = 'SENT' LIMIT 1")
    for path in objects(folder / "out"):
        path.write_bytes(b"another file")
    d.ctl("resend", str(delivered["delivery"]))
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE code = 'FOLDER_CONFLICT'"), 60, "the conflict")
    uid = pydicom.dcmread(sent[0], stop_before_pixels=True).SeriesInstanceUID
    spooled = next((d.root / "series" / uid).glob("*.dcm"))
    spooled.write_bytes(spooled.read_bytes()[:-700])
    asked = [d.ctl("submit", "--pipeline", "head-ct", "--force", uid, check=False),
             d.ctl("purge", "--patient", f"{MARK}1", "--dry-run", "--yes", check=False),
             d.ctl("explain", uid, check=False), d.ctl("explain", str(sent[0].parent), check=False),
             d.ctl("run", "--pipeline", "head-ct", "--output", str(folder / "run"), str(sent[0].parent), check=False),
             d.ctl("run", "--pipeline", "head-ct", "--output", str(folder / "ruined"), str(spooled.parent), check=False)]
    wait_for(lambda: d.query("SELECT 1 FROM v_jobs WHERE state = 'FAILED' OR code <> ''"), 60, "the job that fails")
    for each in asked:
        assert not named("\n".join(logged(each.stdout + each.stderr))), each.args


def test_the_log_names_no_patient(daemon, tmp_path):
    d = daemon(quiet=0.5, attempts=2, dicom=PEERS, pipeline_extra='deliver = [ "OUT", "DOWN" ];',
               extra=QUICK + f"destinations = ( {to_folder(tmp_path / 'out')}, {to_archive(free_port(), 'DOWN')} );\n")
    d.config.write_text(d.config.read_text().replace('log_level = "debug"', 'log_level = "info"'))
    d.start()

    sent = marked(tmp_path / "sent", "--size", "32x32x6")
    storescu(d.port, *sent)
    storescu(d.port, sent[0])  # a duplicate
    other = pydicom.dcmread(sent[0])
    other.PixelData = bytes(len(other.PixelData))  # the same UID with other pixels
    other.save_as(tmp_path / f"{MARK}_other.dcm")
    storescu(d.port, tmp_path / f"{MARK}_other.dcm", check=False)
    storescu(d.port, sent[0], calling=f"{MARK[:3]}STRANGER", check=False)

    dropped = marked(tmp_path / "dropped", "--size", "32x32x6", "--seed", "2")
    folder = d.inbox / f"{MARK}^Anna"
    folder.mkdir()
    (folder / f"{MARK}.txt").write_text(f"{MARK} is no DICOM")
    (folder / f"{MARK}_cut.dcm").write_bytes(dropped[0].read_bytes()[:3000])
    os.symlink(dropped[0], folder / f"{MARK}_link.dcm")
    drop(dropped[1:], folder)  # one slice is truncated, so the series is incomplete
    # An unknown character set, and a name that does not fit it.
    odd = marked(tmp_path / "odd", "--size", "32x32x6", "--seed", "4", SpecificCharacterSet="ISO_IR 100")
    for path in odd:
        path.write_bytes(path.read_bytes().replace(b"ISO_IR 100", b"ISO_IR 999").replace(b"Anna", b"\xc4nn\xff"))
    drop(odd, folder / f"{MARK} odd")
    mixed = marked(tmp_path / "mixed", "--size", "16x16x4", "--seed", "3")
    pydicom.dcmread(mixed[1]).save_as(mixed[1])
    dataset = pydicom.dcmread(mixed[2])
    dataset.PatientID = f"{MARK}4712"
    dataset.save_as(mixed[2])
    drop(mixed, folder / f"{MARK} mixed")

    d.wait_jobs(2)
    wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'")) == 2, 60, "two refused series")
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE destination = 'DOWN' AND attempts > 1"), 60, "attempts")
    uid = d.query("SELECT series_uid FROM v_series WHERE code = 'INCOMPLETE_SERIES'")[0][0]
    d.ctl("complete", "--accept-missing", uid)
    d.ctl("retry", "1", check=False)  # refused while its result is being sent
    d.wait_jobs(3)
    damage_and_run_commands(d, tmp_path, sent)
    (spooled,) = d.query("SELECT path FROM v_instances LIMIT 1")
    assert d.stop() == 0
    (d.root / spooled[0]).unlink()  # reported as missing at the next start
    d.start()
    d.wait_log("file.missing")
    assert d.stop() == 0

    text = d.log.read_text()
    assert "level=debug" not in text
    for event in ("association.rejected", "file.quarantined", "delivery.ended", "job.", "inbox.skipped", "control.complete",
                  "control.submit", "FOLDER_CONFLICT", "FILE_TRUNCATED", "level=warn", "level=error"):
        assert event in text, event
    assert not named(text), named(text)[:5]
    assert any(SIGNS.search(str(tuple(row))) for row in d.query("SELECT * FROM v_quarantine")), "the marks were there"


OWN_PAGES = ("", "work", "deliveries", "received", "reports", "cohort", "settings", "search", "metrics", "readyz")


def outputs_outside_the_root(site, folder):
    """Returns all outputs outside the root as {name: text}. Rows of v_quarantine and v_instances belong to the root."""
    d = site.daemon
    texts = {f"page {path}": site.ask(path)[2].decode() for path in OWN_PAGES}
    html = folder / "report.html"
    d.ctl("report", "--html", html, check=False)
    texts |= {"report.html": html.read_text(), "report": d.ctl("report", check=False).stdout,
              "report --json": d.ctl("report", "--json", check=False).stdout}
    for command in ("status", "series", "jobs", "deliveries", "quarantine", "doctor"):
        done = d.ctl(command, check=False)
        texts[command] = done.stdout + done.stderr
    for view in ("v_events", "v_series", "v_stacks", "v_jobs", "v_deliveries", "v_results", "v_night", "v_nights"):
        texts[view] = "\n".join(str(tuple(row)) for row in d.query(f"SELECT * FROM {view}"))
    return texts | {"log": d.log.read_text()}


@pytest.mark.parametrize("identifiers", ["hashed", "none"])
def test_names_of_files_and_patients_stay_below_the_root(daemon, tmp_path, identifiers):
    """Every kind of bad file, named after its patient, by inbox and by C-STORE, and refused images of a patient."""
    site = Site(daemon, quiet=0.5, dicom=PEERS, extra=f'identifiers = "{identifiers}";\n')
    d = site.daemon
    d.config.write_text(d.config.read_text().replace('log_level = "debug"', 'log_level = "info"'))
    site.start()
    good = phantom(tmp_path / "good", "--size", "32x32x6")
    for path in good:
        dataset = pydicom.dcmread(path)
        dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = f"{MARK}^Anna", f"{MARK}4711", BORN
        dataset.save_as(path)
    bad = tmp_path / "bad"
    bad.mkdir()
    for make in KINDS:
        make(good[0], bad)
    (bad / "LICENSE.txt").write_text(f"{MARK} is no DICOM")
    folder = d.inbox / f"{MARK}^Anna {BORN}"
    folder.mkdir()
    for path in bad.iterdir():
        (folder / f"{MARK}^Anna_{path.name}").write_bytes(path.read_bytes())
    dataset = pydicom.dcmread(good[-1])
    del dataset.Rows
    dataset.save_as(tmp_path / "sent.dcm")
    storescu(d.port, tmp_path / "sent.dcm", check=False)
    drop([path.rename(path.with_name(f"{MARK}_{path.name}")) for path in good[1:-1]], folder / "images")  # incomplete
    wait_for(lambda: len(d.query("SELECT 1 FROM v_quarantine")) == len(KINDS) + 2, 60, "the quarantine")
    wait_for(lambda: d.query("SELECT 1 FROM v_series WHERE code = 'INCOMPLETE_SERIES'"), 60, "the series that lacks some")

    numbers = [str(row["quarantine"]) for row in json.loads(d.ctl("quarantine", "list", "--json").stdout)]
    d.ctl("quarantine", "release", *numbers)
    wait_for(lambda: len(d.query("SELECT 1 FROM v_events WHERE kind = 'QUARANTINED'")) == 2 * len(numbers), 60, "the releases")
    for name, text in outputs_outside_the_root(site, tmp_path).items():
        assert (text or name.startswith("v_")) and not named(text), (name, named(text)[:3])
    # The marks exist, and a user with access to the root finds them.
    assert all(MARK in row["original_path"] for row in d.query("SELECT * FROM v_quarantine WHERE sender = ''"))
    assert MARK in d.ctl("quarantine", "show", *numbers).stdout
