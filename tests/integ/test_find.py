"""What a series is found by: study, patient and scanner in the database, and what stands for the patient there."""

import hashlib
import hmac
import stat

import pydicom
import pytest
from conftest import PEERS, drop, phantom, storescu, wait_for

ABOUT = {"AccessionNumber": "ACC-4711", "PatientID": "PAT-0815", "StudyDate": "20260131", "StudyDescription": "Schädel nativ",
         "Manufacturer": "Acme", "ManufacturerModelName": "Ring 9", "StationName": "CT2", "InstitutionName": "St. Elsewhere"}
COLUMNS = ("accession_number", "patient_id", "study_date", "study_description", "manufacturer", "model", "station", "institution")


def series(folder, **about):
    files = phantom(folder, "--size", "16x16x2")
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
def test_who_the_patient_is_stands_there_as_the_site_wants(daemon, tmp_path, how):
    files = series(tmp_path / "series")
    d = daemon(quiet=600.0, dicom=PEERS, extra="" if how == "hashed" else f'identifiers = "{how}";').start()
    storescu(d.port, *files)
    ((*identifiers, date, description, manufacturer, model, station, institution),) = rows(d)
    assert [date, description, manufacturer, model, station, institution] == list(ABOUT.values())[2:]
    assert identifiers == {"none": ["", ""], "plain": ["ACC-4711", "PAT-0815"],
                           "hashed": how == "hashed" and [hashed(d, "ACC-4711"), hashed(d, "PAT-0815")]}[how]
    assert d.stop() == 0
    database = b"".join(path.read_bytes() for path in d.root.glob("noctule.db*"))
    assert (b"PAT-0815" in database) == (how == "plain") == (b"ACC-4711" in database)
    assert "PAT-0815" not in d.log.read_text() and "ACC-4711" not in d.log.read_text()


def test_the_same_patient_is_the_same_word_after_a_restart(daemon, tmp_path):
    d = daemon(quiet=600.0).start()
    drop(series(tmp_path / "one"), d.inbox)
    wait_for(lambda: len(rows(d)) == 1, 20, "the first series")
    assert d.stop() == 0
    key = d.root / "identifier.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and len(key.read_bytes()) == 32
    d.start()
    drop(series(tmp_path / "two", SeriesInstanceUID="1.2.3", AccessionNumber=""), d.inbox)
    wait_for(lambda: len(rows(d)) == 2, 20, "the second series")
    first, second = rows(d)
    assert first[1] == second[1] == hashed(d, "PAT-0815")
    assert {first[0], second[0]} == {hashed(d, "ACC-4711"), ""}
