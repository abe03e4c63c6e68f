"""The result "labelmap" and the options overlap and compression of a pipeline, by `noctule run`."""

import json
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, phantom
from test_run import assert_no_file_left, seg_masks

TYPE = 'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };'


def ball(label, radius, center="0.5, 0.5, 0.5"):
    return (f'{{ label = "{label}"; range = [ -2000.0, 5000.0 ]; method = "range"; {TYPE} '
            f'shapes = ( {{ kind = "sphere"; center = {{ fraction = [ {center} ]; }}; radius_voxels = {radius}; }} ); }}')


APART = [ball("Left", 7.0, "0.25, 0.5, 0.5"), ball("Right", 6.0, "0.75, 0.5, 0.5")]
NESTED = [ball("Outer", 9.0), ball("Inner", 4.0)]


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with these segments. Returns the output folder, or the CompletedProcess of a failure."""
    if not (tmp_path / "in").exists():
        phantom(tmp_path / "in", "--size", "40x36x12")

    def call(segments, results, more="", *arguments, status=0):
        config = tmp_path / "noctule.conf"
        output = tmp_path / f"out{len(list(tmp_path.glob('out*')))}"
        words = ", ".join(f'"{word}"' for word in results)
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "p"; segments = ( {", ".join(segments)} ); '
                          f'results = [ {words} ]; {more} }} ); rules = ( );')
        done = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output, *arguments,
                               tmp_path / "in"], text=True, capture_output=True, timeout=120)
        assert done.returncode == status, done.stdout + done.stderr
        return done if status else output

    return call


def images(tmp_path):
    return sorted((pydicom.dcmread(path) for path in (tmp_path / "in").iterdir()), key=lambda ds: float(ds.ImagePositionPatient[2]))


def labels_of(output, datasets):
    """Returns the labels per plane. Planes without a frame have none."""
    seg = pydicom.dcmread(output / "labelmap.dcm")
    labels = np.zeros((len(datasets), seg.Rows, seg.Columns), int)
    uids = [ds.SOPInstanceUID for ds in datasets]
    for group, frame in zip(seg.PerFrameFunctionalGroupsSequence, seg.pixel_array.reshape(-1, seg.Rows, seg.Columns)):
        labels[uids.index(group.DerivationImageSequence[0].SourceImageSequence[0].ReferencedSOPInstanceUID)] = frame
    return labels


def merged(masks):
    labels = np.zeros(masks.shape[1:], int)
    for number, mask in enumerate(masks, start=1):
        labels[mask] = number
    return labels


SYNTAXES = {"none": ("1.2.840.10008.1.2.1", "1.2.840.10008.1.2.1"), "rle": ("1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.5"),
            "deflated": ("1.2.840.10008.1.2.1.99", "1.2.840.10008.1.2.1.99")}


def test_both_objects_have_the_same_voxels_in_each_compression(run, tmp_path):
    datasets, uids = images(tmp_path), set()
    for compression, syntaxes in SYNTAXES.items():
        output = run(APART, ("seg", "labelmap"), f'compression = "{compression}";')
        masks = seg_masks(output / "seg.dcm", datasets)
        assert all(mask.any() for mask in masks)
        assert np.array_equal(labels_of(output, datasets), merged(masks))
        results = json.loads((output / "job.json").read_text())["results"]
        assert [result["kind"] for result in results] == ["seg", "labelmap"]
        written = [pydicom.dcmread(output / name) for name in ("seg.dcm", "labelmap.dcm")]
        assert [ds.SeriesNumber for ds in written] == [9000, 9006]
        assert tuple(ds.file_meta.TransferSyntaxUID for ds in written) == syntaxes
        uids.add(tuple(ds.SOPInstanceUID for ds in written))
    assert len(uids) == 1, "the compression changes UIDs"


def test_same_bytes(run):
    more = 'compression = "rle";'
    first, second = (run(APART, ("labelmap",), more, "--threads", threads) for threads in "13")
    assert (first / "labelmap.dcm").read_bytes() == (second / "labelmap.dcm").read_bytes()


def test_overlapping_segments(run, tmp_path):
    refused = run(NESTED, ("seg", "labelmap"), status=1)
    assert 'SEGMENTS_OVERLAP' in refused.stderr and 'in the segments "Outer" and "Inner"' in refused.stderr
    assert_no_file_left(tmp_path / "out0")
    output = run(NESTED, ("seg", "labelmap"), 'overlap = "last";')
    masks = seg_masks(output / "seg.dcm", images(tmp_path))
    labels = labels_of(output, images(tmp_path))
    assert np.array_equal(labels, merged(masks)) and set(np.unique(labels)) == {0, 1, 2}
    output = run(NESTED[::-1], ("seg", "labelmap"), 'overlap = "last";')
    assert set(np.unique(labels_of(output, images(tmp_path)))) == {0, 2}, "the last segment has all voxels of the other"


def test_a_labelmap_is_input_again(run, tmp_path):
    """As annotation object, in each compression: the regions are the segments that were written."""
    datasets = images(tmp_path)
    for compression in SYNTAXES:
        output = run(APART, ("seg", "labelmap"), f'compression = "{compression}";')
        taken = ('{ label = "Each"; method = "object"; object = { kind = "seg"; roi = "*"; each = true; own = true; }; }',)
        again = run(taken, ("seg",), "", "--object", output / "labelmap.dcm")
        assert np.array_equal(seg_masks(again / "seg.dcm", datasets), seg_masks(output / "seg.dcm", datasets))
        assert [item.SegmentLabel for item in pydicom.dcmread(again / "seg.dcm").SegmentSequence] == ["Left", "Right"]


def test_maps_are_deflated(run):
    """Parametric maps have the codes of the uncompressed file."""
    more = 'texture = { patterns = [ "lbp" ]; };'
    plain, rle = (pydicom.dcmread(run(APART, ("pmap",), f'{more} compression = "{compression}";') / "pmap-lbp.dcm")
                  for compression in ("none", "rle"))
    assert rle.file_meta.TransferSyntaxUID == "1.2.840.10008.1.2.1.99"
    assert rle == plain
