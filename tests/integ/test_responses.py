"""Responses of filters as results: Parametric Maps and NIfTI of `noctule run`, equal to the reference maps of IBSI 2, to each
other and to the measured values, read by pydicom, highdicom, nibabel and dciodvfy."""

import json
import subprocess

import highdicom
import nibabel
import numpy as np
import pydicom
import pytest
from conftest import BIN, EMULATED, needs_emulator, phantom
from test_filter_maps import DATA, MAPS
from test_pmap import assert_dciodvfy_is_content
from test_texture_filter import FILTERS, convolved
from test_texture_grid import SPACING, blobs, shifted
from texture_runs import TYPE, series

PART = f'{{ label = "Part"; method = "range"; range = [ -1e9, 1e9 ]; {TYPE} }}'
PADDING = -np.finfo(float).max


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with texture groups. Returns the folder of the results."""
    def call(source, groups, programs=BIN, backend="cpu", extra="", status=0, name="out"):
        config = tmp_path / "noctule.conf"
        config.write_text(f'root = "{tmp_path / "root"}"; compute = {{ backend = "{backend}"; }}; pipelines = ( {{ name = "maps"; '
                          f'segments = ( {PART} ); results = [ "seg" ]; min_slices = 1; {extra} '
                          f'texture = ( {", ".join("{ " + group + " }" for group in groups)} ); }} );')
        done = subprocess.run([programs / "noctule", "--config", config, "run", "--pipeline", "maps", "--output",
                               tmp_path / name, source], text=True, capture_output=True, timeout=600)
        assert done.returncode == status, done.stderr
        return tmp_path / name if status == 0 else done.stderr

    return call


def group_of(line):
    """The texture group of a map of IBSI 2."""
    _, _, boundary, *words = line.split()
    settings = dict(word.split("=") for word in words if "=" in word)
    kernels = settings.pop("laws", None) or settings.pop("high", None) or settings.pop("riesz", None)
    if kernels:
        settings["kernels"] = kernels.replace(",", "")
    texts = [f'boundary = "{boundary}";'] + ["in_slice = true;"] * ("in_slice" in words)
    for name, value in settings.items():
        number = f"{float(value)}" if name in ("sigma_mm", "gamma", "lambda_mm", "theta_degrees") else value
        texts.append(f"{name} = {number};" if name in ("size", "energy", "level") or "." in number else f'{name} = "{value}";')
    return f'first_order = false; response = [ "pmap", "nifti" ]; filter = {{ {" ".join(texts)} }};'


def planes(map_):
    """The stored values of a map, in the order of frames."""
    return map_.pixel_array.reshape(map_.NumberOfFrames, map_.Rows, map_.Columns)


@pytest.mark.skipif(not DATA.exists(), reason="needs ../shared/data/ibsi2")
@pytest.mark.parametrize("phantom", sorted({line.split()[1] for line in MAPS}))
def test_reference_maps_of_ibsi(run, tmp_path, phantom):
    """Every voxel of every map within 1 % of the reference's range, in both files the same. The series has the voxels of the
    phantom's NIfTI file, because the slices of its DICOM files are in reverse order."""
    lines = [line for line in MAPS if line.split()[1] == phantom]
    image = nibabel.load(next((DATA / "phantoms/nifti" / phantom / "image").glob("*.nii*")))
    source = series(tmp_path / "in", np.asarray(image.dataobj).astype(np.int16).T, (2.0, 2.0, 2.0))
    compared = 0
    for first in range(0, len(lines), 16):
        part = lines[first:first + 16]
        output = run(source, [group_of(line) for line in part], name=f"from {first}")
        for number, line in enumerate(part, 1):
            expected = np.asarray(nibabel.load(DATA / "maps" / f"{line.split()[0]}.nii.gz").dataobj, float)
            written = nibabel.load(output / f"response-{number}.nii.gz")
            found = np.asarray(written.dataobj)
            assert written.get_data_dtype() == np.float64 and found.shape == image.shape
            assert np.array_equal(found.T, planes(pydicom.dcmread(output / f"response-{number}.dcm"))), line
            assert np.abs(found - expected).max() <= 0.01 * (expected.max() - expected.min()), line
            compared += 1
    assert compared == len(lines)


def test_the_map_is_exact_and_read_by_others(run, tmp_path):
    """A mean of integers has one rounding: to the step of the codes. pydicom and highdicom read each double, dciodvfy has no
    remark, and the features of the group are those of the map."""
    source = series(tmp_path / "in", shifted(), SPACING, intercepts=-24)
    values = shifted() - 24.0
    output = run(source, [f'filter = {{ {FILTERS["mean"]} }}; response = [ "pmap", "nifti" ];'], extra="series_number = 40;")
    path = output / "response-1.dcm"
    found = pydicom.dcmread(path)
    assert (found.SOPClassUID, found.BitsAllocated) == ("1.2.840.10008.5.1.4.1.1.30", 64)
    assert (found.SeriesNumber, found.ContentLabel) == (141, "RESPONSE_1")
    assert found.SeriesDescription == "maps, mean 3d mirror size 5"
    assert "BitsStored" not in found and "PixelData" not in found and found.DoubleFloatPixelPaddingValue == PADDING
    shared = found.SharedFunctionalGroupsSequence[0]
    mapping = shared.RealWorldValueMappingSequence[0]
    assert mapping.MeasurementUnitsCodeSequence[0].CodeValue == "[hnsf'U]"
    quantity = mapping.QuantityDefinitionSequence[0].ConceptCodeSequence[0]
    assert (quantity.CodeValue, quantity.CodingSchemeDesignator) == ("S60F", "IBSI")
    assert mapping.LUTExplanation == "mean 3d mirror size 5"
    expected = convolved(values, [np.full(5, 0.2)] * 3, "reflect")
    stored = planes(found)
    assert np.abs(stored - expected).max() < 1e-5
    step = 2.0 ** np.floor(np.log2(np.abs(stored[stored != 0]).min()) - 52)
    assert np.array_equal(stored, np.round(stored / step) * step)
    voi = shared.FrameVOILUTSequence[0]
    assert float(voi.WindowCenter) == pytest.approx((stored.max() + stored.min()) / 2, rel=1e-6, abs=1e-6)
    assert float(voi.WindowWidth) == pytest.approx(stored.max() - stored.min(), rel=1e-6)
    read = highdicom.pm.ParametricMap.from_dataset(pydicom.dcmread(path))
    assert read.pixel_array.dtype == np.float64  # without it, highdicom 0.28 decodes frames of integers only
    assert np.array_equal(read.get_stored_frames().reshape(stored.shape), stored)
    assert np.array_equal(read.get_frames(apply_real_world_transform=True).reshape(stored.shape), stored)
    assert_dciodvfy_is_content(path, next((tmp_path / "in").iterdir()))
    features = {f["name"]: f["value"] for f in json.loads((output / "features.json").read_text())}
    assert features["maximum"] == stored.max() and features["minimum"] == stored.min()
    nifti = nibabel.load(output / "response-1.nii.gz")
    assert np.array_equal(np.asarray(nifti.dataobj).T, stored)
    position = [float(v) for v in found.PerFrameFunctionalGroupsSequence[3].PlanePositionSequence[0].ImagePositionPatient]
    assert np.allclose((nifti.affine @ [0, 0, 3, 1])[:3] * [-1, -1, 1], position)


def test_resampled_and_shared_responses(run, tmp_path):
    """NIfTI has the voxels of the group. Groups that share a response write and measure the same as alone."""
    source = series(tmp_path / "in", blobs((16, 60, 70), (20, 20, 5), (48, 47, 10)), SPACING)
    resampled = f'resample = {{ isotropic_mm = 1.1; }}; filter = {{ {FILTERS["log"]} }}; response = [ "nifti" ];'
    plain = f'filter = {{ {FILTERS["log"]} }};'
    groups = [plain + 'families = [ "glcm" ];', resampled, plain + 'response = [ "pmap" ];', f'filter = {{ {FILTERS["mean"]} }};']
    output = run(source, groups)
    assert not (output / "response-1.dcm").exists() and not (output / "response-4.nii.gz").exists()
    grid = nibabel.load(output / "response-2.nii.gz")
    assert np.allclose(grid.header.get_zooms(), 1.1) and np.isfinite(np.asarray(grid.dataobj)).all()
    alone = run(source, [plain + 'response = [ "nifti" ];'], name="alone")
    assert np.array_equal(np.asarray(nibabel.load(alone / "response-1.nii.gz").dataobj).T,
                          planes(pydicom.dcmread(output / "response-3.dcm")))


@pytest.mark.parametrize("compression", ["none", "deflated"])
def test_padding_has_no_response(run, tmp_path, compression):
    values = shifted().copy()
    values[2, 5:9, 4:7] = -2000
    source = series(tmp_path / "in", values, SPACING, PixelPaddingValue=-2000)
    output = run(source, [f'filter = {{ {FILTERS["mean"]} }}; response = [ "pmap", "nifti" ];'],
                 extra=f'compression = "{compression}";' * (compression != "none"))
    stored = planes(pydicom.dcmread(output / "response-1.dcm"))
    nifti = np.asarray(nibabel.load(output / "response-1.nii.gz").dataobj).T
    assert np.array_equal(stored == PADDING, values == -2000)
    assert np.array_equal(np.isnan(nifti), values == -2000)
    assert np.array_equal(nifti[values != -2000], stored[values != -2000])


@pytest.mark.parametrize("group, message", (
    ('response = [ "nifti" ];', "add filter"),
    ('resample = { isotropic_mm = 2.0; }; filter = { kind = "mean"; size = 3; }; response = [ "pmap" ];', 'use "nifti"')))
def test_responses_that_are_not_possible(run, tmp_path, group, message):
    source = series(tmp_path / "in", shifted(), SPACING)
    assert message in run(source, [group], status=5)


@needs_emulator
def test_gpus_write_the_same_files(run, tmp_path):
    source = series(tmp_path / "in", shifted(), SPACING)
    groups = [f'filter = {{ {FILTERS[name]} }}; response = [ "pmap", "nifti" ];' for name in ("mean", "log", "wavelet")]
    folders = [run(source, groups, *programs, name=programs[1]) for programs in ((BIN, "cpu"), (EMULATED, "cuda"))]
    for path in folders[0].glob("response-*"):
        assert path.read_bytes() == (folders[1] / path.name).read_bytes()
    assert len(list(folders[1].glob("response-*"))) == 6


def test_a_straightened_stack(run, tmp_path):
    """The map has the slices of the upright grid, as NIfTI has, and refers to all images."""
    phantom(tmp_path / "in", "--size", "48x40x12", "--spacing", "1,1,3", "--tilt", "12")
    output = run(tmp_path / "in", [f'filter = {{ {FILTERS["mean"]} }}; response = [ "pmap", "nifti" ];'])
    found, nifti = pydicom.dcmread(output / "response-1.dcm"), nibabel.load(output / "response-1.nii.gz")
    stored, values = planes(found), np.asarray(nifti.dataobj).T
    assert stored.shape == values.shape and np.array_equal(stored == PADDING, np.isnan(values))
    assert np.isnan(values).any() and np.array_equal(stored[stored != PADDING], values[stored != PADDING])
    shared = found.SharedFunctionalGroupsSequence[0]
    assert len(shared.DerivationImageSequence[0].SourceImageSequence) == 12
    position = [float(v) for v in found.PerFrameFunctionalGroupsSequence[-1].PlanePositionSequence[0].ImagePositionPatient]
    assert np.allclose((nifti.affine @ [0, 0, len(stored) - 1, 1])[:3] * [-1, -1, 1], position)
