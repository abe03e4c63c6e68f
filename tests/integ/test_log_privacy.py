"""No line of the log at any level below debug names a patient, whatever goes well or wrong."""

import os

import pydicom
import pytest
from conftest import PEERS, drop, free_port, phantom, storescu, wait_for
from patients import MARK, NAMES, NUMBERS, SIGNS, TEXTS, identify
from test_deliveries import QUICK, objects, to_archive, to_folder


def marked(folder, *arguments, **changes):
    files = phantom(folder, *arguments)
    for file in files:
        dataset = pydicom.dcmread(file)
        identify(dataset, **changes)
        dataset.save_as(file)
    return [file.rename(file.with_name(f"{MARK}_{file.name}")) for file in files]


def named(text):
    """The lines that name a patient."""
    return [line for line in text.splitlines() if SIGNS.search(line)]


def logged(text):
    """The lines of a log: a program's words to its user may name the user's files."""
    return [line for line in text.splitlines() if "level=" in line]


@pytest.mark.parametrize("keyword", [*NAMES, *NUMBERS, *TEXTS, "PatientBirthDate"])
def test_a_leak_would_be_found(keyword):
    """Whatever identifies a patient, in a line as the log writes it; and the line without it is none."""
    dataset = pydicom.Dataset()
    identify(dataset)
    line = 'ts=2026-01-31T02:03:04.567Z level=info role=daemon event=series.settled series=1.2.3 text="{}" files=6'
    leak = line.format(dataset[keyword].value)
    assert named(f"{line}\n{leak}\n{line}") == [leak]
    assert logged(leak) == [leak]


def test_a_leak_of_the_service_is_found(daemon, tmp_path):
    """What the log does say, AE titles, with a patient's name: the check is of what the programs write."""
    d = daemon(dicom=PEERS)
    d.start()
    (file, *_) = phantom(tmp_path / "sent", "--size", "16x16x3")
    storescu(d.port, file, calling=f"{MARK}STRANGER", check=False)
    d.wait_log("association.rejected")
    assert d.stop() == 0
    assert any("association.rejected" in line for line in logged("\n".join(named(d.log.read_text()))))


def ruin_and_ask_again(d, folder, sent):
    """A result that is in the way, an image that is damaged after it was stored, and every command that looks at patients."""
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
    storescu(d.port, sent[0])  # known already
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
    drop(dropped[1:], folder)  # one slice is cut: the series is incomplete
    # A set of characters that nobody knows, in a name that is none of it.
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
    ruin_and_ask_again(d, tmp_path, sent)
    (spooled,) = d.query("SELECT path FROM v_instances LIMIT 1")
    assert d.stop() == 0
    (d.root / spooled[0]).unlink()  # told as missing by the next start
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
