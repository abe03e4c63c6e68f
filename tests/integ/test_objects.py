"""Annotation objects: received like images by inbox and C-STORE, linked to their series, without a job of their own."""

import contextlib
import copy
import json

import pydicom
import pytest
from conftest import PEERS, Clock, drop, phantom, storescu, wait_for
from objects import report, save, segmentation, send, structure_set
from test_retention import files_below, keep

DUPLICATE, NO_CLASS, MISMATCH = 0x0111, 0x0122, 0xA900


@pytest.fixture
def files(tmp_path):
    return phantom(tmp_path / "images", "--size", "32x32x6")


def objects(d, where="1"):
    return [dict(row) for row in d.query(f"SELECT * FROM v_objects WHERE {where} ORDER BY received_at, path")]


def stored(d, ds):
    """Checks that the stored bytes are those of the data set that was sent."""
    (row,) = objects(d, f"sop_instance_uid = '{ds.SOPInstanceUID}'")
    return pydicom.dcmread(d.root / row["path"]) == pydicom.dcmread(save(ds, d.folder / "sent.dcm"))


def drop_object(d, ds, name="object.dcm"):
    save(ds, d.inbox / f"{name}.part").rename(d.inbox / name)


@pytest.mark.parametrize("first", ["the object", "the series"])
@pytest.mark.parametrize("way", ["inbox", "network"])
def test_an_object_is_linked_to_its_series_in_either_order(daemon, files, way, first):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    plan = structure_set(files)

    def give():
        if way == "inbox":
            drop_object(d, plan)
        else:
            assert send(d.port, plan) == [0]
        wait_for(lambda: objects(d), 60, "the object")

    if first == "the object":
        give()
        assert objects(d)[0]["series_uid"] is None and not d.jobs()
    storescu(d.port, *files)
    (job,) = d.wait_jobs()
    if first == "the series":
        give()
    (row,) = objects(d)
    assert (row["kind"], row["label"], row["series_uid"]) == ("rtstruct", "Plan", job["series_uid"])
    assert row["sender"] == ("" if way == "inbox" else "PYNETDICOM")
    assert row["object_series_uid"] == plan.SeriesInstanceUID and stored(d, plan)
    assert [job["state"] for job in d.jobs()] == ["DONE"]
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["state"], series["revision"], series["instances"]) == ("SETTLED", 1, 6)


def test_segmentations_reports_and_objects_without_a_series(daemon, files):
    d = daemon(dicom=PEERS, quiet=600.0).start()
    seg, first, plan = segmentation(files), report(files), structure_set(files, of_series=None)
    assert send(d.port, seg, first, plan, report(files, predecessor=first)) == [0] * 4
    storescu(d.port, *files)
    rows = objects(d)
    assert {row["series_uid"] for row in rows} == {pydicom.dcmread(files[0]).SeriesInstanceUID}
    assert sorted(row["kind"] for row in rows) == ["rtstruct", "seg", "sr", "sr"]
    assert [row["label"] for row in rows if row["kind"] == "seg"][0].endswith("Liver")
    assert [row["sop_instance_uid"] for row in rows if row["superseded_by"]] == [first.SOPInstanceUID]
    assert stored(d, seg)


def test_repeated_changed_and_new_versions(daemon, files, tmp_path):
    """A repeated object has no effect. Another data set under its UID is refused. A new version replaces the object."""
    d = daemon(dicom=PEERS, quiet=600.0, after="delete").start()
    plan = structure_set(files)
    assert send(d.port, plan, plan) == [0, 0]
    drop_object(d, plan)
    wait_for(lambda: not list(d.inbox.iterdir()), 60, "an empty inbox")
    other = structure_set(files, roi="OTHER", series=plan.SeriesInstanceUID, sop=plan.SOPInstanceUID)
    assert send(d.port, other) == [DUPLICATE]
    assert len(objects(d)) == 1 and stored(d, plan)
    late = structure_set(files, made="20260301")
    early = structure_set(files, made="20251231")
    assert send(d.port, late, early) == [0, 0]
    current = objects(d, "superseded_by IS NULL")
    assert [row["sop_instance_uid"] for row in current] == [late.SOPInstanceUID]


def known_at_start(d, count):
    """Returns the number of inbox files that were known at the last start of the daemon."""
    line = f"event=inbox.swept inbox={d.inbox} known={count} "
    wait_for(lambda: line in d.log.read_text().split("daemon.started")[-1], 60, "a sweep")


def test_kept_inbox_files_are_not_read_again(daemon, files):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    drop(files, d.inbox)
    drop_object(d, structure_set(files), "plan.dcm")
    drop_object(d, segmentation(files), "seg.dcm")
    (job,) = d.wait_jobs()
    wait_for(lambda: len(objects(d)) == 2, 60, "the objects")
    d.stop()
    d.start()
    known_at_start(d, len(files) + 2)
    d.ctl("purge", "--yes", job["series_uid"])  # and must not return
    d.stop()
    d.start()
    known_at_start(d, len(files) + 2)
    assert not objects(d, "removed_at IS NULL")
    (d.inbox / "plan.dcm").touch()  # except after a change of the file
    wait_for(lambda: [row["kind"] for row in objects(d, "removed_at IS NULL")] == ["rtstruct"], 60, "the object")


def test_a_bad_object_does_not_affect_others(daemon, files):
    d = daemon(dicom=PEERS, quiet=600.0, after="delete").start()
    nothing = structure_set(files, of_series=None)
    nothing.ReferencedFrameOfReferenceSequence = []
    nothing.StructureSetROISequence = nothing.ROIContourSequence = []
    ours = segmentation(files)
    ours.Manufacturer, ours.ManufacturerModelName = "Noctule", "noctuled"
    assert send(d.port, nothing, ours, structure_set(files)) == [MISMATCH, NO_CLASS, 0]
    seg = save(segmentation(files), d.folder / "seg.dcm").read_bytes()
    (d.inbox / "cut.dcm").write_bytes(seg[:-100])
    (d.inbox / "noise.dcm").write_bytes(seg[:400] + bytes(range(256)) * 8)
    drop_object(d, segmentation(files), "good.dcm")
    wait_for(lambda: not list(d.inbox.iterdir()), 60, "an empty inbox")
    codes = {row["code"] for row in d.query("SELECT code FROM v_quarantine")}
    assert {"TAG_MISSING", "FILE_TRUNCATED"} <= codes and len(d.query("SELECT 1 FROM v_quarantine")) == 3
    assert sorted(row["kind"] for row in objects(d)) == ["rtstruct", "seg"]
    assert len(d.children("intake")) == 1


POINTS = ["receive_after_rename_before_arrived", "receive_after_arrived_before_seal",
          "receive_after_stored_before_answer", "intake_after_arrived"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at(daemon, tmp_path, files, point):
    """An acknowledged object is stored. An object without acknowledgement is stored, or is sent again."""
    once = tmp_path / "crashed"
    d = daemon(dicom=PEERS, quiet=600.0, environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)})
    plan = structure_set(files)
    d.start()

    def acknowledged():
        if d.process.poll() is not None:
            d.start()
        with contextlib.suppress(AssertionError, RuntimeError, OSError, AttributeError):
            return send(d.port, plan) == [0]

    wait_for(acknowledged, 60, "the acknowledgement")
    assert once.exists()
    assert len(objects(d)) == 1 and stored(d, plan)
    d.kill_all()
    d.start()
    assert len(objects(d)) == 1 and stored(d, plan)


def test_a_file_without_a_row_is_taken_in_at_start(daemon, files):
    d = daemon(dicom=PEERS, quiet=600.0).start()
    plan = structure_set(files)
    folder = d.root / "series" / plan.SeriesInstanceUID
    d.kill_all()
    folder.mkdir(parents=True)
    save(plan, folder / f"{plan.SOPInstanceUID}.dcm")
    d.start()
    wait_for(lambda: objects(d), 60, "the object")
    assert objects(d)[0]["source"] == "recovered"
    d.stop()
    (folder / f"{plan.SOPInstanceUID}.dcm").unlink()
    d.start()
    wait_for(lambda: objects(d, "missing"), 60, "the report of the missing file")
    assert send(d.port, plan) == [0]
    assert not objects(d, "missing") and stored(d, plan)


def test_an_object_is_removed_with_its_series_and_by_purge(daemon, files, tmp_path):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    plan, stray = structure_set(files), structure_set(phantom(tmp_path / "other", "--size", "32x32x6", "--seed", "9"))
    assert send(d.port, plan, stray) == [0, 0]
    storescu(d.port, *files)
    (job,) = d.wait_jobs()
    d.ctl("purge", "--yes", job["series_uid"])
    wait_for(lambda: not d.query("SELECT 1 FROM removal") and len(files_below(d)) == 1, 60, "the end of the files")
    assert files_below(d) == [f"series/{stray.SeriesInstanceUID}/{stray.SOPInstanceUID}.dcm"]
    keep(d, "series_days = 1e-8; min_days = 0.0;")
    wait_for(lambda: not files_below(d), 60, "the end of the stray")
    assert send(d.port, plan) == [0]
    assert len(objects(d, "removed_at IS NULL")) == 1


def test_purge_removes_objects_without_a_series(daemon, files, tmp_path):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    patient = pydicom.dcmread(files[0]).PatientID
    plan = structure_set(files)
    stray = structure_set(phantom(tmp_path / "stray", "--size", "32x32x6", "--seed", "9"))
    other = structure_set(phantom(tmp_path / "other", "--size", "32x32x6", "--seed", "10"))
    stray.PatientID, other.PatientID = patient, "SOMEBODY"
    assert send(d.port, plan, stray, other) == [0, 0, 0]
    storescu(d.port, *files)
    (job,) = d.wait_jobs()
    told = d.ctl("purge", "--patient", patient, "--dry-run").stdout
    assert f"series {job['series_uid']}: 6 images, 1 object, " in told
    assert f"series {stray.SeriesInstanceUID}: 0 images, 1 object, " in told and len(told.splitlines()) == 2
    would = json.loads(d.ctl("purge", "--patient", patient, "--dry-run", "--json").stdout)
    assert [(row["images"], row["objects"], row["removed"]) for row in would] == [(6, 1, False), (0, 1, False)]
    assert len(objects(d, "removed_at IS NULL")) == 3
    done = json.loads(d.ctl("purge", "--patient", patient, "--yes", "--json").stdout)
    assert [row["removed"] for row in done] == [True, True]
    assert [row["sop_instance_uid"] for row in objects(d, "removed_at IS NULL")] == [other.SOPInstanceUID]
    wait_for(lambda: not d.query("SELECT 1 FROM removal"), 60, "the end of the files")
    assert files_below(d) == [f"series/{other.SeriesInstanceUID}/{other.SOPInstanceUID}.dcm"]
    assert d.ctl("purge", "--patient", patient, "--yes").stdout == "no matching series\n"
    assert f"series {other.SeriesInstanceUID}: 0 images, 1 object, " in d.ctl("purge", "--before", "2100", "--yes").stdout
    assert not objects(d, "removed_at IS NULL")


def test_a_killed_purge_continues(daemon, files):
    d = daemon(dicom=PEERS, quiet=60.0).start()
    plans = [structure_set(files, label=str(number)) for number in range(40)]
    for plan in plans:
        plan.SeriesInstanceUID = plans[0].SeriesInstanceUID
    assert set(send(d.port, *plans)) == {0}
    d.ctl("purge", "--yes", plans[0].SeriesInstanceUID)
    d.kill_all()
    assert len(objects(d, "removed_at IS NOT NULL")) == 40
    assert all(path.startswith("removed/") for path in files_below(d))
    d.start()
    wait_for(lambda: not d.query("SELECT 1 FROM removal") and not list((d.root / "removed").iterdir()), 60, "the rest")
    assert send(d.port, plans[0]) == [0] and len(objects(d, "removed_at IS NULL")) == 1


# ---- pipelines that name an annotation object ----

PIPELINE = """
root = "{root}";
inbox = ( {{ path = "inbox"; after = "keep"; settle_seconds = 0.3; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 60.0; complete_seconds = 0.3; patience_seconds = 60.0; }};
min_free_mib = 1;
log_level = "debug";
pipelines = (
  {{ name = "gtv"; patience_seconds = {patience}; {measured}
    segments = ( {{ label = "GTV"; method = "object"; object = {{ {wanted} {sender} }};
                   type = {{ code = "M-01000"; scheme = "SRT"; meaning = "Lesion"; }}; }} ); }},
  {{ name = "head-ct";
    segments = (
      {{ label = "Brain"; method = "level-set"; range = [ 0.0, 80.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 10.0; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "{rule}"; }},
          {{ match = {{ modality = "CT"; }}; pipeline = "head-ct"; }} );
"""


def naming(daemon, tmp_path, sender="", patience=86400.0, wanted='kind = "rtstruct"; roi = "GTV*";', rule="gtv", measured="",
           environment=None):
    root = tmp_path / f"daemon{len(list(tmp_path.glob('daemon*')))}" / "root"
    return daemon(settings=PIPELINE.format(root=root, patience=patience, sender=sender, wanted=wanted, rule=rule,
                                           measured=measured),
                  environment=environment,
                  dicom='peers = ( { ae_title = "STORESCU"; }, { ae_title = "PYNETDICOM"; }, { ae_title = "TPS"; } );'
                  ).start()


def gtv(d, *states):
    """Returns the newest job as soon as it is in one of these states."""
    def newest():
        rows = [row for row in d.jobs() if row["pipeline"] == "gtv" and row["superseded_by"] is None]
        return rows[-1] if rows and rows[-1]["state"] in states else None
    return wait_for(newest, 60, f"a job in {states}")


def voxels(d, job):
    """Returns the number of voxels in the segmentation of a job."""
    (row,) = d.query("SELECT path FROM v_results WHERE job = ? AND kind = 'seg'", job["job"])
    return int(pydicom.dcmread(d.root / row["path"]).pixel_array.sum())


@pytest.mark.parametrize("first", ["the object", "the series"])
def test_a_job_waits_for_its_named_object(daemon, files, tmp_path, first):
    d = naming(daemon, tmp_path)
    plan = structure_set(files)
    if first == "the object":
        assert send(d.port, plan) == [0]
    storescu(d.port, *files)
    if first == "the series":
        job = gtv(d, "DELAYED")
        assert job["code"] == "OBJECT_WAITING" and "structure set" in job["message"], dict(job)
        assert "for annotation objects of the series" in d.ctl("status", check=False).stdout
        assert d.wait_jobs()[0]["pipeline"] == "head-ct"  # the other pipeline does not wait
        d.kill_all()
        d.start()
        assert gtv(d, "DELAYED")["job"] == job["job"]
        assert send(d.port, segmentation(files)) == [0]  # of another kind
        assert gtv(d, "DELAYED")["job"] == job["job"]
        assert send(d.port, plan) == [0]
    job = gtv(d, "DONE", "FAILED")
    assert (job["state"], job["revision"]) == ("DONE", 1), job["message"]
    assert voxels(d, job) > 0
    assert len(d.jobs()) == 2


def test_a_new_version_makes_a_new_revision_and_a_new_job(daemon, files, tmp_path):
    d = naming(daemon, tmp_path)
    assert send(d.port, structure_set(files)) == [0]
    storescu(d.port, *files)
    before = gtv(d, "DONE")
    # neither of them matches
    assert send(d.port, segmentation(files), structure_set(files, made="20250101")) == [0, 0]
    assert send(d.port, structure_set(files[:3], made="20260301")) == [0]
    after = wait_for(lambda: (job := gtv(d, "DONE"))["revision"] == 2 and job, 60, "the new job")
    assert voxels(d, after) == voxels(d, before) // 2
    (series,) = d.query("SELECT * FROM v_series")
    assert (series["state"], series["revision"]) == ("SETTLED", 2)
    results = {row["sop_instance_uid"] for row in d.query("SELECT * FROM v_results WHERE pipeline = 'gtv'")}
    assert len(results) == 2


def test_a_job_runs_without_an_optional_object(daemon, files, tmp_path):
    """An optional object: after the wait the job runs with an empty segment. It runs again when the object arrives."""
    wanted = 'kind = "rtstruct"; roi = "GTV*"; optional = true;'
    clock = Clock(tmp_path)
    d = naming(daemon, tmp_path, wanted=wanted, patience=600.0, environment=clock.environment)
    storescu(d.port, *files)
    job = gtv(d, "DELAYED")
    assert job["code"] == "OBJECT_OPTIONAL" and job["message"].endswith("If none comes, it runs without."), dict(job)
    assert "Waits       1 job for optional annotation objects" in d.ctl("status", check=False).stdout
    clock.pass_time(601)
    job = gtv(d, "EMPTY", "FAILED")
    assert (job["state"], job["attempts"]) == ("EMPTY", 1)
    assert 'segment "GTV" is a region of an RT Structure Set, and the job has none.' in job["message"]
    assert send(d.port, structure_set(files)) == [0]
    job = gtv(d, "DONE")
    assert job["revision"] == 2 and voxels(d, job) > 0


def test_patience_ends_with_a_refusal_by_name(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, patience=0.5)
    storescu(d.port, *files)
    job = gtv(d, "FAILED")
    assert job["code"] == "OBJECT_MISSING" and job["attempts"] == 0
    assert send(d.port, structure_set(files)) == [0]
    job = gtv(d, "DONE")
    assert job["revision"] == 2


def test_objects_of_other_senders_are_ignored(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, sender='from_ae = "TPS";')
    storescu(d.port, *files)
    assert "from TPS" in gtv(d, "DELAYED")["message"]
    plan = structure_set(files)
    assert send(d.port, plan, structure_set(files, label="Other")) == [0, 0]
    drop_object(d, structure_set(files, label="Dropped"))
    wait_for(lambda: len(objects(d)) == 3, 60, "the objects")
    assert gtv(d, "DELAYED")
    mine = structure_set(files, label="Mine")
    assert send(d.port, mine, calling="TPS") == [0]
    assert gtv(d, "DONE", "FAILED")["state"] == "DONE"
    assert len(objects(d, "superseded_by IS NULL")) == 4


def test_an_object_without_the_region_is_refused_by_name(daemon, files, tmp_path):
    d = naming(daemon, tmp_path)
    assert send(d.port, structure_set(files, roi="Heart")) == [0]
    storescu(d.port, *files)
    assert gtv(d, "FAILED")["code"] == "ROI_NOT_FOUND"
    assert {job["pipeline"] for job in d.wait_jobs(2)} == {"gtv", "head-ct"}
    assert send(d.port, structure_set(files, made="20260302")) == [0]
    assert gtv(d, "DONE")["revision"] == 2


def explanation_of(d, *what):
    text = d.ctl("explain", *map(str, what)).stdout
    return " ".join(text.split()), json.loads(d.ctl("explain", "--json", *map(str, what)).stdout)


def test_explain_reports_awaited_objects(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, sender='from_ae = "TPS";')
    plan, seg = structure_set(files), segmentation(files)
    path = save(plan, tmp_path / "images" / "plan.dcm")
    text, told = explanation_of(d, path)  # before any object is stored
    assert f"object {plan.SOPInstanceUID}" in text and 'kind rtstruct, "Plan"' in text and " stored no " in text
    assert f"refers to series {pydicom.dcmread(files[0]).SeriesInstanceUID}" in text
    assert 'pipeline gtv: segment "GTV" needs "GTV*" of an rtstruct from TPS' in text and "skipped" not in text
    assert [(row["kind"], row["stored"], row["pipelines"]) for row in told["objects"]] == [("rtstruct", False, [])]
    storescu(d.port, *files)
    uid = gtv(d, "DELAYED")["series_uid"]
    assert send(d.port, seg, plan) == [0, 0]
    text, told = explanation_of(d, uid)
    assert 'waits for gtv: segment "GTV" is "GTV*" of an rtstruct from TPS: not stored' in text
    assert [(row["pipeline"], row["kind"], row["path"]) for row in told["series"][0]["waits_for"]] == [("gtv", "rtstruct", "")]
    text, _ = explanation_of(d, path)
    assert "stored from PYNETDICOM" in text and f"stored series {uid}" in text and "TPS: not from this sender" in text
    mine = structure_set(files, label="Mine")
    assert send(d.port, mine, calling="TPS") == [0] and gtv(d, "DONE")
    text, told = explanation_of(d, uid)
    (row,) = objects(d, f"sop_instance_uid = '{mine.SOPInstanceUID}'")
    assert f"from TPS: found, {row['path']}" in text
    assert told["series"][0]["waits_for"][0]["path"] == row["path"]
    _, told = explanation_of(d, d.root / row["path"])
    assert told["objects"][0]["pipelines"] == [{"pipeline": "gtv", "segment": "GTV", "regions_that_fit": 1}]
    assert told["objects"][0]["drawn_on"] == uid and told["objects"][0]["state"] == "current"


def two_regions(ds, name):
    """Returns a second object with another name and number."""
    for sequence, number in ((ds.StructureSetROISequence, "ROINumber"), (ds.ROIContourSequence, "ReferencedROINumber"),
                             (ds.RTROIObservationsSequence, "ReferencedROINumber")):
        sequence.append(copy.deepcopy(sequence[0]))
        setattr(sequence[1], number, 2)
    ds.StructureSetROISequence[1].ROIName = name
    return ds


@pytest.mark.parametrize(("wanted", "names", "code", "found"), [
    ('roi = "GTV*"; each = true;', ["GTV", "GTV left"], "", 'one segment each for 1 "GTV", 2 "GTV left"'),
    ('roi = "GTV*"; unite = true;', ["GTV", "GTV left"], "", 'one segment from 1 "GTV", 2 "GTV left"'),
    ('roi = "GTV*"; each = true;', ["Liver", "Heart"], "ROI_NOT_FOUND", 'no such region (ROI_NOT_FOUND); regions: 1 "Liver"'),
    ('roi = "GTV*"; each = true; optional = true;', ["Liver", "Heart"], "", 'no such region, so the segment is empty; regions: '),
])
def test_explain_lists_every_matching_region(daemon, files, tmp_path, wanted, names, code, found):
    d = naming(daemon, tmp_path, wanted=f'kind = "rtstruct"; {wanted}')
    phantom(tmp_path / "in", "--size", "32x32x6")
    save(two_regions(structure_set(files, roi=names[0]), names[1]), tmp_path / "in" / "plan.dcm")
    text, told = explanation_of(d, tmp_path / "in")
    (waits,) = told["series"][0]["waits_for"]
    assert waits["code"] == code and waits["found"].startswith(found), waits


def test_explain_lists_existing_regions(daemon, files, tmp_path):
    """Regions are checked as in the job, before and after the objects are stored."""
    d = naming(daemon, tmp_path)
    offered = [(structure_set(files, roi="Heart", label="A"), "ROI_NOT_FOUND", '1 "Heart"'),
               (two_regions(structure_set(files, label="B"), "Heart"), "", '1 "GTV"'),
               (two_regions(structure_set(files, label="C"), "GTV left"), "ROI_AMBIGUOUS", '1 "GTV", 2 "GTV left"')]
    for number, (plan, code, regions) in enumerate(offered):
        folder = tmp_path / f"in{number}"
        phantom(folder, "--size", "32x32x6")
        path = save(plan, folder / "plan.dcm")
        text, told = explanation_of(d, path)
        names = [region.ROIName for region in plan.StructureSetROISequence]
        assert [region["name"] for region in told["objects"][0]["regions"]] == names
        assert told["objects"][0]["pipelines"][0]["regions_that_fit"] == sum(name.startswith("GTV") for name in names)
        assert f'regions 1 "{names[0]}"' in text and regions in text.partition("pipeline gtv")[2] and code in text
        text, told = explanation_of(d, folder)
        (waits,) = told["series"][0]["waits_for"]
        assert (waits["path"], waits["code"]) == (str(path), code) and regions in waits["found"], waits
        assert f"found, {path}: {waits['found']}" in text
    storescu(d.port, *files)
    uid = gtv(d, "DELAYED")["series_uid"]
    d.ctl("hold", "--queue")  # the object must exist before the job starts
    for plan, code in ((offered[0][0], "ROI_NOT_FOUND"), (offered[1][0], "")):
        assert send(d.port, plan) == [0]
        (waits,) = explanation_of(d, uid)[1]["series"][0]["waits_for"]
        assert waits["code"] == code
    assert "Heart" not in waits["found"] and "GTV" in waits["found"], "the one that has it, of two"
    d.ctl("release", "--queue")
    assert gtv(d, "DONE", "FAILED")["state"] == "DONE"
    assert send(d.port, structure_set(files, label="D")) == [0]
    assert gtv(d, "FAILED")["code"] == "OBJECT_AMBIGUOUS"
    (waits,) = explanation_of(d, uid)[1]["series"][0]["waits_for"]
    assert waits["code"] == "OBJECT_AMBIGUOUS" and "another object has it too" in waits["found"]


def test_explain_reports_that_own_results_never_arrive(daemon, files, tmp_path):
    d = naming(daemon, tmp_path, wanted='kind = "seg"; roi = "GTV*"; own = true;', rule="head-ct")
    text, _ = explanation_of(d, "--pipeline", "gtv", files[0].parent)
    assert "not stored; give results of Noctule with noctule run --object" in text
