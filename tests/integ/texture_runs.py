"""Runs of `noctule run` with texture, and their checks: series of given voxels, a pipeline, pattern codes by
definition, and a report against its tables."""

import json
import re
import subprocess
import sys

import highdicom
import numpy as np
import pydicom
import pytest
from conftest import BIN, SOURCE, phantom
from pydicom.uid import CTImageStorage, generate_uid
from skimage.feature import local_binary_pattern
from test_run import exact_values
from test_seg import ROOT, base_dataset, dciodvfy_remarks, save
from test_sr import children, code_of, name_of, one

sys.path.insert(0, str(SOURCE / "tests" / "bench"))
import peer_pipeline as peer  # noqa: E402

AGGREGATIONS = {"2d-averaged": "BTW3", "2d-slice-merged": "SUJT", "2.5d-direction-merged": "JJUI",
                "2.5d-merged": "ZW7Z", "3d-averaged": "ITBB", "3d-merged": "IAZD"}
PATTERNS = ("lbp", "tlbap", "lanadp")
TABLES = ["features.csv", "features.json"]
ALWAYS = ["job.json", "preview.png"]
TYPE = 'type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; };'


# --- pipelines, series and results ---


def segment(low, high, voxel, radius=0.5, label="Part"):
    """Returns a segment: the component around a voxel (x, y, z) with a ball, within a range."""
    at = ", ".join(f"{float(v)}" for v in voxel)
    return (f'{{ label = "{label}"; range = [ {float(low)}, {float(high)} ]; '
            f"shapes = ( {{ center = {{ voxel = [ {at} ]; }}; radius_voxels = {float(radius)}; }} ); {TYPE} }}")


def around_middle(low, high, radius_mm):
    """Returns the same around the middle of any volume."""
    return (f'{{ label = "Middle"; range = [ {float(low)}, {float(high)} ]; shapes = ( {{ '
            f"center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = {float(radius_mm)}; }} ); {TYPE} }}")


def pipeline(texture, segments, results=("seg",), extra=""):
    names = ", ".join(f'"{name}"' for name in results)
    return (f'pipelines = ( {{ name = "texture"; segments = ( {", ".join(segments)} ); results = [ {names} ]; '
            f"texture = {{ {texture} }}; min_slices = 1; {extra} }} );\n")


@pytest.fixture
def run(tmp_path):
    """Runs noctule run with one pipeline, which leaves the results in `output`. Returns the CompletedProcess."""
    config = tmp_path / "noctule.conf"

    def call(source, output, texture, segments, results=("seg",), status=0, arguments=(), **options):
        config.write_text(f'root = "{tmp_path / "root"}";' + pipeline(texture, segments, results))
        result = subprocess.run(
            [BIN / "noctule", "--config", config, "run", "--pipeline", "texture", "--output", output, *arguments,
             source], text=True, capture_output=True, timeout=300, **options)
        assert result.returncode == status, result.stdout + result.stderr
        return result

    return call


ALONG = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
OBLIQUE = (0.8, 0.6, 0.0), (-0.48, 0.64, 0.6), (0.36, -0.48, 0.8)  # of columns, rows and slices


def series(folder, stored, spacing=(2.0, 2.0, 2.0), slopes=1, intercepts=0, axes=ALONG, bits=None, **attributes):
    """Writes a classic series of stored[z, y, x]. spacing is mm between columns, rows and slices."""
    folder.mkdir()
    depth, rows, columns = stored.shape
    allocated = 8 * stored.dtype.itemsize
    slopes, intercepts = np.broadcast_to(slopes, depth), np.broadcast_to(intercepts, depth)
    for z, plane in enumerate(stored):
        dataset = base_dataset(f"texture {z}", CTImageStorage, rows, columns)
        dataset.SeriesInstanceUID = generate_uid(ROOT, [str(folder)])
        dataset.InstanceNumber = z + 1
        dataset.ImagePositionPatient = [f"{-30 + z * spacing[2] * axis:.10g}" for axis in axes[2]]
        dataset.ImageOrientationPatient = [*axes[0], *axes[1]]
        dataset.PixelSpacing = [spacing[1], spacing[0]]
        dataset.SliceThickness = spacing[2]
        dataset.RescaleSlope, dataset.RescaleIntercept = float(slopes[z]), float(intercepts[z])
        dataset.BitsAllocated = allocated
        dataset.BitsStored = bits or allocated
        dataset.HighBit = dataset.BitsStored - 1
        dataset.PixelRepresentation = int(np.issubdtype(stored.dtype, np.signedinteger))
        dataset.PixelData = plane.tobytes() + b"\0" * (plane.nbytes % 2)
        for keyword, value in attributes.items():
            setattr(dataset, keyword, value)
        save(dataset, folder / f"{z:04}.dcm")
    return folder


def read(folder):
    datasets, _ = peer.read_series(folder)
    return datasets, np.stack([d.pixel_array for d in datasets]), exact_values(datasets)


def features(folder):
    return json.loads((folder / "features.json").read_text())


def values_of(folder, segment=1, **settings):
    """Returns the values by name in one region, for the features with these settings. None: no value."""
    found = {f["name"]: f["value"] for f in features(folder)
             if f["segment_number"] == segment and all(f[key] == value for key, value in settings.items())}
    assert found
    return found


def reasons_of(folder, segment):
    return {f["name"]: f["reason"] for f in features(folder) if f["segment_number"] == segment}


def head(folder, options=("--size", "48x44x12")):
    phantom(folder, *options)
    return folder


SOFT = segment(0, 90, (24, 22, 6), 4, "Soft")


# Features that are undefined for one grey level or one value, and those of the family "shape".
ONE_LEVEL = {"correlation", "information_correlation_1", "maximal_correlation_coefficient", "skewness", "kurtosis"}
PLACE = {"voxel_count", "volume", "centroid_x", "centroid_y", "centroid_z", "box_columns", "box_rows", "box_slices"}


# --- local patterns ---

NEIGHBOURS = [(0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1), (1, 0), (1, 1)]  # (y, x): E, NE, N ...


def windows(plane):
    """Returns the centre, and the eight neighbours from E counter-clockwise, of each voxel that is not on an edge."""
    rows, columns = plane.shape
    inner = plane[1:-1, 1:-1].astype(int)
    return inner, [plane[1 + y:rows - 1 + y, 1 + x:columns - 1 + x].astype(int) for y, x in NEIGHBOURS]


def weigh(bits):
    return sum(bit.astype(np.uint8) << i for i, bit in enumerate(bits)).astype(np.uint8)


def lbp(plane):
    """By scikit-image where it does not interpolate: P=4 along the axes, P=8 at sqrt(2) on the diagonals."""
    axes = local_binary_pattern(plane, 4, 1).astype(int)[1:-1, 1:-1]
    codes = local_binary_pattern(plane, 8, 2**0.5).astype(int)[1:-1, 1:-1] & 0b10101010
    for bit in range(4):
        codes |= (axes >> bit & 1) << 2 * bit
    return codes.astype(np.uint8)


def tlbap(plane, numerator=9, denominator=10, strict=False):
    """In integers: n >= c and n * denominator >= numerator * maximum."""
    centre, around = windows(plane)
    bound = numerator * np.max([centre, *around], axis=0)
    if strict:
        return weigh([(n > centre) & (n * denominator > bound) for n in around])
    return weigh([(n >= centre) & (n * denominator >= bound) for n in around])


def lanadp(plane, integer=False):
    """Returns twice the averages of the two neighbours before and after each, both on one side of it."""
    _, n = windows(plane)
    bits = []
    for i in range(8):
        after, before = n[(i + 1) % 8] + n[(i + 2) % 8], n[i - 1] + n[i - 2]
        if integer:
            after, before = (2 * np.trunc(pair / 2).astype(int) for pair in (after, before))
        bits.append(((after >= 2 * n[i]) & (before >= 2 * n[i])) | ((after <= 2 * n[i]) & (before <= 2 * n[i])))
    return weigh(bits)


def maps_of(stored, **of):
    of = {"lbp": lbp, "tlbap": tlbap, "lanadp": lanadp} | of
    return {name: np.stack([of[name](plane) for plane in stored]) for name in PATTERNS}


def assert_histograms(folder, maps, masks, settings=("", "threshold=0.9", "")):
    """Compares patterns.json with maps, for each segment and for the volume (None)."""
    expected = []
    for number, label, mask in masks:
        inner = slice(None) if mask is None else mask[:, 1:-1, 1:-1]
        expected += [(number, label, name, setting, np.bincount(maps[name][inner].ravel(), minlength=256).tolist())
                     for name, setting in zip(PATTERNS, settings)]
    found = json.loads((folder / "patterns.json").read_text())
    assert [(h["segment_number"], h["label"], h["pattern"], h["settings"], h["histogram"]) for h in found] == expected
    assert all(list(h) == ["segment_number", "label", "pattern", "settings", "histogram"] for h in found)


ALL_PATTERNS = 'patterns = [ "lbp", "tlbap", "lanadp" ]; '


# --- reports ---


def measurements_of(group):
    """Returns the measurements of a group of the report: concept, value or None, unit, settings."""
    for item in children(group, "NUM"):
        measured = item.MeasuredValueSequence[0]
        yield (name_of(item)[:2], measured.FloatingPointValue, code_of(measured.MeasurementUnitsCodeSequence)[0],
               settings_of(item))
    for item in children(group, "CODE"):
        if code_of(item.ConceptCodeSequence)[:2] in (("114000", "DCM"), ("114006", "DCM"), ("114007", "DCM")):
            yield name_of(item)[:2], None, None, settings_of(item)


def settings_of(item):
    """Returns codes, numbers and words of the measurement's settings, by their own code."""
    codes = sorted([name_of(child)[0], code_of(child.ConceptCodeSequence)[0]] for child in children(item, "CODE"))
    numbers = {name_of(child)[0]: child.MeasuredValueSequence[0].FloatingPointValue
               for child in children(item, "NUM")}
    return {"codes": codes, "numbers": numbers,
            "directions": [child.TextValue for child in children(item, "TEXT", "DIRECTIONS")]}


CONCEPTS = {"standard_deviation": ("386136009", "SCT"),
            "maximal_correlation_coefficient": ("max_correlation", "99NOCTULE"),
            "maximum_2d_diameter_slice": ("max_2d_slice", "99NOCTULE"), "maximum_2d_diameter_column": ("max_2d_column", "99NOCTULE"),
            "maximum_2d_diameter_row": ("max_2d_row", "99NOCTULE")}
DISCRETISATIONS = {"stored-256": ("STORED_256", "LEVELS"), "fixed-bin-number": ("K15C", "K15C"),
                   "fixed-bin-size": ("Q3RU", "Q3RU"), "pyradiomics-bin-width": ("MULTIPLES", "BIN_WIDTH")}


def as_reported(feature):
    """Returns a feature of features.json in the form of the report."""
    concept = (feature["ibsi_code"], "IBSI") if feature["ibsi_code"] else CONCEPTS.get(
        feature["name"], (feature["name"], "99NOCTULE"))
    codes, numbers = [], {}
    if feature["aggregation"]:
        codes.append(["5QB6", feature["aggregation_ibsi_code"]])
        if feature["symmetric"] is False:
            codes.append(["MATRIX", "DIRECTIONAL"])
    if feature["discretisation"]:
        code, name = DISCRETISATIONS[feature["discretisation"]]
        codes.append(["4R0B", code])
        numbers[name] = feature["bin_width"] or feature["levels"]
    if feature["distance"]:
        numbers["PVMT"] = feature["distance"]
    if feature["alpha"] is not None:
        numbers["ALPHA"] = feature["alpha"]
    if feature["percent"]:
        numbers["PERCENT"] = feature["percent"]
    if feature["range"]:
        codes.append(["IF9H", "USB3"])
        numbers["RANGE_LOW"], numbers["RANGE_HIGH"] = feature["range"]
    if feature["sigma"]:
        codes.append(["IF9H", "7ACA"])
        numbers["SIGMA"] = feature["sigma"]
    if feature["interpolation"]:
        codes.append(["VTM2", {"nearest": "NEAREST", "linear": "LINEAR", "cubic": "CUBIC_SPLINE"}[feature["interpolation"]]])
        numbers |= {key.upper(): feature[key] for key in ("isotropic_mm", "in_plane_mm") if feature[key]}
        codes += [["ROUNDING", "NOT_ROUNDED"]] * bool(feature["rounding"])
    present = feature["value"] is not None
    return concept, feature["value"], feature["unit"] if present else None, {
        "codes": sorted(codes), "numbers": numbers, "directions": [d for d in [feature["directions"]] if d]}


def assert_no_new_remarks(path, source):
    """Checks that dciodvfy has no message except those for the source, and the one for the private scheme."""
    def about(path):
        return {re.sub(r"<.*?>", "", remark) for remark in dciodvfy_remarks(path)
                if not remark.endswith("Unrecognized defined term = <99NOCTULE>")}

    assert about(path) <= about(next(source.glob("*.dcm")))


def by_concept(measurement):
    return measurement[0], json.dumps(measurement[3], sort_keys=True)


def assert_report_equals_features(folder, source):
    """Checks that sr.dcm is valid and has the values of features.json, for the volume and for each segment by its
    tracking UID."""
    path = folder / "sr.dcm"
    assert_no_new_remarks(path, source)
    dumped = subprocess.run(["dsrdump", "+Pc", path], capture_output=True, text=True, errors="replace")
    assert dumped.returncode == 0 and "Enhanced SR Document" in dumped.stdout
    content = highdicom.sr.EnhancedSR.from_dataset(pydicom.dcmread(path), copy=False).content
    assert isinstance(content, highdicom.sr.MeasurementReport)
    in_highdicom = {group.tracking_uid: sorted(measured.value for measured in group.get_measurements())
                    for group in (*content.get_volumetric_roi_measurement_groups(),
                                  *content.get_image_measurement_groups())}
    report = pydicom.dcmread(path)
    groups = children(one(report, "CONTAINER", "126010"), "CONTAINER", "125007")
    seg = pydicom.dcmread(folder / "seg.dcm") if (folder / "seg.dcm").exists() else None
    numbers = {item.TrackingUID: item.SegmentNumber for item in seg.SegmentSequence} if seg else {}
    all_of_them = features(folder)
    found = {}
    for group in groups:
        number = numbers.get(one(group, "UIDREF", "112040").UID, 0)
        found[number] = sorted(measurements_of(group), key=by_concept)
        assert in_highdicom[one(group, "UIDREF", "112040").UID] == sorted(
            measured[1] for measured in found[number] if measured[1] is not None)
        if number:
            reference = one(group, "IMAGE", "121191").ReferencedSOPSequence[0]
            assert reference.ReferencedSOPInstanceUID == seg.SOPInstanceUID
            assert reference.ReferencedSegmentNumber == number
    expected = {}
    for feature in all_of_them:
        expected.setdefault(feature["segment_number"], []).append(as_reported(feature))
    assert found == {number: sorted(told, key=by_concept) for number, told in expected.items()}
    uids = {path_.stem: pydicom.dcmread(path_, stop_before_pixels=True).SOPInstanceUID
            for path_ in source.glob("*.dcm")}
    evidence = {item.ReferencedSOPInstanceUID for study in report.CurrentRequestedProcedureEvidenceSequence
                for listed in study.ReferencedSeriesSequence for item in listed.ReferencedSOPSequence}
    assert evidence == set(uids.values()) | ({seg.SOPInstanceUID} if set(found) - {0} else set())
