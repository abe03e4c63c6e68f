"""Search of series by study, patient and scanner in the database, and the stored form of the patient's identity."""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import re
import stat
import struct
import subprocess
import termios

import pydicom
import pytest
from conftest import BIN, PEERS, drop, phantom, storescu, wait_for

ABOUT = {"AccessionNumber": "ACC-4711", "PatientID": "PAT-0815", "StudyDate": "20260131", "StudyDescription": "Schädel nativ",
         "Manufacturer": "Acme", "ManufacturerModelName": "Ring 9", "StationName": "CT2", "InstitutionName": "St. Elsewhere", "IssuerOfPatientID": "ELSEWHERE"}
COLUMNS = ("accession_number", "patient_id", "study_date", "study_description", "manufacturer", "model", "station", "institution", "patient_issuer")


def series(folder, **about):
    files = phantom(folder, "--size", "16x16x3")
    for file in files:
        dataset = pydicom.dcmread(file)
        dataset.SpecificCharacterSet = "ISO_IR 192"
        for keyword, value in {**ABOUT, **about}.items():
            setattr(dataset, keyword, value)
        dataset.save_as(file)
    return files


def rows(d):
    return d.query(f"SELECT {', '.join(COLUMNS)} FROM v_series")


def hashed(d, text):
    return "h:" + hmac.new((d.root / "identifier.key").read_bytes(), text.encode(), hashlib.sha256).hexdigest()[:24]


@pytest.mark.parametrize("how", ["none", "hashed", "plain"])
def test_the_patient_is_stored_as_configured(daemon, tmp_path, how):
    files = series(tmp_path / "series")
    d = daemon(quiet=600.0, dicom=PEERS, extra="" if how == "hashed" else f'identifiers = "{how}";').start()
    storescu(d.port, *files)
    ((*identifiers, date, description, manufacturer, model, station, institution, issuer),) = rows(d)
    assert [date, description, manufacturer, model, station, institution] == list(ABOUT.values())[2:-1]
    identifiers.append(issuer)
    assert identifiers == {"none": ["", "", ""], "plain": ["ACC-4711", "PAT-0815", "ELSEWHERE"],
                           "hashed": how == "hashed" and [hashed(d, text) for text in ("ACC-4711", "PAT-0815", "ELSEWHERE")]}[how]
    wait_for(lambda: d.query("SELECT 1 FROM v_jobs"), 90, "the job")
    for arguments in (["--patient", "PAT-0815"], ["--accession", "ACC-4711", "--modality", "ct"],
                      ["--patient", "PAT-0815", "--sender", "STORESCU"]):
        for command in ("series", "jobs"):
            asked = json.loads(d.ctl(command, "--json", *arguments).stdout)
            assert len(asked) == (how != "none"), (command, arguments)
    assert json.loads(d.ctl("series", "--json", "--patient", "PAT-0816").stdout) == []
    assert d.stop() == 0
    database = b"".join(path.read_bytes() for path in d.root.glob("noctule.db*"))
    assert (b"PAT-0815" in database) == (how == "plain") == (b"ACC-4711" in database)
    assert "PAT-0815" not in d.log.read_text() and "ACC-4711" not in d.log.read_text()


def test_the_same_patient_is_the_same_word_after_a_restart(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    drop(series(tmp_path / "one"), d.inbox)
    wait_for(lambda: len(rows(d)) == 1, 90, "the first series")
    assert d.stop() == 0
    key = d.root / "identifier.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32
    d.start()
    drop(series(tmp_path / "two", SeriesInstanceUID="1.2.3", AccessionNumber=""), d.inbox)
    wait_for(lambda: len(rows(d)) == 2, 90, "the second series")
    first, second = rows(d)
    assert first[1] == second[1] == hashed(d, "PAT-0815")
    assert {first[0], second[0]} == {hashed(d, "ACC-4711"), ""}


def on_terminal(d, columns, *arguments):
    """Returns the output on a terminal."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    process = subprocess.Popen([BIN / "noctule", "--config", d.config, *arguments], stdout=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    with contextlib.suppress(OSError):  # EIO: the program has ended
        while piece := os.read(ours, 65536):
            text += piece
    os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", text.decode()).splitlines()


def test_lists_fit_the_terminal_and_report_further_rows(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    for number in (1, 2):
        drop(series(tmp_path / f"{number}", SeriesInstanceUID=f"1.2.{number}.{'3' * 40}"), d.inbox)
        wait_for(lambda count=number: len(rows(d)) == count, 90, "the series")
    wide = on_terminal(d, 400, "series")
    assert max(map(len, wide)) > 100 and all(f"1.2.{number}.{'3' * 40}" in "\n".join(wide) for number in (1, 2))
    for columns in (80, 100):
        narrow = on_terminal(d, columns, "series")
        assert len(narrow) == 3 and max(map(len, narrow)) <= columns, narrow
        assert "1.2.1." in narrow[2] and "…" in narrow[2] and narrow[0].endswith("SERIES")
        assert re.search(r" \d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", narrow[2])
    same = on_terminal(d, 100, "series", "--limit", "2")
    # Only parts of the lines, because a series may become complete meanwhile, which changes column widths.
    assert [line.split()[-1][:6] for line in same] == [line.split()[-1][:6] for line in narrow]
    *_, last, more = on_terminal(d, 90, "series", "--limit", "1")
    assert "1.2.2." in last and more.startswith("The list is cut")
    assert "The list is cut" not in d.ctl("series", "--limit", "1").stdout  # the output is no terminal
