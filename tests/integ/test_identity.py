"""Identity of results. The same input bytes give the same UIDs and output bytes on any machine, and other input gives
new UIDs. An object that replaces an earlier one refers to it. Objects with one UID and different bytes must never
be sent."""

import collections
import io
import pathlib
import shutil
import sqlite3
import subprocess

import highdicom
import numpy as np
import pydicom
import pytest
from conftest import BIN, Orthanc, debian_orthanc, phantom, put, storescp, storescu, wait_for
from objects import save, structure_set
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian
from test_again import change, change_pipeline, reload
from test_deliveries import destinations, objects, to_archive, to_folder
from test_grid import noctule, segment
from test_receive import NEWEST, corrected
from test_seg import dciodvfy_remarks
from test_sr import assert_dciodvfy_is_content

WRONG, RIGHT = {"PatientName": "Wrong^Patient", "PatientID": "W-1"}, {"PatientName": "Right^Patient", "PatientID": "R-1"}
ALL = """results = [ "seg", "sr", "pmap", "picture", "rtstruct" ]; texture = { regions = [ "segments", "volume" ]; first_order = true; patterns = [ "lbp" ]; };"""
KINDS = ("picture-overview.dcm", "picture.dcm", "pmap-lbp.dcm", "rtstruct.dcm", "seg.dcm", "sr.dcm")


def series(folder, **changes):
    files = phantom(folder / "plain", "--size", "32x32x6")
    return [corrected(path, folder / "in", AcquisitionDate="20250102", AcquisitionTime=f"0910{number:02}.25", **{**WRONG, **changes})
            for number, path in enumerate(files)]


def made_by_us(path):
    """Returns the UIDs that Noctule made for an object and its parts, without those of its sources."""
    found = set()

    def visit(dataset, element):
        tracking = element.keyword == "UID" and dataset.ConceptNameCodeSequence[0].CodeValue == "112040"
        if tracking or element.keyword in ("DimensionOrganizationUID", "TrackingUID"):
            found.add(element.value)

    dataset = pydicom.dcmread(path)
    dataset.walk(visit, recursive=True)
    found |= {dataset.SOPInstanceUID, dataset.SeriesInstanceUID}
    assert len(found) >= 2 and all(uid.startswith("2.25.") for uid in found)
    return found


def replaced_by(dataset):
    """Returns the SOP Instance UIDs that an object replaces, as its kind states them. Its references must list them
    too."""
    if dataset.Modality == "SR":
        studies = dataset.get("PredecessorDocumentsSequence", [])
        return [sop.ReferencedSOPInstanceUID for study in studies for one in study.ReferencedSeriesSequence
                for sop in one.ReferencedSOPSequence if sop.PurposeOfReferenceCodeSequence[0].CodeValue == "121360"]
    if dataset.Modality == "RTSTRUCT":
        return [sop.ReferencedSOPInstanceUID for sop in dataset.get("PredecessorStructureSetSequence", [])]
    found = [image.ReferencedSOPInstanceUID for image in dataset.get("ReferencedImageSequence", [])
             if image.PurposeOfReferenceCodeSequence[0].CodeValue == "REPLACED"]
    studies = [dataset, *dataset.get("StudiesContainingOtherReferencedInstancesSequence", [])]
    listed = {sop.ReferencedSOPInstanceUID for study in studies for one in study.ReferencedSeriesSequence
              for sop in one.ReferencedInstanceSequence}
    assert set(found) <= listed
    return found


def outbox(d, job):
    return {name: d.root / "outbox" / str(job) / name for name in KINDS}


def bytes_of(folder):
    return {name: (pathlib.Path(folder) / name).read_bytes() for name in KINDS}


def assert_uids_have_one_content(paths):
    """Checks that files with one SOP Instance UID have equal data sets."""
    contents = collections.defaultdict(set)
    for path in paths:
        dataset = pydicom.dcmread(path)
        contents[dataset.SOPInstanceUID].add(dataset.to_json())
    assert {len(each) for each in contents.values()} == {1}


def configuration(folder, **changes):
    settings = {"serial": "noctule-1", "high": "80.0", "more": ALL, **changes}
    path = folder / f"{abs(hash(tuple(settings.items())))}.conf"
    path.write_text("""
root = "%s"; device_serial_number = "%s";
pipelines = ( { name = "head-ct"; segments = ( { label = "Brain"; method = "level-set"; range = [ 0.0, %s ];
  shapes = ( { kind = "sphere"; center = { fraction = [ 0.5, 0.5, 0.5 ]; }; radius_mm = 30.0; } );
  category = { code = "123037004"; scheme = "SCT"; meaning = "Anatomical Structure"; };
  type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } );
  %s } );
""" % (folder / "nowhere", settings["serial"], settings["high"], settings["more"]))
    return path


def run(config, files, output, *more):
    done = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "head-ct", "-o", output, *more, *files],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Returns a series, and the results of noctule run for it."""
    folder = tmp_path_factory.mktemp("first")
    files = series(folder)
    return files, run(configuration(folder), files, folder / "out")


# --- same bytes ---


def test_the_service_and_its_retries_make_the_bytes_of_a_run(first, daemon, tmp_path):
    """The service makes the bytes of noctule run: by C-STORE (another file meta information), in another root, by
    retry, after a restart, and without the database."""
    files, out = first
    d = daemon(quiet=60.0, dicom=NEWEST, pipeline_extra=ALL + 'deliver = [ "OUT" ];',
               extra=destinations(to_folder(tmp_path / "folder"))).start()
    storescu(d.port, *files)
    d.wait_jobs()
    assert bytes_of(d.root / "outbox" / "1") == bytes_of(out)
    d.stop()
    d.start()
    d.ctl("retry", "--force", "1")
    d.wait_jobs(2)
    assert bytes_of(d.root / "outbox" / "2") == bytes_of(out)
    assert {(row["replaces"], row["replaced_by"]) for row in d.query("SELECT * FROM v_results")} == {("", "")}
    d.stop()
    for path in d.root.glob("noctule.db*"):
        path.unlink()
    shutil.rmtree(d.root / "outbox")
    d.start(arguments=["--new-database"])
    d.wait_jobs(1)
    assert bytes_of(d.root / "outbox" / "1") == bytes_of(out)
    wait_for(lambda: not d.query("SELECT 1 FROM v_deliveries WHERE state <> 'SENT'"), 60, "deliveries")
    assert not d.query("SELECT 1 FROM v_deliveries WHERE code <> ''")
    assert {path.read_bytes() for path in objects(tmp_path / "folder")} == set(bytes_of(out).values())


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRLittleEndian])
def test_the_encoding_of_the_source_does_not_count(first, tmp_path, syntax):
    files, out = first
    (tmp_path / "other").mkdir()
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.file_meta.TransferSyntaxUID = syntax
        dataset.file_meta.ImplementationVersionName = "ANOTHER"
        dataset.file_meta.SourceApplicationEntityTitle = "ELSEWHERE"
        dataset.save_as(tmp_path / "other" / path.name, implicit_vr=syntax.is_implicit_VR, little_endian=True)
    assert bytes_of(run(configuration(tmp_path), [tmp_path / "other"], tmp_path / "out")) == bytes_of(out)


def test_content_dates_follow_from_the_sources(first, tmp_path):
    """Content dates are the latest time that the source states, here that of the sixth image. No creation time is
    written. Without any date the content date is the epoch."""
    files, out = first
    bare = []
    for path in files:
        dataset = pydicom.dcmread(path)
        for keyword in [e.keyword for e in dataset if e.keyword.endswith(("Date", "Time", "DateTime"))]:
            delattr(dataset, keyword)
        (tmp_path / "bare").mkdir(exist_ok=True)
        dataset.save_as(tmp_path / "bare" / path.name)
        bare.append(tmp_path / "bare" / path.name)
    for folder, expected in ((out, ("20250102", "091005.250000")),
                             (run(configuration(tmp_path), bare, tmp_path / "out"), ("19700101", "000000.000000"))):
        for name in KINDS:
            dataset = pydicom.dcmread(folder / name)
            kind = "StructureSet" if name == "rtstruct.dcm" else "Content"
            assert (dataset[f"{kind}Date"].value, dataset[f"{kind}Time"].value) == expected
            assert (dataset.SeriesDate, dataset.SeriesTime) == expected
            assert "InstanceCreationDate" not in dataset and "InstanceCreationTime" not in dataset


# --- other bytes ---


def one_pixel(dataset):
    pixels = dataset.pixel_array.copy()
    pixels[0, 0] += 1  # in air, so that no mask and no histogram of a segment changes
    dataset.PixelData = pixels.tobytes()


CHANGES = {
    "one pixel": one_pixel,
    "patient": lambda dataset: setattr(dataset, "PatientName", "Another^Name"),
    "study": lambda dataset: setattr(dataset, "StudyDescription", "Other words"),
    "equipment": lambda dataset: setattr(dataset, "StationName", "CT2"),
    "date": lambda dataset: setattr(dataset, "ContentTime", "235959"),
    "private": lambda dataset: dataset.private_block(0x0011, "TEST", create=True).add_new(1, "LO", "x"),
}


@pytest.mark.parametrize("change_one", CHANGES.values(), ids=CHANGES)
def test_a_changed_image_gives_new_uids(first, tmp_path, change_one):
    files, out = first
    shutil.copytree(files[0].parent, tmp_path / "in")
    for file in files if change_one is CHANGES["patient"] else files[2:3]:  # one for the series
        dataset = pydicom.dcmread(file)
        change_one(dataset)
        dataset.save_as(tmp_path / "in" / file.name)
    other = run(configuration(tmp_path), [tmp_path / "in"], tmp_path / "out")
    for name in KINDS:
        assert made_by_us(out / name).isdisjoint(made_by_us(other / name)), name


@pytest.mark.parametrize("settings", [{"high": "80.5"}, {"serial": "noctule-2"}, {"more": ALL + "min_slices = 4;"}], ids=str)
def test_another_pipeline_or_device_gives_new_uids(first, tmp_path, settings):
    files, out = first
    other = run(configuration(tmp_path, **settings), files, tmp_path / "out")
    for name in KINDS:
        assert made_by_us(out / name).isdisjoint(made_by_us(other / name)), name


def test_a_source_without_frame_of_reference(tmp_path):
    """All results of the images have the same generated Frame of Reference UID, and other images get another one."""
    frames = []
    for name, changes in ("a", {}), ("b", {}), ("c", RIGHT):
        files = series(tmp_path / name, **changes)
        for path in files:
            dataset = pydicom.dcmread(path)
            del dataset.FrameOfReferenceUID
            dataset.save_as(path)
        out = run(configuration(tmp_path, high=f"8{len(frames)}.0"), files, tmp_path / f"out-{name}")
        frames.append({pydicom.dcmread(out / kind).FrameOfReferenceUID for kind in ("seg.dcm", "pmap-lbp.dcm")})
    assert frames[0] == frames[1] and len(frames[0]) == 1 and frames[0].isdisjoint(frames[2])


def test_a_changed_annotation_object_gives_new_uids(tmp_path):
    """An RTSTRUCT with the same UID and contours, and another description, gives new UIDs. An equal RTSTRUCT gives
    the same bytes."""
    files = series(tmp_path)
    drawn = structure_set(files)
    config = tmp_path / "drawn.conf"
    config.write_text('root = "%s"; pipelines = ( { name = "head-ct"; segments = ( { label = "GTV"; method = "object"; object = '
                      '{ kind = "rtstruct"; roi = "*"; }; type = { code = "86049000"; scheme = "SCT"; meaning = "Neoplasm, '
                      'Primary"; }; } ); } );' % (tmp_path / "nowhere"))
    made = []
    for number in range(3):
        if number == 2:
            drawn.StructureSetDescription = "Reviewed"
        rtstruct = save(drawn, tmp_path / f"rs{number}.dcm")
        made.append(run(config, files, tmp_path / f"out{number}", "--object", rtstruct) / "seg.dcm")
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made_by_us(made[0]).isdisjoint(made_by_us(made[2]))
    assert np.array_equal(pydicom.dcmread(made[0]).pixel_array, pydicom.dcmread(made[2]).pixel_array)


# --- replacement of earlier objects ---


@pytest.mark.parametrize("study", ["same study", "another study"])
def test_a_corrected_patient(first, daemon, tmp_path, study):
    """The images arrive again with another name and ID. The objects of the wrong patient are in three destinations:
    an archive that keeps the first object (Orthanc's default), an archive that keeps all, and a folder. The
    corrected objects are new, refer to the earlier ones, and are sent to each destination."""
    files, _ = first
    changes = {**RIGHT, **({"StudyInstanceUID": "1.2.826.0.1.99"} if study != "same study" else {})}
    better = [corrected(path, tmp_path / "better", **changes) for path in files]
    archive = Orthanc(tmp_path / "orthanc", {"Plugins": [], "DicomAlwaysAllowStore": True}, debian_orthanc()).start()
    assert not debian_orthanc().get("OverwriteInstances")
    try:
        with storescp(tmp_path / "archive", ["--unique-filenames"]) as keeper:
            d = daemon(quiet=60.0, dicom=NEWEST, pipeline_extra=ALL + 'deliver = [ "ORTHANC", "KEEPER", "OUT" ];',
                       extra=destinations(to_archive(archive.port, "ORTHANC", "ORTHANC"), to_archive(keeper.port, "KEEPER"),
                                          to_folder(tmp_path / "out"))).start()

            def all_sent(count):
                rows = d.query("SELECT * FROM v_deliveries")
                assert not [row["code"] for row in rows if row["code"]], [dict(row) for row in rows]
                return len(rows) == count and all(row["state"] == "SENT" for row in rows)

            for sent, count in (files, 3 * len(KINDS)), (better, 6 * len(KINDS)):
                storescu(d.port, *sent)
                wait_for(lambda: all_sent(count), 90, f"{count} deliveries")
            held = [pydicom.dcmread(io.BytesIO(archive.file(each))) for each in archive.instances()]
            kept = [pydicom.dcmread(path) for path in keeper.files()]
            there = [pydicom.dcmread(path) for path in objects(tmp_path / "out")]
            old, new = outbox(d, 1), outbox(d, 2)
            for name in KINDS:
                assert made_by_us(old[name]).isdisjoint(made_by_us(new[name]))
                assert (pydicom.dcmread(old[name]).PatientID, pydicom.dcmread(new[name]).PatientID) == ("W-1", "R-1")
                before, after = pydicom.dcmread(old[name]), pydicom.dcmread(new[name])
                assert replaced_by(before) == [] and replaced_by(after) == [before.SOPInstanceUID]
                for place in held, kept, there:
                    assert [each for each in place if each.SOPInstanceUID == after.SOPInstanceUID] == [after]
                    assert [each for each in place if each.SOPInstanceUID == before.SOPInstanceUID] == [before]
            for place in held, kept, there:
                assert len(place) == 2 * len(KINDS) and {each.PatientID for each in place} == {"W-1", "R-1"}
            # The database shows both, and other validators report no error.
            rows = d.query("SELECT * FROM v_results WHERE sop_instance_uid <> '' ORDER BY job, path")
            assert [(row["replaces"], row["replaced_by"]) for row in rows[:len(KINDS)]] == [("", row["sop_instance_uid"]) for row in rows[len(KINDS):]]
            assert [(row["replaces"], row["replaced_by"]) for row in rows[len(KINDS):]] == [(row["sop_instance_uid"], "") for row in rows[:len(KINDS)]]
            for name in KINDS:
                if name.startswith("picture"):
                    assert not [remark for remark in dciodvfy_remarks(new[name]) if remark.startswith("Error")]
                else:
                    assert_dciodvfy_is_content(new[name])
            assert highdicom.seg.segread(new["seg.dcm"]).number_of_segments == 1
            assert highdicom.sr.srread(new["sr.dcm"]).PatientID == "R-1"
    finally:
        archive.stop()


def test_back_to_the_first_bytes(first, daemon, tmp_path):
    """Wrong, right, wrong again: three objects, each of which refers to the one before. A repeated job makes its own
    object again."""
    files, _ = first
    better = [corrected(path, tmp_path / "better", **RIGHT) for path in files]
    d = daemon(quiet=60.0, dicom=NEWEST, pipeline_extra=ALL).start()
    for count, sent in enumerate((files, better, files), 1):
        storescu(d.port, *sent)
        d.wait_jobs(count)
    d.ctl("retry", "--force", "3")
    d.wait_jobs(4)
    assert bytes_of(d.root / "outbox" / "4") == bytes_of(d.root / "outbox" / "3")
    for name in KINDS:
        made = [pydicom.dcmread(outbox(d, job)[name]) for job in (1, 2, 3)]
        assert [replaced_by(each) for each in made] == [[], [made[0].SOPInstanceUID], [made[1].SOPInstanceUID]]
        assert len({each.SOPInstanceUID for each in made}) == 3
    assert_uids_have_one_content(path for job in (1, 2, 3, 4) for path in outbox(d, job).values())


def test_a_changed_pipeline_replaces_its_results(first, daemon, tmp_path):
    files, _ = first
    d = daemon(quiet=60.0, pipeline_extra=ALL).start()
    put(files, d.inbox / "a")
    d.wait_jobs()
    change_pipeline(d)
    d.ctl("retry", "--current", "1")
    d.wait_jobs(2)
    for name in KINDS:
        before, after = (pydicom.dcmread(outbox(d, job)[name]) for job in (1, 2))
        assert replaced_by(after) == [before.SOPInstanceUID] != [after.SOPInstanceUID]


def listed(report, key):
    return [(sop.ReferencedSOPClassUID, sop.ReferencedSOPInstanceUID) for study in report[key].value
            for one in study.ReferencedSeriesSequence for sop in one.ReferencedSOPSequence]


def test_a_report_of_another_class_replaces_the_report(first, daemon, tmp_path):
    """The root of the results refers to all other objects of its job. It replaces an Enhanced SR, and is replaced by
    one, with the class of the replaced report."""
    files, _ = first
    d = daemon(quiet=60.0, pipeline_extra=ALL + 'sr_class = "enhanced";').start()
    put(files, d.inbox / "a")
    d.wait_jobs()
    classes = ('"enhanced"', '"comprehensive-3d"')
    for job in 2, 3:
        change(d, *(f"sr_class = {name}" for name in classes))
        reload(d)
        d.ctl("retry", "--current", str(job - 1))
        d.wait_jobs(job)
        classes = classes[::-1]
    enhanced, root, again = ({name: pydicom.dcmread(path) for name, path in outbox(d, job).items()} for job in (1, 2, 3))
    assert [each["sr.dcm"].SOPClassUID[-2:] for each in (enhanced, root, again)] == ["22", "34", "22"]
    for before, after in (enhanced, root), (root, again):
        assert listed(after["sr.dcm"], "PredecessorDocumentsSequence") == [
            (before["sr.dcm"].SOPClassUID, before["sr.dcm"].SOPInstanceUID)]
    expected = {(one.SOPClassUID, one.SOPInstanceUID) for one in map(pydicom.dcmread, files)} | {
        (root[name].SOPClassUID, root[name].SOPInstanceUID) for name in KINDS if name != "sr.dcm"}
    evidence = listed(root["sr.dcm"], "CurrentRequestedProcedureEvidenceSequence")
    assert set(evidence) == expected and len(evidence) == len(expected)
    assert_dciodvfy_is_content(outbox(d, 2)["sr.dcm"])
    rows = d.query("SELECT job, kind FROM v_results ORDER BY job, kind")
    assert [row["kind"] for row in rows] == ["picture", "picture", "pmap", "rtstruct", "seg", "sr"] * 3


def test_the_root_of_a_job_that_measures_nothing(tmp_path):
    """It lists the segmentation, and each segment with its finding."""
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    segments = [segment(0, 80, 20, label=label) for label in ("A", "B")]
    output, _ = noctule(tmp_path, files, *segments, options='results = [ "seg", "sr" ]; sr_class = "comprehensive-3d";')
    seg, report = (pydicom.dcmread(output / name) for name in ("seg.dcm", "sr.dcm"))
    evidence = listed(report, "CurrentRequestedProcedureEvidenceSequence")
    assert len(evidence) == 7 and evidence.count((seg.SOPClassUID, seg.SOPInstanceUID)) == 1
    assert_dciodvfy_is_content(output / "sr.dcm")
    content = highdicom.sr.Comprehensive3DSR.from_dataset(report).content
    groups = content.get_volumetric_roi_measurement_groups()
    assert [group.tracking_uid for group in groups] == [item.TrackingUID for item in seg.SegmentSequence]
    assert all(group.get_measurements() == [] and group.finding_type.value == "12738006" for group in groups)


def test_a_crash_does_not_change_the_replaced_object(first, daemon, tmp_path):
    """The second job dies before its end is recorded, and runs again after the restart."""
    files, _ = first
    better = [corrected(path, tmp_path / "better", **RIGHT) for path in files]
    d = daemon(quiet=60.0, dicom=NEWEST, pipeline_extra=ALL).start()
    storescu(d.port, *files)
    d.wait_jobs()
    d.stop()
    d.environment["NOCTULE_CRASH_AT"] = "daemon_after_done_before_commit"
    d.start()
    storescu(d.port, *better)
    d.process.wait(60)
    before = bytes_of(d.root / "outbox" / "2")
    shutil.rmtree(d.root / "outbox" / "2")
    del d.environment["NOCTULE_CRASH_AT"]
    d.start()
    d.wait_jobs(2)
    assert bytes_of(d.root / "outbox" / "2") == before
    assert replaced_by(pydicom.dcmread(outbox(d, 2)["seg.dcm"])) == [pydicom.dcmread(outbox(d, 1)["seg.dcm"]).SOPInstanceUID]


def test_results_of_an_earlier_version_are_replaced(first, daemon, tmp_path):
    """The UIDs of an earlier version do not follow from a digest. A retry with the same settings makes a new object
    that refers to the old one."""
    files, _ = first
    d = daemon(quiet=60.0, pipeline_extra=ALL).start()
    put(files, d.inbox / "a")
    d.wait_jobs()
    d.stop()
    with sqlite3.connect(d.root / "noctule.db") as database:
        database.execute("UPDATE result SET sop_instance_uid = '2.25.1' WHERE kind = 'seg'")
    d.start()
    d.ctl("retry", "--force", "1")
    d.wait_jobs(2)
    made = pydicom.dcmread(outbox(d, 2)["seg.dcm"])
    assert replaced_by(made) == ["2.25.1"] and made.SOPInstanceUID != "2.25.1"
