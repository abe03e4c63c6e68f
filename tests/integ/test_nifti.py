"""The result "nifti": nibabel, SimpleITK, pydicom and dcm2niix agree with it on the place and the value of each voxel, and
numpy on each label."""

import gzip
import json

import nibabel
import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import SHARED, needs_shared, phantom, put, wait_for
from test_contours import Planes
from test_deliveries import destinations, to_folder
from test_grid import Reference, noctule, uneven
from test_program_geometries import EVEN, check_dcm2niix, check_planes, check_simpleitk
from test_run import exact_values
from test_segments import turn

FILES = ("volume.nii.gz", "labels.nii.gz", "labels.json")
BRAIN = ("12738006", "SCT", "Brain")


def ranged(label, low, high, more=""):
    code, scheme, meaning = BRAIN
    return (f'{{ label = "{label}"; method = "range"; range = [ {float(low)}, {float(high)} ]; {more} '
            f'type = {{ code = "{code}"; scheme = "{scheme}"; meaning = "{meaning}"; }}; }}')


def run(folder, inputs, *segments, options="", **more):
    return noctule(folder, inputs, *segments, options='results = [ "nifti" ]; ' + options, **more)


def labels_of(output):
    """Returns the labels of slices, rows and columns, after both readers agree on them and on their place."""
    volume, labels = (nibabel.load(output / name) for name in FILES[:2])
    assert labels.shape == volume.shape and (labels.affine == volume.affine).all()
    assert (labels.get_qform() == volume.get_qform()).all()
    image = SimpleITK.ReadImage(output / FILES[1])
    of_volume = SimpleITK.ReadImage(output / FILES[0])
    for key in ("GetSize", "GetOrigin", "GetSpacing", "GetDirection"):
        assert getattr(image, key)() == getattr(of_volume, key)()
    values = np.asarray(labels.dataobj).T
    assert (SimpleITK.GetArrayFromImage(image) == values).all()
    return values


def expected_labels(values, limits):
    """Returns the labels of ranges that share no value."""
    labels = np.zeros(values.shape, int)
    for number, (low, high) in enumerate(limits, 1):
        labels[(values >= low) & (values <= high)] = number
    return labels


def judge_labels(output, values, limits, record):
    found, expected = labels_of(output), expected_labels(values, limits)
    assert np.count_nonzero(found != expected) == 0
    counts = [int((expected == number + 1).sum()) for number in range(len(limits))]
    assert counts == [segment["voxels"] for segment in record["segments"]] and min(counts) > 0


LIMITS = ((30.5, 60.25), (60.5, 1e9))


def segments_of(limits):
    return [ranged(f"Part {number}", *ends) for number, ends in enumerate(limits, 1)]


@pytest.mark.parametrize("name", EVEN)
def test_a_phantom(tmp_path, name):
    options, change = EVEN[name]
    files = phantom(tmp_path / "in", *options)
    if change:
        turn(files, *change, (-31.5, 12.25, 700))
    output, record = run(tmp_path, files, *segments_of(LIMITS))
    check_simpleitk(output / FILES[0])
    check_planes(output / FILES[0], tmp_path / "in")
    check_dcm2niix(output / FILES[0], tmp_path / "in", tmp_path / "peer")
    planes = Planes(sorted((tmp_path / "in").glob("*.dcm")))
    judge_labels(output, exact_values([pydicom.dcmread(file.filename) for file in planes.files]), LIMITS, record)


@pytest.mark.parametrize("options, change", ((("--size", "70x61x12", "--tilt", "18.5"), None),
                                             (("--size", "48x40x21", "--spacing", "2,2,4"), uneven)), ids=("tilted", "uneven"))
def test_the_grid_of_a_straightened_stack(tmp_path, options, change):
    files = phantom(tmp_path / "in", *options)
    if change:
        change(files)
    output, record = run(tmp_path, files, *segments_of(LIMITS))
    check_simpleitk(output / FILES[0])
    reference = Reference(files)
    values, found = reference.grid(), np.asarray(nibabel.load(output / FILES[0]).dataobj).T
    inside = ~np.isnan(values)
    assert found.shape == values.shape and np.count_nonzero(found[inside] != values[inside]) == 0
    judge_labels(output, values, LIMITS, record)
    matrix = np.diag([-1.0, -1.0, 1.0, 1.0]) @ nibabel.load(output / FILES[0]).affine
    for axis in range(3):
        direction = (*reference.axes, reference.normal)[axis]
        assert np.abs(matrix[:3, axis] - direction * reference.report["spacing"][axis]).max() < 1e-4


REAL = {"ct-head-5mm": ("ct-head-5mm", ((30.5, 60.25), (60.5, 1e9))),
        "mr-sagittal": ("brain/mprage-sagittal/dicom", ((150.5, 250.25), (250.5, 1e9))),
        "pet": ("sarcoma/STS_001/PET/image", ((2.000123, 3.0), (3.000123, 1e9)))}


@needs_shared
@pytest.mark.parametrize("name", REAL)
def test_a_real_series(tmp_path, name):
    folder, limits = REAL[name]
    output, record = run(tmp_path, [SHARED / folder], *segments_of(limits))
    check_simpleitk(output / FILES[0])
    check_planes(output / FILES[0], SHARED / folder)
    planes = Planes(sorted((SHARED / folder).glob("*.dcm")))
    judge_labels(output, exact_values([pydicom.dcmread(file.filename) for file in planes.files]), limits, record)


def small(tmp_path):
    return phantom(tmp_path / "in", "--size", "40x31x11", "--spacing", "2,3,4")


def test_the_numbers_of_the_segmentation(tmp_path):
    """Hidden segments have no number. The list has names, codes and colours of all others."""
    files = small(tmp_path)
    region = 'region = { code = "69536005"; scheme = "SCT"; meaning = "Head"; };'
    output, record = noctule(
        tmp_path, files, ranged("Hidden", -1e9, 20, "hidden = true;"), ranged("Low", 30.5, 60.25, "color = [ 0.9, 0.3, 0.2 ];"),
        ranged("Hgh\u00e4", 60.5, 1e9, f"color = [ 0.0, 1.0, 0.5 ]; {region}"), options='results = [ "seg", "nifti" ];')
    labels = labels_of(output)
    assert labels.dtype == np.uint8 and np.unique(labels).tolist() == [0, 1, 2]
    seg = pydicom.dcmread(output / "seg.dcm")
    assert [(item.SegmentNumber, item.SegmentLabel) for item in seg.SegmentSequence] == [(1, "Low"), (2, "Hgh\u00e4")]
    for number in 1, 2:
        frames = [pixels for pixels, frame in zip(seg.pixel_array, seg.PerFrameFunctionalGroupsSequence, strict=True)
                  if frame.SegmentIdentificationSequence[0].ReferencedSegmentNumber == number]
        assert sum(int(frame.sum()) for frame in frames) == (labels == number).sum()
    listed = json.loads((output / "labels.json").read_text())
    code, scheme, meaning = BRAIN
    common = {"category": {"code": "123037004", "scheme": "SCT", "meaning": "Anatomical Structure"},
              "type": {"code": code, "scheme": scheme, "meaning": meaning}}
    assert listed == {"unit": "[hnsf'U]", "labels": [
        {"number": 1, "name": "Low", **common, "rgb": [230, 77, 51]},
        {"number": 2, "name": "Hgh\u00e4", **common, "region": {"code": "69536005", "scheme": "SCT", "meaning": "Head"},
         "rgb": [0, 255, 128]}]}
    assert [(row["kind"], row["file"]) for row in record["results"]] == [("seg", "seg.dcm"), *(("nifti", name) for name in FILES)]


def test_overlapping_segments(tmp_path):
    """Refused with the first voxel, in the order of the file, or written with the number of the last segment."""
    files = small(tmp_path)
    parts = [ranged("A", 30.5, 60.25), ranged("B", 50.5, 1e9)]
    output, record = run(tmp_path, files, *parts, status=1)
    planes = Planes(sorted((tmp_path / "in").glob("*.dcm")))
    values = exact_values([pydicom.dcmread(file.filename) for file in planes.files])
    z, y, x = np.argwhere((values >= 50.5) & (values <= 60.25))[0]
    assert record["code"] == "SEGMENTS_OVERLAP"
    assert f'Voxel ({x}, {y}, {z}) is in the segments "A" and "B"' in record["message"]
    assert not any((output / name).exists() for name in FILES)
    output, record = run(tmp_path, files, *parts, options='overlap = "last";')
    expected = expected_labels(values, ((30.5, 60.25), (50.5, 1e9)))
    assert np.count_nonzero(labels_of(output) != expected) == 0


def test_more_labels_than_a_byte_holds(tmp_path):
    files = small(tmp_path)
    for number, path in enumerate(files):
        dataset = pydicom.dcmread(path)
        pixels = np.arange(dataset.Rows * dataset.Columns, dtype=dataset.pixel_array.dtype) % 300 + number
        dataset.PixelData = pixels.tobytes()
        dataset.save_as(path)
    planes = Planes(sorted(files))
    values = exact_values([pydicom.dcmread(file.filename) for file in planes.files])
    limits = [(value - 0.25, value + 0.25) for value in np.unique(values)[:256]]
    output, record = run(tmp_path, files, *segments_of(limits))
    assert labels_of(output).dtype == np.uint16
    judge_labels(output, values, limits, record)
    assert nibabel.load(output / FILES[1]).get_data_dtype() == np.uint16


def test_the_same_bytes(tmp_path):
    """Also with threads, and from files in another order; the files are valid gzip without a time."""
    files = small(tmp_path)
    made = []
    for number, inputs in enumerate((files, files[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        output, _ = run(folder, inputs, *segments_of(LIMITS))
        made.append([(output / name).read_bytes() for name in FILES])
    assert made[0] == made[1]
    for content in made[0][:2]:
        assert content[:8] == b"\x1f\x8b\x08\0\0\0\0\0"
        assert len(gzip.decompress(content)) > len(content)


def test_values_of_another_unit(tmp_path):
    """Fractions of real-world values are single precision."""
    files = small(tmp_path)
    for path in files:
        dataset = pydicom.dcmread(path)
        dataset.RescaleSlope = "0.3"
        dataset.save_as(path)
    output, _ = run(tmp_path, files, ranged("A", -900.0, 1e9))
    assert nibabel.load(output / FILES[0]).get_data_dtype() == np.float32
    check_planes(output / FILES[0], tmp_path / "in")


def test_the_service_keeps_the_files(daemon, tmp_path):
    """A worker with limited rights writes the same files and reads them back. Destinations get DICOM objects only."""
    files = small(tmp_path)
    d = daemon(pipeline_extra='results = [ "seg", "nifti" ]; deliver = [ "OUT" ];',
               extra=destinations(to_folder(tmp_path / "out"))).start()
    put(files, d.inbox / "a")
    d.wait_jobs()
    rows = d.query("SELECT kind, path, sop_instance_uid FROM v_results ORDER BY path")
    assert [(row["kind"], row["path"].rpartition("/")[2]) for row in rows] == [
        ("nifti", "labels.json"), ("nifti", "labels.nii.gz"), ("seg", "seg.dcm"), ("nifti", "volume.nii.gz")]
    outbox = d.root / "outbox" / "1"
    check_planes(outbox / FILES[0], tmp_path / "in")
    assert labels_of(outbox).any()
    wait_for(lambda: [row["state"] for row in d.query("SELECT state FROM v_deliveries")] == ["SENT"], 60, "the delivery")


def test_no_voxel(tmp_path):
    output, record = run(tmp_path, small(tmp_path), ranged("Nothing", 20000.0, 20001.0), status=7)
    assert record["code"] == "EMPTY" and not any((output / name).exists() for name in FILES)
