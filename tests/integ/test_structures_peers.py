"""RT Structure Sets of `noctule run`, read by other software. Each reader makes the mask of the SEG, voxel for voxel, on all
kinds of planes that it supports.

Contours lie within the edges of voxels, so that readers which round points to voxels (platipy, rt-utils) agree with those
that test centres (plastimatch, dcmrtstruct2nii)."""

import subprocess

import numpy as np
import pydicom
import pytest
import SimpleITK
from conftest import SHARED, needs_shared, phantom
from skimage.draw import polygon2mask
from test_contours import Planes
from test_run import seg_masks
from test_run_structures import GEOMETRIES, run, turn, uneven

def volume(planes):
    reader = SimpleITK.ImageSeriesReader()
    reader.SetFileNames([str(file.filename) for file in planes.files])
    return reader.Execute()


def read_by_slices(path, _series, planes):
    """Even-odd rule at the centres of voxels, in the space of each slice by SimpleITK."""
    ds = pydicom.dcmread(path)
    images = {file.SOPInstanceUID: (z, SimpleITK.ReadImage(file.filename)) for z, file in enumerate(planes.files)}
    for roi in ds.ROIContourSequence:
        mask = np.zeros(planes.shape, bool)
        for contour in roi.get("ContourSequence", []):
            z, image = images[contour.ContourImageSequence[0].ReferencedSOPInstanceUID]
            points = [image.TransformPhysicalPointToContinuousIndex(point)
                      for point in np.reshape([float(value) for value in contour.ContourData], (-1, 3))]
            assert max(abs(point[2]) for point in points) < 0.01
            mask[z] ^= polygon2mask(planes.shape[1:], np.array(points)[:, 1::-1])
        yield mask


def read_by_platipy(path, _series, planes):
    from platipy.dicom.io.rtstruct_to_nifti import transform_point_set_from_dicom_struct
    masks, _ = transform_point_set_from_dicom_struct(volume(planes), pydicom.dcmread(path))
    return [SimpleITK.GetArrayFromImage(mask) > 0 for mask in masks]


def read_by_rt_utils(path, series, planes):
    from rt_utils import RTStructBuilder
    builder = RTStructBuilder.create_from(str(series), str(path))
    order = [file.SOPInstanceUID for file in builder.series_data]
    slices = [order.index(file.SOPInstanceUID) for file in planes.files]
    for roi, drawn in zip(builder.ds.StructureSetROISequence, builder.ds.ROIContourSequence, strict=True):
        if "ContourSequence" in drawn:
            yield np.moveaxis(builder.get_roi_mask_by_name(roi.ROIName), 2, 0)[slices]


def read_by_dcmrtstruct2nii(path, series, planes):
    pydicom.read_file = pydicom.dcmread  # it needs this name of pydicom 2
    from dcmrtstruct2nii import dcmrtstruct2nii
    output = path.parent / "nii"
    dcmrtstruct2nii(str(path), str(series), str(output), gzip=False, convert_original_dicom=False)
    for name in ("A", "B", "C"):
        yield SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(str(output / f"mask_{name}.nii"))) > 0


def read_by_plastimatch(path, series, planes):
    output = path.parent / "plastimatch"
    subprocess.run(["plastimatch", "convert", "--input", path, "--referenced-ct", series, "--output-prefix", output,
                    "--prefix-format", "nrrd"], check=True, capture_output=True)
    for roi in pydicom.dcmread(path).StructureSetROISequence:
        yield SimpleITK.GetArrayFromImage(SimpleITK.ReadImage(output / f"{roi.ROIName}.nrrd")) > 0


READERS = {function.__name__.removeprefix("read_by_"): function
           for function in (read_by_slices, read_by_platipy, read_by_rt_utils, read_by_dcmrtstruct2nii, read_by_plastimatch)}
# These round points to voxels, and then lose parts that are one voxel wide, whose rounded outline has no area.
ROUNDING = ("platipy", "dcmrtstruct2nii")
# All but one take the series for one upright volume, in which shifted slices have no place; rt-utils needs no even distances.
SKIPPED = {"tilted": ("platipy", "dcmrtstruct2nii", "plastimatch", "rt_utils"), "uneven": ("platipy", "dcmrtstruct2nii", "plastimatch")}
TYPE = 'type = { code = "78961009"; scheme = "SCT"; meaning = "Spleen"; };'
SEGMENTS = f"""{{ label = "A"; method = "range"; range = [ 20.5, 90.5 ]; {TYPE} }},
               {{ label = "B"; method = "range"; range = [ 90.5, 3000.0 ]; {TYPE} }},
               {{ label = "C"; method = "range"; range = [ 20.5, 90.5 ]; then = ( {{ open_mm = 4.0; }}, {{ keep = 1; }} ); {TYPE} }}"""


@pytest.mark.parametrize("name", GEOMETRIES)
def test_readers_agree(tmp_path, name):
    options, change = GEOMETRIES[name]
    # rt-utils 1.2.7 confuses columns with rows, of slices and of pixels, and platipy 0.7.2 those of slices.
    square = {"40x31x11": "48x48x11", "48x40x21": "48x48x21", "70x61x12": "64x64x12", "40x31x3": "48x48x3",
              "2,3,4": "3,3,4", "0.5,0.75,10": "0.75,0.75,10"}
    files = phantom(tmp_path / "in", "--spacing", "2,2,3", *(square.get(option, option) for option in options))
    if change is uneven:
        uneven(files)
    elif change:
        turn(files, *change, (-31.5, 12.25, 700))
    planes = Planes(sorted((tmp_path / "in").glob("*.dcm")))
    output = run(tmp_path, tmp_path / "in", segments=SEGMENTS)
    expected = seg_masks(output / "seg.dcm", planes.files)
    assert all(mask.any() for mask in expected)
    for reader, function in READERS.items():
        if reader in SKIPPED.get(name, ()):
            continue
        masks = list(function(output / "rtstruct.dcm", tmp_path / "in", planes))
        differ = [np.count_nonzero(mask != peer) for mask, peer in zip(masks, expected, strict=True)]
        if reader in ROUNDING:  # Dice
            assert 2 * (masks[2] & expected[2]).sum() / (masks[2].sum() + expected[2].sum()) >= 0.999, (reader, differ)
        else:
            assert differ == [0, 0, 0], reader


@needs_shared
@pytest.mark.parametrize("patient", ("STS_001", "STS_002"))
@pytest.mark.parametrize("modality", ("CT", "PET", "MR_T1"))
def test_readers_agree_on_patients(tmp_path, patient, modality):
    home = SHARED / f"sarcoma/{patient}/{modality}"
    (drawn,) = (home / "mask").glob("*.dcm")
    segments = f"""{{ label = "A"; method = "object"; object = {{ kind = "rtstruct"; roi = "*"; }}; roi_type = "GTV"; {TYPE} }},
                   {{ label = "B"; method = "range"; range = {{ percentile = [ 60.0, 100.0 ]; }}; hidden = true; {TYPE} }},
                   {{ label = "C"; method = "range"; from = "B"; range = [ -100000.0, 100000.0 ];
                      then = ( {{ open_mm = 6.0; }}, {{ keep = 1; }} ); {TYPE} }}"""
    output = run(tmp_path, home / "image", segments=segments, arguments=("--object", drawn))
    said = subprocess.run(["dciodvfy", output / "rtstruct.dcm"], text=True, capture_output=True)
    assert "Error" not in said.stdout + said.stderr
    planes = Planes(sorted((home / "image").glob("*.dcm")))
    expected = seg_masks(output / "seg.dcm", planes.files)
    for reader in (read_by_slices, read_by_plastimatch):
        for mask, peer in zip(reader(output / "rtstruct.dcm", home / "image", planes), expected, strict=True):
            assert np.count_nonzero(mask != peer) == 0 and peer.any(), reader.__name__
