"""Results of 2-D images, checked by independent readers: dciodvfy, pydicom, highdicom, dsrdump, dcm2pnm, nibabel.

The truth is drawn: rectangles of known place and size in images of each kind. Areas are rows x columns x spacing."""

import io
import json
import os
import pathlib
import subprocess

import chromium
import highdicom
import nibabel
import numpy as np
import PIL.Image
import pydicom
import pytest
from conftest import drop, needs_shared, run_program
from test_flat import CR, DX, NM, SINGLES, US, image
from test_picture import errors
from test_seg_labelmap import UNKNOWN
from test_slices import site_of
from test_viewer import browser, canvas, errors_of, open_job, shown

US_FRAMES, SC, XA = "1.2.840.10008.5.1.4.1.1.3.1", "1.2.840.10008.5.1.4.1.1.7", "1.2.840.10008.5.1.4.1.1.12.1"
# dciodvfy does not know that this retired class has several frames.
US_RETIRED, RETIRED_IS_UNKNOWN = "1.2.840.10008.5.1.4.1.1.3", "Shall not be present for Referenced SOP Class that is not multi-frame"
CODES = 'type = { code = "T-D0050"; scheme = "SRT"; meaning = "Tissue"; };'
OBJECTS = '"seg", "labelmap", "sr", "picture"'


def block(rows=70, columns=90, top=30, left=50, high=40, wide=25, dtype=np.uint16, low=100, value=900):
    """Returns values with a rectangle, and its mask."""
    mask = np.zeros((rows, columns), bool)
    mask[top:top + high, left:left + wide] = True
    return np.where(mask, value, low).astype(dtype), mask


def run(folder, source, results=OBJECTS, options="", choice=(), least=500.0, **more):
    """Runs a pipeline on 2-D images. Returns the process; its files are in folder / "out"."""
    path = folder / "flat.conf"
    path.write_text(f"""root = "{folder / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ {results} ]; {options}
        segments = ( {{ label = "Block"; method = "range"; range = [ {least}, 65535.0 ]; color = [ 1.0, 0.0, 0.0 ]; {CODES} }},
                     {{ label = "Nothing"; method = "range"; range = [ 65530.0, 65535.0 ]; {CODES} }} );
        texture = {{ regions = [ "segments" ]; families = [ "first-order", "shape-2d" ]; }}; }} );""")
    return run_program("noctule", "--config", path, "run", "--pipeline", "flat", *choice, "--output", folder / "out", source,
                       **more)


def source_of(item):
    frame = item.get("ReferencedFrameNumber")
    return item.ReferencedSOPInstanceUID, None if frame is None else int(frame)


def assert_valid(folder, source):
    """Checks each object with dciodvfy, and that DCMTK reads reports and pictures."""
    known = [RETIRED_IS_UNKNOWN] if source.SOPClassUID == US_RETIRED else []
    for path in folder.glob("*.dcm"):
        here = known + list(UNKNOWN) if path.name == "labelmap.dcm" else known
        assert [e for e in errors(path) if not any(words in e for words in here)] == [], path
    dump = subprocess.run(["dsrdump", folder / "sr.dcm"], capture_output=True, text=True)
    assert dump.returncode == 0 and dump.stderr == "" and "Imaging Measurement Report" in dump.stdout
    for path in folder.glob("picture*.dcm"):
        subprocess.run(["dcm2pnm", path, folder / "picture.ppm"], check=True, capture_output=True)


def assert_seg_is(path, ds, mask, frame=None, segment=1):
    """Checks pixels and references with highdicom, and that there is no geometry."""
    seg = highdicom.seg.segread(path)
    if frame is None:
        found = seg.get_pixels_by_source_instance([ds.SOPInstanceUID], segment_numbers=[segment])
    else:
        found = seg.get_pixels_by_source_frame(ds.SOPInstanceUID, [frame], segment_numbers=[segment])
    assert (found[0, ..., 0].astype(bool) == mask).all()
    raw = pydicom.dcmread(path)
    assert "FrameOfReferenceUID" not in raw and raw.PatientOrientation in ("", None)
    for groups in [*raw.SharedFunctionalGroupsSequence, *raw.PerFrameFunctionalGroupsSequence]:
        assert not {"PlanePositionSequence", "PlaneOrientationSequence", "PixelMeasuresSequence"} & set(groups.dir())
    for groups in raw.PerFrameFunctionalGroupsSequence:
        (source,) = groups.DerivationImageSequence[0].SourceImageSequence
        assert source_of(source) == (ds.SOPInstanceUID, frame) and source.ReferencedSOPClassUID == ds.SOPClassUID
        assert source.SpatialLocationsPreserved == "YES"
    return raw


def group_of(path, label="Block"):
    """Returns the group of a segment, as highdicom reads it."""
    content = highdicom.sr.srread(path).content
    (group,) = [g for g in [*content.get_planar_roi_measurement_groups(), *content.get_volumetric_roi_measurement_groups()]
                if g.tracking_identifier == f"flat: {label}"]
    return group


def values_of(group):
    return {m.name.meaning: (m.value, m.unit.value) for m in group.get_measurements()}


def texts_of(path):
    return subprocess.run(["dsrdump", "+Pl", path], capture_output=True, text=True, check=True).stdout


# --- objects ---


@pytest.mark.parametrize("sop_class, spacing, size", [
    (DX, {"ImagerPixelSpacing": [0.2, 0.1]}, (0.2, 0.1)),
    (CR, {"PixelSpacing": [0.15, 0.15]}, (0.15, 0.15)),
    (XA, {"ImagerPixelSpacing": [0.4, 0.4], "EstimatedRadiographicMagnificationFactor": 2.0}, (0.2, 0.2)),
    (US, {}, None),
    (NM, {"PixelSpacing": [2.4, 2.4]}, (2.4, 2.4)),
    (SC, {"NominalScannedPixelSpacing": [0.1, 0.1]}, (0.1, 0.1))])
def test_a_rectangle(tmp_path, sop_class, spacing, size):
    stored, mask = block()
    ds = image(tmp_path / "in.dcm", stored, sop_class, PatientOrientation=["L", "F"], **spacing)
    run(tmp_path, tmp_path / "in.dcm", OBJECTS + (', "nifti"' if size else ""))
    out = tmp_path / "out"
    assert_valid(out, ds)
    seg = assert_seg_is(out / "seg.dcm", ds, mask)
    assert seg.NumberOfFrames == 1  # the empty segment has none
    labels = assert_seg_is(out / "labelmap.dcm", ds, mask)
    assert (labels.pixel_array == mask).all() and labels.SegmentationType == "LABELMAP"
    # The report: areas are those of the drawing, and in mm only if the header states a spacing.
    group = group_of(out / "sr.dcm")
    assert isinstance(group, highdicom.sr.PlanarROIMeasurementsAndQualitativeEvaluations)
    region = group.referenced_segmentation_frame
    assert source_of(region[0].ReferencedSOPSequence[0]) == (seg.SOPInstanceUID, 1)
    assert source_of(region[1].ReferencedSOPSequence[0]) == (ds.SOPInstanceUID, None)
    values, text = values_of(group), texts_of(out / "sr.dcm")
    assert values["Number of voxels"][0] == 40 * 25 and values["Mean"][0] == 900
    spaced = [meaning for meaning in ("Horizontal Pixel Spacing", "Vertical Pixel Spacing") if meaning in text]
    if size:
        area = 40 * 25 * size[0] * size[1]
        # The mesh cuts an eighth of a pixel off each corner.
        assert values["Surface of the mesh in one slice"] == (pytest.approx(area - size[0] * size[1] / 2, rel=1e-12), "mm2")
        assert len(spaced) == 2 and f'"{size[1]:g}" (mm,UCUM' in text and f'"{size[0]:g}" (mm,UCUM' in text
        assert "Lengths: " in text
        # The first pixel is at 0 mm; columns go to the left of RAS, and rows to its back.
        label = nibabel.load(out / "labels.nii.gz")
        x, y = np.meshgrid(np.arange(90), np.arange(70))
        at = np.linalg.inv(label.affine) @ [(-x * size[1]).ravel(), (-y * size[0]).ravel(), 0 * x.ravel(), 1 + 0 * x.ravel()]
        i, j, k = at[:3].round().astype(int)
        assert abs(at[:3] - [i, j, k]).max() < 1e-4 and label.shape == (90, 70, 1)
        assert (np.asarray(label.dataobj)[i, j, k] == mask.ravel()).all()
        assert (np.asarray(nibabel.load(out / "volume.nii.gz").dataobj)[i, j, k] == stored.ravel()).all()
    else:
        assert spaced == [] and "(mm" not in text and "The image has no pixel spacing in mm." in text
        assert not any(unit.startswith("mm") for _, unit in values.values())
    # The empty segment has no frame to refer to; its numbers are missing, with the reason.
    assert isinstance(group_of(out / "sr.dcm", "Nothing"), highdicom.sr.VolumetricROIMeasurementsAndQualitativeEvaluations)
    assert json.loads((out / "job.json").read_text())["volume"]["slices"] == 1


@pytest.mark.parametrize("sop_class", [US_FRAMES, XA, NM])
def test_each_frame_is_referred_to_by_its_number(tmp_path, sop_class):
    drawn = [block(top=10 * i, left=7 * i, high=5 + i, wide=9) for i in range(1, 5)]
    ds = image(tmp_path / "in.dcm", np.stack([stored for stored, _ in drawn]), sop_class)
    run(tmp_path, tmp_path / "in.dcm", choice=("--stacks", "all"))
    folders = {path.name.rsplit("-", 1)[1]: path for path in (tmp_path / "out").iterdir()}
    assert sorted(folders) == ["1", "2", "3", "4"]
    uids = set()
    for number, (_, mask) in enumerate(drawn, 1):
        out = folders[str(number)]
        assert_valid(out, ds)
        for name in "seg.dcm", "labelmap.dcm":
            uids.add(assert_seg_is(out / name, ds, mask, frame=number).SOPInstanceUID)
        group = group_of(out / "sr.dcm")
        region = group.referenced_segmentation_frame
        assert source_of(region[1].ReferencedSOPSequence[0]) == (ds.SOPInstanceUID, number)
        assert values_of(group)["Number of voxels"][0] == mask.sum()
        report = pydicom.dcmread(out / "sr.dcm")
        (library,) = [item for item in report.ContentSequence if item.ValueType == "CONTAINER"
                      and item.ConceptNameCodeSequence[0].CodeValue == "111028"]
        images = [item for item in library.ContentSequence[0].ContentSequence if item.ValueType == "IMAGE"]
        assert [source_of(item.ReferencedSOPSequence[0]) for item in images] == [(ds.SOPInstanceUID, number)]
        for name in "picture.dcm", "picture-overview.dcm":
            (source,) = pydicom.dcmread(out / name).SourceImageSequence
            assert source_of(source) == (ds.SOPInstanceUID, number)
    assert len(uids) == 8  # no two frames share an object


def test_several_segments_have_frames_of_their_own(tmp_path):
    """The report refers to the frame of the SEG that has the segment, which empty segments before it do not have."""
    stored, mask = block()
    stored[5:9, 5:15] = 300
    ds = image(tmp_path / "in.dcm", stored, DX, PixelSpacing=[0.5, 0.5])
    path = tmp_path / "flat.conf"
    ranges = {"None": (5000, 6000), "Low": (200, 400), "High": (800, 1000)}
    segments = ", ".join(f'{{ label = "{label}"; method = "range"; range = [ {a}.0, {b}.0 ]; {CODES} }}'
                         for label, (a, b) in ranges.items())
    path.write_text(f"""root = "{tmp_path / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ "seg", "sr" ];
        segments = ( {segments} ); sr_class = "comprehensive-3d";
        texture = {{ regions = [ "segments" ]; families = [ "shape-2d" ]; }}; }} );""")
    run_program("noctule", "--config", path, "run", "--pipeline", "flat", "--output", tmp_path / "out", tmp_path / "in.dcm")
    seg = pydicom.dcmread(tmp_path / "out/seg.dcm")
    numbers = [g.SegmentIdentificationSequence[0].ReferencedSegmentNumber for g in seg.PerFrameFunctionalGroupsSequence]
    assert numbers == [2, 3] and errors(tmp_path / "out/sr.dcm") == [] and errors(tmp_path / "out/seg.dcm") == []
    assert_seg_is(tmp_path / "out/seg.dcm", ds, stored == 300, segment=2)
    assert_seg_is(tmp_path / "out/seg.dcm", ds, mask, segment=3)
    for frame, label, pixels in (1, "Low", 40), (2, "High", 1000):
        group = group_of(tmp_path / "out/sr.dcm", label)
        assert source_of(group.referenced_segmentation_frame[0].ReferencedSOPSequence[0])[1] == frame
        assert values_of(group)["Surface of the mesh in one slice"][0] == pytest.approx((pixels - 0.5) * 0.25, rel=1e-12)


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("kind", ["seg", "labelmap"])
def test_masks_are_read_again(tmp_path, frames, kind):
    """Noctule takes the mask of its own SEG for the frame to which it refers, and finds none for another frame."""
    stored, mask = block(high=21, wide=33)
    image(tmp_path / "in.dcm", np.stack([stored] * frames) if frames > 1 else stored, US_FRAMES if frames > 1 else US)
    stack = "image 1, frame 2" if frames > 1 else "image 1"
    run(tmp_path, tmp_path / "in.dcm", choice=("--stack", stack))
    path = tmp_path / "again.conf"
    path.write_text(f"""root = "{tmp_path / 'root'}"; pipelines = ( {{ name = "again"; flat = true; results = [ "seg", "sr" ];
        segments = ( {{ label = "Again"; method = "object"; object = {{ kind = "seg"; roi = "Block"; own = true; }}; {CODES} }} );
        texture = {{ regions = [ "segments" ]; families = [ "first-order" ]; }}; }} );""")

    def again(stack, check=True):
        return run_program("noctule", "--config", path, "run", "--pipeline", "again", "--output", tmp_path / "again", "--object",
                           tmp_path / f"out/{kind}.dcm", "--stack", stack, tmp_path / "in.dcm", check=check)

    again(stack)
    assert (pydicom.dcmread(tmp_path / "again/seg.dcm").pixel_array == mask).all()
    assert errors(tmp_path / "again/sr.dcm") == []
    assert again("image 1, frame 3", check=False).returncode != 0 if frames > 1 else True


# --- refusals ---


@pytest.mark.parametrize("results, spacing, named, lacks", [
    ('"seg", "rtstruct"', True, '"rtstruct" in results', "a position in the patient"),
    ('"seg", "codes"', False, '"codes"', "a pixel spacing in mm")])
def test_what_a_2d_image_cannot_have_is_refused(tmp_path, results, spacing, named, lacks):
    image(tmp_path / "in.dcm", block()[0], DX, **({"PixelSpacing": [0.2, 0.2]} if spacing else {}))
    path = tmp_path / "flat.conf"
    path.write_text(f"""root = "{tmp_path / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ {results} ];
        segments = ( {{ label = "Block"; method = "level-set"; range = [ 500.0, 65535.0 ]; {CODES}
                        shapes = ( {{ center = {{ voxel = [ 60.0, 40.0, 0.0 ]; }}; radius_voxels = 4.0; }} ); }} ); }} );""")
    done = run_program("noctule", "--config", path, "run", "--pipeline", "flat", "--output", tmp_path / "out",
                       tmp_path / "in.dcm", check=False)
    assert done.returncode != 0 and "FLAT_UNSUITABLE" in done.stderr, done.stderr
    assert f"{named}" in done.stderr and lacks in done.stderr and "in.dcm is a 2-D image" in done.stderr
    assert not list((tmp_path / "out").glob("*.dcm")) if (tmp_path / "out").exists() else True


# --- pictures ---


def bright(path):
    """Returns rows and columns of the white area of a picture."""
    white = pydicom.dcmread(path).pixel_array.min(axis=-1) > 250
    white = white[0] if white.ndim == 3 else white
    rows, columns = np.flatnonzero(white.sum(1) > 100), np.flatnonzero(white.sum(0) > 100)
    return rows[-1] - rows[0] + 1, columns[-1] - columns[0] + 1


@pytest.mark.parametrize("spacing", [(0.4, 0.1), (0.1, 0.2), (0.3, 0.3)])
def test_pictures_have_true_proportions(tmp_path, spacing):
    """A white image of 64 rows and 128 columns, with one black pixel, for a window."""
    stored = np.full((64, 128), 1000, np.uint16)
    stored[0, 0] = 0
    image(tmp_path / "in.dcm", stored, DX, PixelSpacing=list(spacing))
    run(tmp_path, tmp_path / "in.dcm", options="preview_window = [ 500.0, 1000.0 ]; omit_empty_frames = false;", least=0.0)
    rows, columns = bright(tmp_path / "out/picture.dcm")
    assert rows / columns == pytest.approx(64 * spacing[0] / (128 * spacing[1]), rel=0.03)
    rows, columns = bright(tmp_path / "out/picture-overview.dcm")
    assert rows / columns == pytest.approx(64 * spacing[0] / (128 * spacing[1]), rel=0.03)


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_the_window_of_the_header_is_for_display(tmp_path, photometric):
    """Values in the window's upper part are white, or black if MONOCHROME1. They are measured as they are in both."""
    stored, mask = block(rows=256, columns=256, top=64, left=64, high=128, wide=128)
    image(tmp_path / "in.dcm", stored, DX, photometric, WindowCenter=500, WindowWidth=600, PixelSpacing=[0.2, 0.2])
    run(tmp_path, tmp_path / "in.dcm")
    frame = pydicom.dcmread(tmp_path / "out/picture.dcm").pixel_array
    frame = frame[0] if frame.ndim == 4 else frame
    inside, outside = frame[24 + 256, 256], frame[24 + 40, 400]
    white, black = (inside, outside) if photometric == "MONOCHROME2" else (outside, inside)
    assert white.min() > 240 and black.max() < 15
    assert values_of(group_of(tmp_path / "out/sr.dcm"))["Mean"][0] == 900


@pytest.mark.parametrize("stated, written", [(None, "YES"), ("NO", "NO"), ("YES", "YES")])
def test_text_in_the_pixels(tmp_path, stated, written):
    """A capture may show the patient's name: its pictures say that it does not only if the capture says so."""
    image(tmp_path / "in.dcm", block()[0], SC, **({"BurnedInAnnotation": stated} if stated else {}))
    run(tmp_path, tmp_path / "in.dcm")
    for name in "picture.dcm", "picture-overview.dcm":
        assert pydicom.dcmread(tmp_path / "out" / name).get("BurnedInAnnotation") == written


# --- web UI ---


@pytest.mark.skipif(not chromium.PROGRAM, reason="chromium is not here")
@pytest.mark.parametrize("spacing", [[0.4, 0.1], None])
def test_the_viewer_shows_an_image(daemon, tmp_path, spacing):
    """One view without directions, in true proportion, and lengths only if the header states them."""
    stored, _ = block(rows=64, columns=128, top=20, left=30, high=30, wide=60)
    image(tmp_path / "in.dcm", stored, DX, **({"PixelSpacing": spacing} if spacing else {}))
    site = site_of(daemon, tmp_path, pipelines=f"""
        pipelines = ( {{ name = "flat"; flat = true; results = [ "seg", "sr" ]; preview_window = [ 500.0, 1000.0 ];
            segments = ( {{ label = "Block"; method = "range"; range = [ 500.0, 65535.0 ]; color = [ 1.0, 0.0, 0.0 ]; {CODES} }} );
            texture = {{ regions = [ "segments" ]; families = [ "shape-2d" ]; }}; }} );
        rules = ( {{ match = {{ }}; pipeline = "flat"; }} );""")
    drop([tmp_path / "in.dcm"], site.daemon.inbox / "a")
    (job,) = site.daemon.wait_jobs(1, seconds=300)
    assert job["state"] == "DONE", job
    planes = f"api/v1/jobs/{job['job']}/planes"
    about = json.loads(site.text(planes))["planes"]["ax"]
    assert about == {"count": 1, "columns": 128, "rows": 64, "pixel_mm": [spacing[1], spacing[0]] if spacing else [None, None],
                     "step_mm": None, "edges": ["", "", "", ""]}
    ratio = 128 * spacing[1] / (64 * spacing[0]) if spacing else 2.0
    wide, high = PIL.Image.open(io.BytesIO(site.get(planes + "/ax/0.png")[1])).size
    assert wide / high == pytest.approx(ratio, rel=0.02)
    with browser(tmp_path / "profile") as page:
        open_job(page, site, job)
        shown(page, "ax/0")
        texts = "(s => [...document.querySelectorAll(s)].map(e => e.textContent).join('|'))"
        assert "Axial" not in page.evaluate(texts + "('.v-bar button')") and page.evaluate(texts + "('.v-edge')") == "|||"
        assert page.evaluate("document.querySelector('.v-foot output').textContent") == "The only slice"
        assert page.evaluate("document.querySelectorAll('.v-foot input').length") == 0
        drawn = canvas(page).max(axis=2) > 15  # the image has values above black, its surroundings not
        rows, columns = np.flatnonzero(drawn.any(1)), np.flatnonzero(drawn.any(0))
        assert (columns[-1] - columns[0] + 1) / (rows[-1] - rows[0] + 1) == pytest.approx(ratio, rel=0.03)
        # The tables have pixels instead of millilitres, and a box only in mm.
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        sections = page.evaluate("[...document.querySelectorAll('section')].map(s => s.innerText)")
        (segments,) = [s for s in sections if s.startswith("Segments")]
        assert "pixels 1800" in " ".join(segments.split()) and ("box" in segments) == bool(spacing)
        assert not spacing or "6.0 x 12.0" in segments and "6.0 x 12.0 x" not in segments
        assert not any(s.startswith("Found and expected") for s in sections)
        assert errors_of(page) == []
        if pictures := os.environ.get("NOCTULE_PICTURES"):
            page.picture(pathlib.Path(pictures) / f"flat-{'mm' if spacing else 'pixels'}.png")
    with browser(tmp_path / "profile", scripts=False) as page:
        open_job(page, site, job)
        text = page.evaluate("document.querySelector('.viewer').textContent")
        assert "The only slice" in text and "Coronal" not in text and "Next slice" not in text


# --- real images ---

LEAST = 20  # a value that a part of each image has


@needs_shared
@pytest.mark.parametrize("name", sorted(p.name for p in SINGLES.glob("*_*")) if SINGLES.is_dir() else ["none"])
def test_real_images(tmp_path, name):
    (path,) = (SINGLES / name).glob("*.dcm")
    ds = pydicom.dcmread(path)
    frames = int(ds.get("NumberOfFrames", 1))
    run(tmp_path, path, least=float(LEAST), choice=("--stacks", "all") if frames > 1 else ())
    folders = [p for p in (tmp_path / "out").iterdir() if p.is_dir()] if frames > 1 else [tmp_path / "out"]
    assert len(folders) == frames
    for out in folders:
        number = int(out.name.rsplit("-", 1)[1]) if frames > 1 else None
        assert_valid(out, ds)
        seg = pydicom.dcmread(out / "seg.dcm")
        mask = seg.pixel_array.astype(bool)
        assert_seg_is(out / "seg.dcm", ds, mask[0] if mask.ndim == 3 else mask, frame=number)
        if ds.PhotometricInterpretation.startswith("MONOCHROME") and ds.file_meta.TransferSyntaxUID != "1.2.840.10008.1.2.4.51":
            value = ds.pixel_array * float(ds.get("RescaleSlope", 1)) + float(ds.get("RescaleIntercept", 0))
            value = value[number - 1] if number else value
            assert (mask == (value >= LEAST)).all()
        assert values_of(group_of(out / "sr.dcm"))["Number of voxels"][0] == mask.sum()
