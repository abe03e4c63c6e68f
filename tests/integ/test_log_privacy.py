"""No line of the log at any level below debug names a patient, whatever goes well or wrong."""

import os
import re

import pydicom
from conftest import PEERS, drop, free_port, phantom, storescu, wait_for
from test_deliveries import QUICK, to_archive, to_folder

MARK = "Zzyzx"
PATIENT = {"PatientName": f"{MARK}^Anna", "PatientID": f"{MARK}4711", "PatientBirthDate": "19010203",
           "AccessionNumber": f"{MARK}99", "OtherPatientIDs": f"{MARK}-other", "PatientComments": f"{MARK} was here",
           "ReferringPhysicianName": f"{MARK}^Doctor", "StudyDescription": f"{MARK} study",
           "SeriesDescription": f"{MARK} series", "InstitutionName": f"{MARK} hospital"}
SIGNS = re.compile(rf"{MARK}|19010203", re.IGNORECASE)


def marked(folder, *arguments, **changes):
    files = phantom(folder, *arguments)
    for file in files:
        dataset = pydicom.dcmread(file)
        for name, value in {**PATIENT, **changes}.items():
            setattr(dataset, name, value)
        dataset.save_as(file)
    return [file.rename(file.with_name(f"{MARK}_{file.name}")) for file in files]


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
    mixed = marked(tmp_path / "mixed", "--size", "16x16x4", "--seed", "3")
    pydicom.dcmread(mixed[1]).save_as(mixed[1])
    dataset = pydicom.dcmread(mixed[2])
    dataset.PatientID = f"{MARK}4712"
    dataset.save_as(mixed[2])
    drop(mixed, folder)

    d.wait_jobs()
    wait_for(lambda: len(d.query("SELECT 1 FROM v_series WHERE state = 'REFUSED'")) == 2, 40, "two refused series")
    wait_for(lambda: d.query("SELECT 1 FROM v_deliveries WHERE destination = 'DOWN' AND attempts > 1"), 40, "attempts")
    uid = d.query("SELECT series_uid FROM v_series WHERE code = 'INCOMPLETE_SERIES'")[0][0]
    d.ctl("complete", "--accept-missing", uid)
    d.ctl("retry", "1", check=False)  # refused while its result is being sent
    d.wait_jobs()
    (spooled,) = d.query("SELECT path FROM v_instances LIMIT 1")
    assert d.stop() == 0
    (d.root / spooled[0]).unlink()  # told as missing by the next start
    d.start()
    wait_for(lambda: "file.missing" in d.log.read_text(), 20, "the missing file's line")
    assert d.stop() == 0

    text = d.log.read_text()
    assert "level=debug" not in text
    for event in ("association.rejected", "file.quarantined", "delivery.ended", "job.", "inbox.skipped", "control.complete"):
        assert f"event={event}" in text, event
    named = [line for line in text.splitlines() if SIGNS.search(line)]
    assert not named, named[:5]
    assert any(SIGNS.search(str(tuple(row))) for row in d.query("SELECT * FROM v_quarantine")), "the marks were there"
