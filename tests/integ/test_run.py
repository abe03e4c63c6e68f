"""`noctule run`: from a folder to a SEG that equals numpy and scipy voxel by voxel, and every way to end."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import highdicom
import numpy as np
import PIL.Image
import pydicom
import pytest
from conftest import BIN, SHARED, SOURCE, assert_valid, needs_shared, phantom, wait_for

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import peer_pipeline as peer  # noqa: E402

CONFIG = """
root = "{root}";
pipelines = (
  {{ name = "ball";
    segments = (
      {{ label = "Ball"; range = [ 0.0, 80.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 35.0; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
    min_slices = 1; }},
  {{ name = "many";
    segments = (
      {{ label = "Soft"; range = [ -50.0, 150.5 ];
        shapes = ( {{ kind = "ellipsoid"; center = {{ voxel = [ 20.0, 18.5, 4.0 ]; }}; radius_voxels = [ 9.0, 7.0, 3.0 ]; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }},
      {{ label = "Bone"; range = [ 300.0, 3000.0 ];
        shapes = ( {{ kind = "box"; center = {{ voxel = [ 20.0, 18.0, 4.0 ]; }}; radius_voxels = [ 19.0, 17.0, 2.0 ]; }},
                   {{ kind = "sphere"; center = {{ voxel = [ 3.0, 3.0, 1.0 ]; }}; radius_voxels = 4.0; }} );
        type = {{ code = "272673000"; scheme = "SCT"; meaning = "Bone"; }}; }},
      {{ label = "Nothing"; range = [ 20000.0, 20001.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ voxel = [ 0.0, 0.0, 0.0 ]; }}; radius_voxels = 0.5; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} );
    results = [ "seg", "codes" ]; min_slices = 1; }},
  {{ name = "white";
    segments = (
      {{ label = "White matter"; range = [ 58.0, 90.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_voxels = 50.0; }} );
        type = {{ code = "68523003"; scheme = "SCT"; meaning = "Cerebral white matter"; }}; }} );
    min_slices = 1; }},
  {{ name = "hot";
    segments = (
      {{ label = "Warm"; range = [ 1000.0, 1e7 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_voxels = 6.0; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }},
  {{ name = "none";
    segments = (
      {{ label = "Nothing"; range = [ 20000.0, 20001.0 ];
        shapes = ( {{ kind = "sphere"; center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_voxels = 3.0; }} );
        type = {{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }}; }} ); }}
);
rules = ();
"""


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with the pipelines above. Returns the CompletedProcess."""
    config = tmp_path / "noctule.conf"
    config.write_text(CONFIG.format(root=tmp_path / "root"))

    def call(pipeline, output, *inputs, status=0, **options):
        result = subprocess.run(
            [BIN / "noctule", "--config", config, "run", "--pipeline", pipeline, "--output", output,
             *map(str, inputs)], text=True, capture_output=True, timeout=120, **options)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


def exact_values(datasets):
    """Returns real-world values in double precision, (slice, row, column), by the definition."""
    planes = []
    for dataset in datasets:
        slope, intercept = float(dataset.get("RescaleSlope", 1)), float(dataset.get("RescaleIntercept", 0))
        planes.append(slope * dataset.pixel_array.astype(np.float64) + intercept)
    return np.stack(planes)


def ball(datasets, shape, radius_mm):
    """Returns the start region of "ball": a sphere in millimetres in the middle."""
    rows, columns = (float(v) for v in datasets[0].PixelSpacing)
    positions = [np.array([float(v) for v in d.ImagePositionPatient]) for d in datasets[:2]]
    spacing = [columns, rows, float(np.linalg.norm(positions[1] - positions[0]))]
    center = [(n - 1) / 2 for n in reversed(shape)]
    return peer.ellipsoid(shape, center, [radius_mm / s for s in spacing])


def seg_masks(path, datasets):
    """Returns the masks of a SEG, (segment, slice, row, column), read by highdicom."""
    seg = highdicom.seg.segread(path)
    uids = [d.SOPInstanceUID for d in datasets]
    pixels = seg.get_pixels_by_source_instance(uids, combine_segments=False, assert_missing_frames_are_empty=True)
    return np.moveaxis(pixels, 3, 0).astype(bool)


def assert_no_file_left(folder):
    """Checks that neither a result nor an unfinished file exists. The folder itself may exist."""
    assert not folder.exists() or list(folder.iterdir()) == []


@pytest.mark.parametrize("options", [
    ("--size", "96x80x12"),
    ("--size", "63x41x9", "--bits", "16", "--signed"),
    ("--size", "40x56x7", "--bits", "16"),
    ("--size", "64x64x16", "--kind", "sphere"),
], ids=" ".join)
def test_the_mask_is_the_reference(run, tmp_path, options):
    phantom(tmp_path / "in", *options)
    output = tmp_path / "new" / "out"
    result = run("ball", output, tmp_path / "in")
    assert result.stderr == ""
    assert sorted(p.name for p in output.iterdir()) == ["job.json", "preview.png", "seg.dcm"]
    datasets, _ = peer.read_series(tmp_path / "in")
    values = exact_values(datasets)
    expected = peer.level_set((values >= 0) & (values <= 80), ball(datasets, values.shape, 35))
    masks = seg_masks(output / "seg.dcm", datasets)
    assert masks.shape[0] == 1 and expected.any()
    assert np.array_equal(masks[0], expected)
    assert_valid(output / "seg.dcm")
    assert (output / "preview.png").read_bytes().startswith(b"\x89PNG")

    job = json.loads((output / "job.json").read_text())
    assert job["outcome"] == "DONE" and job["code"] == ""
    assert job["volume"]["segmented_voxels"] == job["segments"][0]["voxels"] == int(expected.sum())
    assert job["input_files"] == len(datasets)
    assert job["series_instance_uid"] == datasets[0].SeriesInstanceUID
    seg = pydicom.dcmread(output / "seg.dcm")
    assert job["results"][0]["sop_instance_uid"] == seg.SOPInstanceUID
    assert job["results"][0]["bytes"] == (output / "seg.dcm").stat().st_size
    assert str(datasets[0].PatientID) not in (output / "job.json").read_text()


def read_nrrd(path):
    header, _, data = path.read_bytes().partition(b"\n\n")
    fields = dict(line.split(": ", 1) for line in header.decode().splitlines() if ": " in line)
    assert fields["type"] == "int8" and fields["encoding"] == "raw"
    sizes = [int(n) for n in fields["sizes"].split()]
    return np.frombuffer(data, np.int8).reshape(sizes[::-1]), fields


def state_codes(mask):
    """Returns 2 inside at the border, 1 inside, -1 outside at the border, -2 outside. The volume's edge is no border."""
    border = np.zeros(mask.shape, bool)
    for axis in range(3):
        near = np.diff(mask, axis=axis)
        border |= np.concatenate([near, np.zeros_like(np.take(mask, [0], axis))], axis)
        border |= np.concatenate([np.zeros_like(np.take(mask, [0], axis)), near], axis)
    return np.where(mask, np.where(border, 2, 1), np.where(border, -1, -2)).astype(np.int8)


def test_several_segments_shapes_and_codes(run, tmp_path):
    phantom(tmp_path / "in", "--size", "41x37x9")
    run("many", tmp_path / "out", tmp_path / "in")
    datasets, _ = peer.read_series(tmp_path / "in")
    values = exact_values(datasets)
    z, y, x = np.ogrid[0:9, 0:37, 0:41]
    box = (abs(x - 20) <= 19) & (abs(y - 18) <= 17) & (abs(z - 4) <= 2)
    expected = [
        peer.level_set((values >= -50) & (values <= 150.5),
                       peer.ellipsoid(values.shape, (20, 18.5, 4), (9, 7, 3))),
        peer.level_set((values >= 300) & (values <= 3000), box | peer.sphere(values.shape, (3, 3, 1), 4)),
        np.zeros(values.shape, bool),
    ]
    masks = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    assert expected[0].any() and expected[1].any()
    for number, mask in enumerate(expected):
        assert np.array_equal(masks[number], mask), number
        codes, fields = read_nrrd(tmp_path / "out" / f"codes-{number + 1}.nrrd")
        assert np.array_equal(codes, state_codes(mask)), number
        assert fields["space"] == "left-posterior-superior"
        origin = [float(v) for v in fields["space origin"].strip("()").split(",")]
        assert origin == pytest.approx([float(v) for v in datasets[0].ImagePositionPatient])
    assert_valid(tmp_path / "out" / "seg.dcm")
    job = json.loads((tmp_path / "out" / "job.json").read_text())
    assert [s["voxels"] for s in job["segments"]] == [int(m.sum()) for m in expected]
    assert job["volume"]["segmented_voxels"] == int((expected[0] | expected[1]).sum())
    assert [r["file"] for r in job["results"]] == ["seg.dcm", "codes-1.nrrd", "codes-2.nrrd", "codes-3.nrrd"]


def test_each_slice_has_its_own_slope(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x12", "--kind", "pet")
    run("hot", tmp_path / "out", tmp_path / "in")
    datasets, _ = peer.read_series(tmp_path / "in")
    assert len({float(d.RescaleSlope) for d in datasets}) > 1
    values = exact_values(datasets)
    center = [(n - 1) / 2 for n in reversed(values.shape)]
    expected = peer.level_set((values >= 1000) & (values <= 1e7), peer.sphere(values.shape, center, 6))
    assert expected.any() and not expected.all()
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected)


def test_multi_frame_sources_give_the_same_mask(run, tmp_path):
    phantom(tmp_path / "classic", "--size", "48x40x10")
    phantom(tmp_path / "enhanced", "--size", "48x40x10", "--multi-frame")
    run("ball", tmp_path / "a", tmp_path / "classic")
    run("ball", tmp_path / "b", tmp_path / "enhanced")
    a, b = (pydicom.dcmread(tmp_path / n / "seg.dcm") for n in "ab")
    assert a.PixelData == b.PixelData and a.NumberOfFrames == b.NumberOfFrames
    assert_valid(tmp_path / "b" / "seg.dcm")


def test_the_same_input_gives_the_same_result(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "50x46x11")
    (tmp_path / "shuffled").mkdir()
    for number, path in enumerate(reversed(files)):
        shutil.copy(path, tmp_path / "shuffled" / f"{number:03}.dcm")
    run("ball", tmp_path / "a", tmp_path / "in", "--threads", "1")
    run("ball", tmp_path / "b", tmp_path / "shuffled", "--threads", "7")
    a, b = (pydicom.dcmread(tmp_path / n / "seg.dcm") for n in "ab")
    assert a.SOPInstanceUID == b.SOPInstanceUID and a.SeriesInstanceUID == b.SeriesInstanceUID
    assert a.PixelData == b.PixelData
    run("many", tmp_path / "c", tmp_path / "in")
    assert pydicom.dcmread(tmp_path / "c" / "seg.dcm").SOPInstanceUID != a.SOPInstanceUID


def test_several_series_get_separate_folders(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6", "--count", "2")
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json")
    jobs = json.loads(result.stdout)["jobs"]
    assert len(jobs) == 2 and len({j["output"] for j in jobs}) == 2
    uids = {d.SeriesInstanceUID for d in map(pydicom.dcmread, sorted((tmp_path / "in").rglob("*.dcm")))}
    assert {j["series_instance_uid"] for j in jobs} == uids
    for folder in (tmp_path / "out").iterdir():
        assert sorted(p.name for p in folder.iterdir()) == ["job.json", "preview.png", "seg.dcm"]


def test_stacks_are_processed_apart_and_can_be_picked(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6", "--echoes", "2")
    jobs = json.loads(run("ball", tmp_path / "out", tmp_path / "in", "--json").stdout)["jobs"]
    stacks = [j["stack"] for j in jobs]
    assert len(set(stacks)) == 2
    assert len(list((tmp_path / "out").glob("*/seg.dcm"))) == 2
    run("ball", tmp_path / "one", "--stack", stacks[1], tmp_path / "in")
    one = pydicom.dcmread(tmp_path / "one" / "seg.dcm")
    assert one.SOPInstanceUID == jobs[1]["results"][0]["sop_instance_uid"]
    result = run("ball", tmp_path / "no", "--stack", "echo 99", tmp_path / "in", status=3)
    assert "STACK_NOT_FOUND" in result.stderr


def test_files_without_an_image_are_skipped(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")
    (tmp_path / "in" / "LICENSE.txt").write_text("do what you like\n" * 100)
    (tmp_path / "in" / ".hidden").write_bytes(b"x")
    (tmp_path / "in" / "half.dcm.part").write_bytes(files[0].read_bytes()[:500])
    run("ball", tmp_path / "in" / "out", tmp_path / "in")
    # The earlier result is part of the input now, and must have no effect.
    result = run("ball", tmp_path / "in" / "out", tmp_path / "in", "--json")
    told = json.loads(result.stdout)
    assert told["warnings"] == []
    assert {(os.path.basename(f["file"]), f["code"]) for f in told["passed_over"]} == {
        ("LICENSE.txt", "NOT_DICOM"), ("job.json", "NOT_DICOM"), ("preview.png", "NOT_DICOM"), ("seg.dcm", "OWN_RESULT")}
    for file in told["passed_over"]:
        assert f"skipped: {file['file']}: {file['code']}: {file['message']}\n" in result.stderr
    assert len(told["jobs"]) == 1


def test_many_skipped_files_are_reported_in_few_lines(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6")
    for number in range(40):
        (tmp_path / "in" / f"{number:02}.txt").write_text("words, words, words\n" * 20)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json")
    assert len(json.loads(result.stdout)["passed_over"]) == 40
    assert result.stderr == (f"noctule: skipped: 40 files in {tmp_path}/in/: NOT_DICOM: for example: "
                             "00.txt is not a DICOM file.\n")
    for number in range(40):
        (tmp_path / "in" / f"{number}").mkdir()
        (tmp_path / "in" / f"{number:02}.txt").rename(tmp_path / "in" / f"{number}" / "note.txt")
    result = run("ball", tmp_path / "out", tmp_path / "in")
    assert result.stderr == (f"noctule: skipped: 40 files: NOT_DICOM: for example {tmp_path}/in/0/note.txt: "
                             "note.txt is not a DICOM file.\n")


def scout(_, dataset):
    dataset.ImageType = ["ORIGINAL", "PRIMARY", "LOCALIZER"]


def test_a_scout_is_skipped_and_its_series_processed(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    change(files, lambda _, dataset: dataset.pop("ImagesInAcquisition"))
    change(files[:1], scout)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json")
    told = json.loads(result.stdout)
    assert [(f["file"], f["code"]) for f in told["passed_over"]] == [(str(files[0]), "LOCALIZER")]
    assert [job["volume"]["slices"] for job in told["jobs"]] == [7]
    assert (tmp_path / "out" / "seg.dcm").is_file()
    change(files, scout)
    result = run("ball", tmp_path / "none", tmp_path / "in", "--json", "--quiet", status=3)
    assert "no image to process among 8 files" in result.stderr
    assert result.stderr.count("LOCALIZER") == 8
    told = json.loads(result.stdout)
    assert len(told["passed_over"]) == 8 and told["jobs"] == []
    assert not (tmp_path / "none").exists()


def test_a_damaged_file_makes_its_series_incomplete(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8", "--count", "2")
    first = [f for f in files if f.parent == files[0].parent]
    first[7].write_bytes(first[7].read_bytes()[:-700])
    (tmp_path / "mixed").mkdir()
    for number, path in enumerate(files):  # in one folder: the header of the file names the incomplete series
        shutil.copy(path, tmp_path / "mixed" / f"{number:02}.dcm")
    damaged = tmp_path / "mixed" / f"{files.index(first[7]):02}.dcm"
    result = run("ball", tmp_path / "out", tmp_path / "mixed", "--json", status=1)
    assert damaged.name in result.stderr and "FILE_TRUNCATED" in result.stderr
    told = json.loads(result.stdout)
    (warning,) = told["warnings"]
    assert warning["code"] == "FILE_TRUNCATED" and warning["file"] == str(damaged)
    assert sorted((job["outcome"], job["code"], job["files"]) for job in told["jobs"]) == [
        ("DONE", "", []), ("REJECT", "INCOMPLETE_SERIES", [str(damaged)])]
    assert len(list((tmp_path / "out").iterdir())) == 1


def test_no_result_is_written_for_an_incomplete_series(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    files[7].write_bytes(b"")  # an empty file has no header, so the other files of its folder decide
    output = tmp_path / "new" / "deep" / "out"
    result = run("ball", output, tmp_path / "in", status=1)
    assert "FILE_EMPTY" in result.stderr and "INCOMPLETE_SERIES" in result.stderr
    assert not (tmp_path / "new").exists()
    result = run("ball", output, "--accept-missing", tmp_path / "in")
    note = f"missing files are accepted: 1 cannot be used, such as {files[7].name}"
    assert note in result.stdout
    job = json.loads((output / "job.json").read_text())
    assert job["outcome"] == "DONE" and job["note"] == note and job["volume"]["slices"] == 7


@pytest.mark.parametrize("name,content", [
    ("IM0009", bytes(100)), ("IM0009", bytes(128) + b"DI"), ("9.dcm", b"II*\0" + bytes(50)), ("9.DCM", b"<html>" * 99),
], ids=["preamble", "magic", "tiff", "page"])
def test_a_possible_remainder_of_a_slice_is_named(run, tmp_path, name, content):
    """A warning names the file, and the series in the same folder counts as incomplete."""
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    change(files, lambda _, dataset: dataset.pop("ImagesInAcquisition"))
    (tmp_path / "in" / name).write_bytes(content)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json", "--quiet", status=1)
    told = json.loads(result.stdout)
    (warning,) = told["warnings"]
    assert warning["file"] == str(tmp_path / "in" / name) and warning["code"] in ("FILE_TRUNCATED", "NOT_DICOM")
    assert name in result.stderr and told["passed_over"] == []
    assert [job["code"] for job in told["jobs"]] == ["INCOMPLETE_SERIES"]
    run("ball", tmp_path / "out", tmp_path / "in", "--accept-missing")


def test_a_series_shorter_than_its_headers_state_is_refused(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")

    def expect(_, dataset):
        dataset.ImagesInAcquisition = 10

    change(files, expect)
    assert "INCOMPLETE_SERIES" in run("ball", tmp_path / "out", tmp_path / "in", status=1).stderr
    assert not (tmp_path / "out").exists()
    result = run("ball", tmp_path / "out", "--accept-missing", tmp_path / "in")
    assert "missing slices are accepted: " in result.stdout
    assert json.loads((tmp_path / "out" / "job.json").read_text())["note"].startswith("missing slices are accepted: ")


def test_the_same_file_twice_counts_once(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    run("ball", tmp_path / "a", tmp_path / "in")
    same = pydicom.dcmread(files[3])  # as another archive writes it
    same.file_meta.ImplementationVersionName = "ANOTHER_ONE"
    same.file_meta.TransferSyntaxUID = pydicom.uid.ImplicitVRLittleEndian
    same.save_as(tmp_path / "in" / "copy of it.dcm", enforce_file_format=True, implicit_vr=True, little_endian=True)
    told = json.loads(run("ball", tmp_path / "b", tmp_path / "in", "--json").stdout)
    (file,) = told["passed_over"]
    assert file["code"] == "DUPLICATE_FILE" and "copy of it.dcm" in file["file"] + file["message"]
    a, b = (pydicom.dcmread(tmp_path / n / "seg.dcm") for n in "ab")
    assert a.SOPInstanceUID == b.SOPInstanceUID and a.PixelData == b.PixelData


def test_one_sop_instance_uid_for_different_files_is_refused(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")
    uid = pydicom.dcmread(files[0]).SOPInstanceUID

    def same(_, dataset):
        dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID = uid

    change(files, same)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json", status=1)
    (job,) = json.loads(result.stdout)["jobs"]
    assert job["code"] == "DUPLICATE_UID_DIFFERENT" and job["files"] == [str(files[0]), str(files[1])]
    assert files[0].name in job["message"] and files[1].name in job["message"]
    assert not (tmp_path / "out").exists()


def test_two_patients_in_one_series_are_refused_and_not_named(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x8")

    def rename(_, dataset):
        dataset.PatientID, dataset.PatientName = "NEVER-TOLD", "Never^Told"

    change(files[4:], rename)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json", status=1)
    (job,) = json.loads(result.stdout)["jobs"]
    assert job["code"] == "MIXED_PATIENTS" and len(job["files"]) == 2
    assert "never" not in (result.stdout + result.stderr).lower()
    assert not (tmp_path / "out").exists()


def test_a_series_over_the_size_limit_is_refused(run, tmp_path):
    """The series is refused by name before any file is written. Other series are processed."""
    config = tmp_path / "noctule.conf"
    config.write_text("series = { max_instances = 5; };\n" + config.read_text())
    phantom(tmp_path / "in" / "large", "--size", "32x32x6")
    phantom(tmp_path / "in" / "small", "--size", "32x32x5", "--seed", "2")
    told = json.loads(run("ball", tmp_path / "out", tmp_path / "in", "--json", status=1).stdout)
    assert [job["code"] for job in told["jobs"]] == ["SERIES_TOO_LARGE", ""]
    assert "has 6 instances, and series.max_instances is 5" in told["jobs"][0]["message"]
    assert [path.name for path in tmp_path.glob("out/*")] == [os.path.basename(told["jobs"][1]["output"])]


def test_selection_of_stacks(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6", "--echoes", "9")
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json", status=1)
    (job,) = json.loads(result.stdout)["jobs"]
    assert job["code"] == "TOO_MANY_STACKS" and "9 volumes: echo " in job["message"]
    assert not (tmp_path / "out").exists()

    def stacks(which):
        told = run("ball", tmp_path / which.replace("*", "x"), "--stacks", which, tmp_path / "in", "--json")
        return [job["stack"] for job in json.loads(told.stdout)["jobs"]]

    every = stacks("all")
    assert len(every) == 9
    assert stacks("first") == every[:1] and stacks("last") == every[-1:]
    assert stacks(every[0][:7] + "*") == [s for s in every if s.startswith(every[0][:7])]
    assert "STACK_NOT_FOUND" in run("ball", tmp_path / "b0", "--stacks", "b0", tmp_path / "in", status=3).stderr
    run("ball", tmp_path / "x", "--stacks", "all", "--stack", every[0], tmp_path / "in", status=2)


@pytest.mark.parametrize("option,code", [
    (("--gap", "3"), "MISSING_SLICE"),
    (("--duplicate", "3"), "DUPLICATE_POSITION"),
    (("--tilt", "50"), "GANTRY_TILT"),
])
def test_refusals_have_a_code_and_leave_no_file(run, tmp_path, option, code):
    phantom(tmp_path / "in", "--size", "32x32x10", *option)
    result = run("ball", tmp_path / "out", tmp_path / "in", "--json", status=1)
    assert code in result.stderr
    (job,) = json.loads(result.stdout)["jobs"]
    assert job["outcome"] == "REJECT" and job["code"] == code and job["message"] and job["files"]
    assert_no_file_left(tmp_path / "out")


def change(files, edit):
    for number, path in enumerate(files):
        dataset = pydicom.dcmread(path)
        edit(number, dataset)
        dataset.save_as(path)


def test_constant_pixels_are_refused(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "32x32x6")

    def flatten(_, dataset):
        dataset.PixelData = np.full((32, 32), 7, np.uint16).tobytes()

    change(files, flatten)
    assert "CONSTANT_PIXELS" in run("ball", tmp_path / "out", tmp_path / "in", status=1).stderr

    def pad(_, dataset):
        pixels = np.full((32, 32), 7, np.uint16)
        pixels[0, :5] = 9
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "US", 9)

    change(files, pad)
    assert "CONSTANT_PIXELS" in run("ball", tmp_path / "out", tmp_path / "in", status=1).stderr
    assert_no_file_left(tmp_path / "out")


def test_padding_is_never_in_range(run, tmp_path):
    """Padding with a value from the middle of the range, in a block that cuts the brain in two."""
    files = phantom(tmp_path / "in", "--size", "48x48x8")
    datasets, _ = peer.read_series(tmp_path / "in")
    values = exact_values(datasets)
    brain = values[(values > 20) & (values < 60)]
    stored = int(np.median(brain) - float(datasets[0].RescaleIntercept))

    def pad(_, dataset):
        pixels = dataset.pixel_array.copy()
        pixels[pixels == stored] = stored + 1
        pixels[:, 22:26] = stored
        dataset.PixelData = pixels.tobytes()
        dataset.add_new("PixelPaddingValue", "SS" if dataset.PixelRepresentation else "US", stored)

    change(files, pad)
    run("ball", tmp_path / "out", tmp_path / "in")
    datasets, _ = peer.read_series(tmp_path / "in")
    values = exact_values(datasets)
    padded = np.stack([d.pixel_array for d in datasets]) == stored
    assert (padded & (values >= 0) & (values <= 80)).any()
    start = ball(datasets, values.shape, 35)
    expected = peer.level_set((values >= 0) & (values <= 80) & ~padded, start)
    assert not np.array_equal(expected, peer.level_set((values >= 0) & (values <= 80), start))
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected)


def test_an_empty_result_is_reported_and_replaces_an_earlier_one(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6")
    run("ball", tmp_path / "out", tmp_path / "in")
    result = run("none", tmp_path / "out", tmp_path / "in", status=7)
    assert "EMPTY" in result.stderr
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["job.json", "preview.png"]
    job = json.loads((tmp_path / "out" / "job.json").read_text())
    assert job["outcome"] == "EMPTY" and job["code"] == "EMPTY" and job["results"] == []


def preview(folder):
    return np.asarray(PIL.Image.open(folder / "preview.png").convert("RGB")).astype(int)


def test_the_preview_shows_slices_in_proportion_with_outlines(run, tmp_path):
    """40 x 80 pixels of 3 mm by 1 mm: slices are half as high again as they are wide."""
    files = phantom(tmp_path / "in", "--size", "80x40x3", "--spacing", "1,3,5")
    run("ball", tmp_path / "out", tmp_path / "in")
    picture = preview(tmp_path / "out")
    end = picture.shape[0] - 11 - 43 - 43 - 11  # of the slices: above a margin, two lines of text and a gap
    assert picture.shape[1] == 1170
    slices = sorted((pydicom.dcmread(f) for f in files), key=lambda d: d.ImagePositionPatient[2])
    for tile, dataset in enumerate(slices):  # of 375 pixels on a grid; images of 312 x 468 are in their middle
        left = 11 + tile * (375 + 11)
        tissue = dataset.pixel_array > dataset.pixel_array.min() + 500  # the head, whose outer part is in the segment
        outline = np.ptp(picture[end - 468:end, left + 31:left + 31 + 312], axis=2) > 60
        for axis, scale in ((0, 312 / 80), (1, 468 / 40)):
            head, drawn = (np.flatnonzero(mask.any(axis=axis)) for mask in (tissue, outline))
            assert abs(drawn[0] - head[0] * scale) <= 2 and abs(drawn[-1] + 1 - (head[-1] + 1) * scale) <= 2
        assert (picture[end - 469 - 40:end - 468, left + 374] == 23).all()  # the line of the caption


def test_monochrome1_is_inverted_in_the_preview_alone(run, tmp_path):
    files = phantom(tmp_path / "in", "--size", "40x40x5")
    run("ball", tmp_path / "a", tmp_path / "in")

    def invert(_, dataset):
        dataset.PhotometricInterpretation = "MONOCHROME1"

    change(files, invert)
    run("ball", tmp_path / "b", tmp_path / "in")
    a, b = (pydicom.dcmread(tmp_path / n / "seg.dcm") for n in "ab")
    assert a.PixelData == b.PixelData
    # The middle of the last slice, where no letters are; 375 pixels per side, above two lines of text.
    a, b = (preview(tmp_path / n)[-108 - 300:-108 - 75, 11 + 75:11 + 300] for n in "ab")
    grey = (np.ptp(a, axis=2) == 0) & (np.ptp(b, axis=2) == 0) & (a[..., 0] != b[..., 0])
    assert grey.mean() > 0.5
    assert (abs(a[grey] + b[grey] - 255) <= 1).all()


def test_wrong_arguments(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6")
    (tmp_path / "empty").mkdir()
    out = tmp_path / "out"
    assert "ball" in run("nosuch", out, tmp_path / "in", status=3).stderr
    assert "nowhere" in run("ball", out, tmp_path / "nowhere", status=3).stderr
    assert "no image" in run("ball", out, tmp_path / "empty", status=3).stderr
    run("ball", out, status=2)
    run("ball", out, "--threads", "0", tmp_path / "in", status=2)
    run("ball", out, "--threads", "many", tmp_path / "in", status=2)
    run("ball", out, "--colour", tmp_path / "in", status=2)
    run("ball", "", tmp_path / "in", status=2)
    assert_no_file_left(out)


def test_an_unusable_output_folder_is_an_error(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6")
    (tmp_path / "file").write_text("")
    assert "OUTPUT_UNWRITABLE" in run("ball", tmp_path / "file" / "out", tmp_path / "in", status=1).stderr


@pytest.mark.parametrize("limit", [0, 100, 4096, 8000])
def test_a_full_disk_leaves_no_file(run, tmp_path, limit):
    """A limit on file sizes applies at different places: preview, head or frames of the SEG."""
    phantom(tmp_path / "in", "--size", "128x128x20", "--kind", "sphere")
    result = run("ball", tmp_path / "out", tmp_path / "in", status=1,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "DISK_FULL" in result.stderr
    assert_no_file_left(tmp_path / "out")


def test_a_full_small_file_system_leaves_no_file(run, tmp_path):
    phantom(tmp_path / "in", "--size", "256x256x20")
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "noctule-test", small],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        result = run("ball", small / "out", tmp_path / "in", status=1)
        assert "DISK_FULL" in result.stderr and "space" in result.stderr
        assert list(small.rglob("*")) == []
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def test_an_interrupted_run_leaves_no_file(run, tmp_path):
    """The run is interrupted after it has started to write to the output folder. A run that was faster is repeated."""
    phantom(tmp_path / "in", "--size", "512x512x60")
    for attempt in range(20):
        output = tmp_path / f"out{attempt}"
        process = subprocess.Popen(
            [BIN / "noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "ball", "--threads", "1",
             "--output", output, tmp_path / "in"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: (output.exists() and list(output.iterdir())) or process.poll() is not None, 60, "the job")
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
        if process.returncode != 0:
            break
    assert process.returncode == 128 + signal.SIGINT
    assert "STOPPED" in complaint
    assert_no_file_left(output)


def test_quiet_prints_no_line(run, tmp_path):
    phantom(tmp_path / "in", "--size", "32x32x6")
    result = run("ball", tmp_path / "out", "--quiet", tmp_path / "in")
    assert result.stdout == "" and result.stderr == ""
    told = run("ball", tmp_path / "out", tmp_path / "in").stdout
    assert str(tmp_path / "out" / "seg.dcm") in told and "ml" in told


def test_a_missing_dictionary_stops_the_run(run, tmp_path):
    """Without the dictionary attributes have no names, so results would lack the patient."""
    phantom(tmp_path / "in", "--size", "32x32x6")
    result = run("ball", tmp_path / "out", tmp_path / "in", status=os.EX_TEMPFAIL,
                 env={**os.environ, "DCMDICTPATH": str(tmp_path / "nowhere")})
    assert "data dictionary" in result.stderr
    assert_no_file_left(tmp_path / "out")


def shipped(pipeline, output, folder, status=0):
    """With the installed configuration."""
    result = subprocess.run(
        [BIN / "noctule", "--config", SOURCE / "config" / "noctule.conf", "run", "--pipeline", pipeline,
         "--output", output, folder], text=True, capture_output=True, timeout=120,
        env={**os.environ, "NOCTULE_CONFIG": ""})
    assert result.returncode == status, result.stdout + result.stderr
    return result


@needs_shared
def test_white_matter_is_the_reference(run, tmp_path):
    run("white", tmp_path / "out", SHARED / "mr-brain-t1")
    datasets, values = peer.read_series(SHARED / "mr-brain-t1")
    center = [(n - 1) / 2 for n in reversed(values.shape)]
    expected = peer.level_set((values >= 58) & (values <= 90), peer.sphere(values.shape, center, 50), "cc3d")
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected)
    assert json.loads((tmp_path / "out" / "job.json").read_text())["volume"]["slices"] == 384


@needs_shared
def test_a_real_ct_is_the_reference(tmp_path):
    shipped("example", tmp_path / "out", SHARED / "ct-head-5mm")
    datasets, _ = peer.read_series(SHARED / "ct-head-5mm")
    values = exact_values(datasets)
    expected = peer.level_set((values >= 0) & (values <= 80), ball(datasets, values.shape, 40))
    assert np.array_equal(seg_masks(tmp_path / "out" / "seg.dcm", datasets)[0], expected)


@needs_shared
def test_images_without_positions_are_refused_in_every_transfer_syntax(run, tmp_path):
    files = sorted((SHARED / "transfer-syntaxes").glob("*.dcm"))
    assert len(files) == 5
    for path in files:
        assert "NO_GEOMETRY" in run("ball", tmp_path / path.stem, path, status=1).stderr
