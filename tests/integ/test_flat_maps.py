"""Maps of patterns, responses and features of 2-D images, and programs of the site on them.

The references are scikit-image (LBP), definitions in NumPy (TLBAP, LANADP) and SciPy. Objects are checked by dciodvfy, pydicom,
highdicom and dcm2pnm; NIfTI by nibabel."""

import json
import subprocess

import highdicom
import nibabel
import numpy as np
import pydicom
import pytest
import scipy.ndimage
from conftest import PEERS, run_program, storescu
from test_deidentify import clean
from test_flat import CR, SC, SERVICE, image, of_rgb
from test_flat_results import CODES, US_FRAMES
from test_picture import errors
from test_run_programs import HEAD, Site, label
from texture_runs import lanadp, lbp, tlbap

PADDING = 65535
PATTERNS = {"lbp": lbp, "tlbap": tlbap, "lanadp": lanadp}
MAPS = 'texture = { regions = [ "segments", "volume" ]; first_order = false; patterns = [ "lbp", "tlbap", "lanadp" ]; };'
RNG = np.random.default_rng(17)


def run(folder, source, results, texture=MAPS, choice=(), check=True, low=400.0):
    path = folder / "flat.conf"
    path.write_text(f"""root = "{folder / 'root'}"; pipelines = ( {{ name = "flat"; flat = true; results = [ {results} ];
        segments = ( {{ label = "Part"; method = "range"; range = [ {low}, 65535.0 ]; {CODES} }} ); {texture} }} );""")
    return run_program("noctule", "--config", path, "run", "--pipeline", "flat", *choice, "--output", folder / "out", source,
                       check=check)


def stored_codes(codes):
    """Returns codes as stored: with a border of padding."""
    return np.pad(codes.astype(np.uint16), 1, constant_values=PADDING)


def of_nifti(path):
    """Returns rows and columns of a file with one slice, and its header."""
    volume = nibabel.load(path)
    return np.asarray(volume.dataobj)[:, :, 0].T, volume.header


def assert_capture(path, source, name, codes, frame=None):
    """Checks a map of a pattern: pixels, references, meaning, and that it states no place."""
    assert errors(path) == []
    ds = pydicom.dcmread(path)
    assert ds.SOPClassUID == "1.2.840.10008.5.1.4.1.1.7.3" and ds.NumberOfFrames == 1 and ds.ConversionType == "WSD"
    assert np.array_equal(ds.pixel_array, stored_codes(codes)) and ds.PixelPaddingValue == PADDING
    assert not {"FrameOfReferenceUID", "PixelSpacing", "ImagePositionPatient", "NominalScannedPixelSpacing"} & set(ds.dir())
    (origin,) = ds.SourceImageSequence
    assert (origin.ReferencedSOPClassUID, origin.ReferencedSOPInstanceUID) == (source.SOPClassUID, source.SOPInstanceUID)
    assert origin.get("ReferencedFrameNumber") == frame and origin.SpatialLocationsPreserved == "YES"
    (series,) = ds.ReferencedSeriesSequence
    assert series.SeriesInstanceUID == source.SeriesInstanceUID and ds.SeriesInstanceUID != source.SeriesInstanceUID
    (mapping,) = ds.RealWorldValueMappingSequence
    assert mapping.LUTLabel == name.upper() and mapping.MeasurementUnitsCodeSequence[0].CodeValue == "1"
    assert (mapping.RealWorldValueSlope, mapping.RealWorldValueIntercept) == (1, 0)
    assert mapping.QuantityDefinitionSequence[0].ConceptCodeSequence[0].CodeValue == name.upper()
    assert ds.DerivationCodeSequence[0].CodeValue == name.upper()
    read = highdicom.imread(path)
    shown = read.get_frame(1, apply_real_world_transform=True, apply_voi_transform=False, apply_presentation_lut=False)
    assert np.array_equal(shown[1:-1, 1:-1], codes)
    subprocess.run(["dcm2pnm", path, path.with_suffix(".pgm")], check=True, capture_output=True)
    return ds


def colour(frames=None):
    rgb = RNG.integers(0, 256, (*([frames] if frames else []), 37, 51, 3)).astype(np.uint8)
    return rgb, of_rgb(rgb)


GREY = RNG.integers(0, 900, (45, 33)).astype(np.uint16)
IMAGES = {
    "CR": lambda path: (image(path, GREY, CR, PixelSpacing=[0.4, 0.1], BurnedInAnnotation="NO"), [GREY]),
    "CR-without-spacing": lambda path: (image(path, GREY, CR), [GREY]),
    "US-frames": lambda path: (lambda rgb, grey: (image(path, rgb, US_FRAMES, "RGB"), list(grey)))(*colour(3)),
    "SC-colour": lambda path: (lambda rgb, grey: (image(path, rgb, SC, "RGB", NominalScannedPixelSpacing=[0.2, 0.2]), [grey]))(*colour()),
}


@pytest.mark.parametrize("name", IMAGES)
def test_maps_of_patterns(tmp_path, name):
    source, planes = IMAGES[name](tmp_path / "in.dcm")
    run(tmp_path, tmp_path / "in.dcm", '"seg", "pmap", "nifti"', low=100.0, choice=("--stacks", "all") if len(planes) > 1 else ())
    uids = set()
    for number, plane in enumerate(planes, 1):
        out = next((tmp_path / "out").glob(f"*-{number}")) if len(planes) > 1 else tmp_path / "out"
        histograms = {(row["segment_number"], row["pattern"]): row["histogram"] for row in json.loads((out / "patterns.json").read_text())}
        inside = plane[1:-1, 1:-1] >= 100
        for pattern, reference in PATTERNS.items():
            codes = reference(plane.astype(int))
            ds = assert_capture(out / f"capture-{pattern}.dcm", source, pattern, codes, number if len(planes) > 1 else None)
            uids.add(ds.SOPInstanceUID)
            assert ds.BurnedInAnnotation == ("NO" if name == "CR" else "YES")  # a name in the pixels is one in the codes
            # highdicom and viewers draw the pixels in their shape; lengths are those of the source.
            assert ds.get("PixelAspectRatio") == ([1000000, 250000] if name == "CR" else None)
            found, header = of_nifti(out / f"capture-{pattern}.nii.gz")
            assert np.array_equal(found, stored_codes(codes)) and found.dtype == np.uint16
            assert np.array_equal(np.bincount(codes.ravel(), minlength=256), histograms[0, pattern])
            assert np.array_equal(np.bincount(codes[inside], minlength=256), histograms[1, pattern])
        for path in out.glob("*.nii.gz"):
            _, header = of_nifti(path)
            if name in ("CR", "SC-colour"):
                assert header.get_xyzt_units()[0] == "mm" and header["descrip"] == b""
            else:
                assert header.get_xyzt_units()[0] == "unknown" and list(header["pixdim"][1:4]) == [1, 1, 1]
                assert b"in pixels" in header["descrip"].item()
        kinds = [(row["kind"], row["file"]) for row in json.loads((out / "job.json").read_text())["results"]]
        assert [("pmap", f"capture-{pattern}.dcm") in kinds for pattern in PATTERNS] == [True] * 3
    assert len(uids) == 3 * len(planes)


def test_a_capture_is_the_same_again_and_not_an_input(tmp_path):
    image(tmp_path / "in.dcm", GREY, CR)
    run(tmp_path, tmp_path / "in.dcm", '"pmap"')
    first = (tmp_path / "out" / "capture-lbp.dcm").read_bytes()
    (tmp_path / "out").rename(tmp_path / "before")
    run(tmp_path, tmp_path / "in.dcm", '"pmap"')
    assert (tmp_path / "out" / "capture-lbp.dcm").read_bytes() == first
    (tmp_path / "out").rename(tmp_path / "again")
    done = run(tmp_path, tmp_path / "again" / "capture-lbp.dcm", '"pmap"', check=False)
    assert "OWN_RESULT" in done.stdout + done.stderr and not (tmp_path / "out").exists(), done.stdout + done.stderr


@pytest.mark.parametrize("stated", ["NO", None])
def test_a_deidentified_copy_of_a_capture(tmp_path, stated):
    """Codes show as much text as their source: a copy leaves only if that states that it has none."""
    image(tmp_path / "in.dcm", GREY, CR, **({"BurnedInAnnotation": stated} if stated else {}))
    run(tmp_path, tmp_path / "in.dcm", '"pmap"')
    (line,) = clean(tmp_path, [tmp_path / "out" / "capture-lbp.dcm"])
    if stated:
        copy = pydicom.dcmread(line)
        assert errors(line) == [] and (copy.pixel_array == stored_codes(lbp(GREY.astype(int)))).all() and "Flat" not in str(copy)
        assert copy.SourceImageSequence[0].ReferencedSOPInstanceUID != pydicom.dcmread(tmp_path / "in.dcm").SOPInstanceUID
    else:
        assert line.startswith("BURNED_IN_TEXT: capture-lbp.dcm")


def test_an_image_of_edges_has_no_map(tmp_path):
    image(tmp_path / "in.dcm", GREY[:2], CR)
    done = run(tmp_path, tmp_path / "in.dcm", '"pmap"', MAPS.replace('"segments", ', ""), check=False)
    assert done.returncode != 0 and "PMAP_EMPTY" in done.stderr, done.stderr
    image(tmp_path / "in.dcm", GREY[:3, :3], CR)
    run(tmp_path, tmp_path / "in.dcm", '"pmap"', MAPS.replace('"segments", ', ""))
    assert_capture(tmp_path / "out" / "capture-lbp.dcm", pydicom.dcmread(tmp_path / "in.dcm"), "lbp", lbp(GREY[:3, :3].astype(int)))


@pytest.mark.parametrize("spacing", [True, False])
def test_responses_and_maps_of_features(tmp_path, spacing):
    """A mean filter against SciPy, and the mean of each window of the region against sums in NumPy."""
    image(tmp_path / "in.dcm", GREY, CR, **({"PixelSpacing": [0.4, 0.1]} if spacing else {}))
    texture = """texture = ( { first_order = false; response = [ "nifti" ]; filter = { kind = "mean"; size = 3; in_slice = true; }; },
                             { regions = [ "segments" ]; voxelwise = { files = [ "nifti" ]; first_order = [ "mean" ]; }; } );"""
    run(tmp_path, tmp_path / "in.dcm", '"seg"', texture)
    found, header = of_nifti(tmp_path / "out" / "response-1.nii.gz")
    expected = scipy.ndimage.uniform_filter(GREY.astype(float), 3, mode="constant")
    assert np.allclose(found[1:-1, 1:-1], expected[1:-1, 1:-1], rtol=0, atol=0.01)
    assert header.get_xyzt_units()[0] == ("mm" if spacing else "unknown")
    assert list(header["pixdim"][1:3]) == pytest.approx([0.1, 0.4] if spacing else [1, 1], rel=1e-6)
    mask = GREY >= 400
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    box = np.s_[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
    kernel = np.ones((3, 3))
    sums, counts = (scipy.ndimage.convolve(of.astype(float), kernel, mode="constant") for of in (GREY * mask, mask))
    found, header = of_nifti(tmp_path / "out" / "map-2-1-first_order-mean.nii.gz")
    assert found.shape == mask[box].shape and (np.isnan(found) == ~mask[box]).all()
    assert np.allclose(found[mask[box]], (sums / np.maximum(counts, 1))[box][mask[box]], rtol=1e-12)
    assert header.get_xyzt_units()[0] == ("mm" if spacing else "unknown")


@pytest.mark.parametrize("texture, named", [
    ('texture = { first_order = false; response = [ "pmap" ]; filter = { kind = "mean"; size = 3; in_slice = true; }; };', "texture.response"),
    ('texture = { regions = [ "segments" ]; voxelwise = { first_order = [ "mean" ]; }; };', "texture.voxelwise.files")])
def test_doubles_have_no_object(tmp_path, texture, named):
    image(tmp_path / "in.dcm", GREY, CR, PixelSpacing=[0.2, 0.2])
    done = run(tmp_path, tmp_path / "in.dcm", '"seg"', texture, check=False)
    assert done.returncode != 0 and "FLAT_UNSUITABLE" in done.stderr
    assert f'"pmap" in {named} (a Parametric Map; use "nifti") needs a position in the patient' in done.stderr, done.stderr


def test_patterns_through_the_service(daemon, tmp_path):
    """The histograms in the database and the delivered objects are those of the references, for a CR and two frames."""
    settings = SERVICE.format(root=tmp_path / "daemon0" / "root", segment="")
    settings = settings[:settings.index("pipelines = (")] + f"""
        pipelines = ( {{ name = "flat"; flat = true; results = [ "seg", "pmap" ]; {MAPS}
            segments = ( {{ label = "Part"; method = "range"; range = [ 100.0, 65535.0 ]; {CODES} }} ); }} );
        rules = ( {{ match = {{ }}; pipeline = "flat"; }} );"""
    d = daemon(settings=settings, dicom=PEERS).start()
    (tmp_path / "cr").mkdir()
    (tmp_path / "us").mkdir()
    sources = {"CR": image(tmp_path / "cr" / "a.dcm", GREY, CR, BurnedInAnnotation="NO"), "US": None}
    rgb, grey = colour(2)
    sources["US"] = image(tmp_path / "us" / "a.dcm", rgb, US_FRAMES, "RGB", InstanceNumber=7)
    storescu(d.port, tmp_path / "cr" / "a.dcm", tmp_path / "us" / "a.dcm")
    jobs = d.wait_jobs(3)
    assert {job["state"] for job in jobs} == {"DONE"}, [dict(job) for job in jobs]
    planes = {"image 1": ("CR", None, GREY), "image 7, frame 1": ("US", 1, grey[0]), "image 7, frame 2": ("US", 2, grey[1])}
    rows = d.query("SELECT v_jobs.stack, h.segment, h.pattern, h.counts FROM v_pattern_histograms h JOIN v_jobs USING (job)")
    assert len(rows) == 3 * 3 * 2
    for row in rows:
        _, _, plane = planes[row["stack"]]
        codes = PATTERNS[row["pattern"]](plane.astype(int))
        inside = np.ones_like(codes, bool) if row["segment"] == 0 else plane[1:-1, 1:-1] >= 100
        assert json.loads(row["counts"]) == np.bincount(codes[inside], minlength=256).tolist()
    rows = d.query("SELECT stack, path, sop_class_uid FROM v_results WHERE kind = 'pmap'")
    assert len(rows) == 9 and {row["sop_class_uid"] for row in rows} == {"1.2.840.10008.5.1.4.1.1.7.3"}
    for row in rows:
        modality, frame, plane = planes[row["stack"]]
        path = d.root / row["path"]
        name = path.stem.removeprefix("capture-")
        assert_capture(path, sources[modality], name, PATTERNS[name](plane.astype(int)), frame)


# --- programs of the site ---


@pytest.mark.parametrize("spacing", [[0.4, 0.1], None])
def test_a_program_on_an_image(tmp_path, spacing):
    """The program gets the values and the size of a pixel, or no unit; its mask is measured."""
    image(tmp_path / "in.dcm", GREY, CR, **({"PixelSpacing": spacing} if spacing else {}))
    site = Site(tmp_path)
    unit, size = ("mm", spacing[::-1]) if spacing else ("unknown", [1, 1])
    site.program("p", HEAD + f"assert image.header.get_xyzt_units()[0] == '{unit}'\n"
                 f"assert np.allclose(image.header['pixdim'][1:3], {size}, rtol=1e-6)\nsave(values >= 400)\n")
    out = site.run(f"( {label('Part', 1)} )", tmp_path / "in.dcm", more='unreviewed = true; flat = true; results = [ "seg", "sr" ]; '
                   'texture = { families = [ "first-order" ]; };')
    mask = pydicom.dcmread(out / "seg.dcm").pixel_array.astype(bool)
    assert (mask == (GREY >= 400)).all() and errors(out / "seg.dcm") == []
    (mean,) = [f for f in json.loads((out / "features.json").read_text()) if f.get("name") == "mean"]
    assert mean["value"] == pytest.approx(GREY[GREY >= 400].mean(), rel=1e-12)


@pytest.mark.parametrize("spacing", [[0.4, 0.1], None])
def test_the_lists_of_a_job_have_areas(daemon, tmp_path, spacing):
    """noctule show has columns of ml only for volumes, and areas in mm2 only if the size of a pixel is known. Images have no size."""
    (tmp_path / "archive").mkdir()
    settings = SERVICE.format(root=tmp_path / "daemon0" / "root", segment="")
    settings = settings[:settings.index("pipelines = (")] + f"""
        destinations = ( {{ name = "folder"; folder = "{tmp_path / 'archive'}"; send = [ "results", "images" ]; }} );
        pipelines = ( {{ name = "flat"; flat = true; deliver = [ "folder" ]; results = [ "seg" ]; texture = {{ first_order = true; filter = {{ kind = "mean"; size = 3; in_slice = true; }}; }};
            segments = ( {{ label = "Part"; method = "range"; range = [ 400.0, 65535.0 ]; {CODES} }} ); }} );
        rules = ( {{ match = {{ }}; pipeline = "flat"; }} );"""
    d = daemon(settings=settings, dicom=PEERS).start()
    image(tmp_path / "a.dcm", GREY, CR, **({"PixelSpacing": spacing} if spacing else {}))
    storescu(d.port, tmp_path / "a.dcm")
    (job,) = d.wait_jobs(1)
    pixels = int((GREY >= 400).sum())
    shown = d.ctl("show", str(job["job"])).stdout
    (images,) = [line for line in shown.splitlines() if line.split()[:1] == ["images"]]
    assert "0.0" not in images, shown
    (title,) = [line for line in shown.splitlines() if "SEGMENT" in line and "LABEL" in line]
    assert "(ml)" not in title and "PIXELS" in title and str(pixels) in shown, shown
    assert ("AREA (mm2)" in title) == bool(spacing) and (f"{pixels * 0.04:.2f}" in shown) == bool(spacing), shown
    # The note names the size of a pixel in the same way.
    (note,) = [row["note"] for row in d.query("SELECT note FROM v_jobs")]
    assert ("33 x 45 pixels of 0.1 x 0.4 mm," if spacing else "33 x 45 pixels,") in note, note
