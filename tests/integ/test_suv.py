"""PET in standardised uptake values: series of one patient in SUV, Bq/ml and counts have equal masks and numbers, bit
for bit; headers without an attribute are refused by code before a pixel is read; job.json, the note and the SR have
the factor and its inputs."""

import json
import re
import subprocess
from decimal import Decimal

import pydicom
import pytest
from conftest import BIN, SHARED, needs_shared, phantom, run_program
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence

TYPE = ('category = { code = "246464006"; scheme = "SCT"; meaning = "Function"; };'
        'type = { code = "126400"; scheme = "DCM"; meaning = "Standardized Uptake Value"; };')
TEXTURE = ('texture = { regions = [ "segments" ]; first_order = true; glcm = { }; '
           'discretisation = "fixed-bin-size"; bin_width = 0.25; range = [ 0.0, 60.0 ]; };')


def configuration(folder, unit="suvbw", more="", low=4.0):
    path = folder / f"{unit}.conf"
    path.write_text(f'''root = "{folder}/root"; pipelines = ( {{ name = "p"; by_hand = true; unit = "{unit}"; {more}
        segments = ( {{ label = "Uptake"; method = "range"; range = [ {low}, 1000000.0 ]; {TYPE} }} ); }} );''')
    return path


def run(config, output, folder):
    return subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--output", output, folder],
                          text=True, capture_output=True, timeout=300)


def explain(config, folder):
    return run_program("noctule", "--config", config, "explain", "--pipeline", "p", folder).stdout


def record(output):
    return json.loads((output / "job.json").read_text())


def changed(folder, output, change):
    output.mkdir()
    for number, path in enumerate(sorted(folder.glob("*.dcm"))):
        dataset = pydicom.dcmread(path)
        change(dataset, number)
        dataset.save_as(output / path.name)
    return output


# ------------------------------------------------------------------- one series in three units

POWER = 4096  # the product of a decimal slope and a power of 2 is exact, and has at most 16 characters
DOSE = 64000 * POWER  # of 64 kg


def dose_of(bq, half_life="6586.2", **more):
    dose = Dataset()
    dose.RadionuclideTotalDose, dose.RadionuclideHalfLife = str(bq), half_life
    for keyword, value in more.items():
        setattr(dose, keyword, value)
    return Sequence([dose])


def to_activity(dataset, bq=DOSE):
    slope = format(Decimal(str(dataset.RescaleSlope.original_string)) * POWER, "f").rstrip("0")
    assert len(slope) <= 16
    dataset.RescaleSlope, dataset.PatientWeight, dataset.Units = slope, "64", "BQML"
    dataset.RadiopharmaceuticalInformationSequence = dose_of(bq)
    del dataset.SUVType


def corrected_to_injection(dataset, _):
    to_activity(dataset)
    dataset.DecayCorrection = "ADMIN"


def corrected_to_scan(dataset, _):
    """Half of the dose is left. The injection was before midnight."""
    to_activity(dataset, 2 * DOSE)
    dataset.DecayCorrection, dataset.SeriesTime = "START", "001000"
    dataset.AcquisitionTime, dataset.AcquisitionDate = "001003", dataset.SeriesDate
    dataset.RadiopharmaceuticalInformationSequence = dose_of(2 * DOSE, "3600", RadiopharmaceuticalStartTime="231000")


def two_beds(dataset, number):
    """The series was processed later. The second bed was scanned first, one half-life after the injection."""
    corrected_to_scan(dataset, number)
    dataset.SeriesTime, dataset.AcquisitionTime = "120000", "001000" if number >= 20 else "001300"


def in_counts(dataset, _):
    to_activity(dataset)
    dataset.Units = "CNTS"
    block = dataset.private_block(0x7053, "Philips PET Private Group", create=True)
    block.add_new(0x00, "DS", "0.000244140625")  # 1 / 4096


def in_counts_of_activity(dataset, _):
    to_activity(dataset, 4 * DOSE)
    dataset.Units, dataset.DecayCorrection = "CNTS", "ADMIN"
    dataset.private_block(0x7053, "Philips PET Private Group", create=True).add_new(0x09, "DS", "4")


@pytest.fixture(scope="module", params=["STS_001", "STS_002"])
def in_suv(request, tmp_path_factory):
    """A patient's PET in SUV, and the results of its own values."""
    folder = SHARED / "sarcoma" / request.param / "PET" / "image"
    home = tmp_path_factory.mktemp("suv")
    config = configuration(home, "images", TEXTURE + 'results = [ "seg", "sr" ];')
    done = run(config, home / "out", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, home / "out"


def numbers(output):
    features = json.loads((output / "features.json").read_text())
    segments = record(output)["segments"]
    for segment in segments:
        segment.pop("unit")
    return segments, [(f["name"], f["value"]) for f in walk_features(features)]


def walk_features(part):
    if isinstance(part, dict):
        if "name" in part and "value" in part:
            yield part
        part = list(part.values())
    if isinstance(part, list):
        for element in part:
            yield from walk_features(element)


@needs_shared
@pytest.mark.parametrize("change", [None, corrected_to_injection, corrected_to_scan, two_beds, in_counts,
                                    in_counts_of_activity], ids=lambda change: change.__name__ if change else "as it is")
def test_masks_and_numbers_are_equal_in_all_units(in_suv, tmp_path, change):
    folder, output = in_suv
    series = changed(folder, tmp_path / "in", change) if change else folder
    config = configuration(tmp_path, "suvbw", TEXTURE + 'results = [ "seg", "sr" ];')
    done = run(config, tmp_path / "out", series)
    assert done.returncode == 0, done.stdout + done.stderr
    ours, theirs = (pydicom.dcmread(path / "seg.dcm") for path in (tmp_path / "out", output))
    assert ours.PixelData == theirs.PixelData and len(ours.PixelData) > 100
    assert numbers(tmp_path / "out") == numbers(output)
    assert len(numbers(output)[1]) > 40
    assert record(tmp_path / "out")["suv"]["factors"] == [1.0 if change is None else round(1 / POWER, 12)] * 2


# -------------------------------------------------------------------------------- refusals


def without(keyword):
    def change(dataset, _):
        delattr(dataset, keyword)
    return change


def with_dose(keyword, value):
    def change(dataset, _):
        setattr(dataset.RadiopharmaceuticalInformationSequence[0], keyword, value)
    return change


def with_value(keyword, value):
    def change(dataset, _):
        setattr(dataset, keyword, value)
    return change


def with_other_slice(keyword, value):
    def change(dataset, number):
        if number == 3:
            setattr(dataset, keyword, value)
    return change


REFUSALS = {
    "no weight": (without("PatientWeight"), "SUV_WEIGHT_MISSING"),
    "weight of 0": (with_value("PatientWeight", "0"), "SUV_WEIGHT_MISSING"),
    "no dose": (with_dose("RadionuclideTotalDose", ""), "SUV_DOSE_MISSING"),
    "no radiopharmaceutical": (without("RadiopharmaceuticalInformationSequence"), "SUV_DOSE_MISSING"),
    "no half-life": (with_dose("RadionuclideHalfLife", ""), "SUV_DOSE_MISSING"),
    "no start": (with_dose("RadiopharmaceuticalStartTime", ""), "SUV_TIMES_MISSING"),
    "no acquisition time": (without("AcquisitionTime"), "SUV_TIMES_MISSING"),
    "after the scan": (with_dose("RadiopharmaceuticalStartDateTime", "20300101110000"), "SUV_TIMES_IMPLAUSIBLE"),
    "shifted date": (with_dose("RadiopharmaceuticalStartDateTime", "20100101110000"), "SUV_TIMES_IMPLAUSIBLE"),
    "no attenuation correction": (with_value("CorrectedImage", ["DECY", "SCAT"]), "SUV_NOT_CORRECTED"),
    "no decay correction": (with_value("DecayCorrection", "NONE"), "SUV_NOT_CORRECTED"),
    "unknown decay correction": (without("DecayCorrection"), "SUV_NOT_CORRECTED"),
    "counts": (with_value("Units", "CNTS"), "SUV_UNITS_UNKNOWN"),
    "two weights": (with_other_slice("PatientWeight", "76"), "SUV_SLICES_DIFFER"),
    "two series times": (with_other_slice("SeriesTime", "110000"), "SUV_SLICES_DIFFER"),
}


@pytest.fixture(scope="module")
def activity(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pet") / "in"
    phantom(folder, "--kind", "pet", "--size", "64x64x20")
    return folder


@pytest.mark.parametrize("case", REFUSALS)
def test_headers_decide_before_pixels_are_read(activity, tmp_path, case):
    """The pixels cannot be decoded: reading them fails with another code, as it does without a unit."""
    change, code = REFUSALS[case]

    def change_all(dataset, number):
        change(dataset, number)
        dataset.file_meta.TransferSyntaxUID = pydicom.uid.JPEG2000Lossless
        dataset.PixelData = encapsulate([b"not a codestream"])
        dataset["PixelData"].VR = "OB"

    series = changed(activity, tmp_path / "in", change_all)
    config = configuration(tmp_path)
    assert f"would be refused: {code}:" in " ".join(explain(config, series).split())
    done = run(config, tmp_path / "out", series)
    assert done.returncode == 1 and code in done.stdout + done.stderr
    assert "PIXELS_UNDECODABLE" not in done.stdout + done.stderr
    plain = run(configuration(tmp_path, "images"), tmp_path / "plain", series)
    assert plain.returncode == 1 and "PIXELS_UNDECODABLE" in plain.stdout + plain.stderr


def test_other_modalities_are_refused(tmp_path):
    phantom(tmp_path / "in", "--kind", "ct-head", "--size", "64x64x20")
    config = configuration(tmp_path)
    assert "would be refused: SUV_UNITS_UNKNOWN" in " ".join(explain(config, tmp_path / "in").split())
    assert run(config, tmp_path / "out", tmp_path / "in").returncode == 1


# --------------------------------------------------------------------------- units and records

BODY = {"suvbw": (75000, "g/ml{SUVbw}", "126410"),
        "suvlbm": (1000 * (1.10 * 75 - 128 * (75 / 180) ** 2), "g/ml{SUVlbm(James128)}", "126415"),
        "suvlbm-janmahasatian": (1000 * 9270 * 75 / (6680 + 216 * 75 / 1.8 ** 2), "g/ml{SUVlbm(Janma)}", "126414"),
        "suvbsa": (0.007184 * 75 ** 0.425 * 180 ** 0.725 * 10000, "cm2/ml{SUVbsa}", "126412"),
        "suvibw": (1000 * (48 + 1.06 * (180 - 152)), "g/ml{SUVibw}", "126413")}


def code_of(item):
    return item.get("CodeValue") or item.LongCodeValue


def walk_content(items):
    for item in items:
        yield item
        yield from walk_content(item.get("ContentSequence", []))


@pytest.mark.parametrize("unit", BODY)
def test_factor_and_inputs_are_recorded(activity, tmp_path, unit):
    body, ucum, method = BODY[unit]

    def change(dataset, _):
        dataset.PatientSex, dataset.PatientSize = "M", "1.80"

    series = changed(activity, tmp_path / "in", change)
    factor = body / (370e6 * 2 ** (-3600 / 6586.2))
    config = configuration(tmp_path, unit, TEXTURE + 'results = [ "seg", "sr" ];', low=10000 * factor)
    done = run(config, tmp_path / "out", series)
    assert done.returncode == 0, done.stdout + done.stderr
    written = record(tmp_path / "out")
    suv = written["suv"]
    assert suv["factors"] == pytest.approx([factor] * 2, rel=1e-8)
    assert (suv["weight_kg"], suv["dose_bq"], suv["decay_seconds"]) == (75, 370e6, 3600)
    assert suv["ucum"] == ucum and written["segments"][0]["unit"] == ucum
    assert f"factor {factor:.6g}" in written["note"]
    report = pydicom.dcmread(tmp_path / "out" / "sr.dcm")
    items = list(walk_content(report.ContentSequence))
    text = next(i.TextValue for i in items if i.ValueType == "TEXT" and code_of(i.ConceptNameCodeSequence[0]) == "111002")
    assert suv["text"] in text and f"factor {factor:.10g}" in text
    means = [i for i in items if i.ValueType == "NUM" and code_of(i.ConceptNameCodeSequence[0]) == "Q4LE"]
    assert means and all(code_of(i.MeasuredValueSequence[0].MeasurementUnitsCodeSequence[0]) == ucum for i in means)
    assert all(method in {code_of(m.ConceptCodeSequence[0]) for m in i.ContentSequence if m.ValueType == "CODE"}
               for i in means)


def test_factor_is_part_of_the_identity(activity, tmp_path):
    """An image beside the stack has the earliest Acquisition Time: equal images, another factor, other UIDs."""
    def later(dataset, _):
        dataset.SeriesTime = "150000"

    series = changed(activity, tmp_path / "in", later)
    config = configuration(tmp_path)
    assert run(config, tmp_path / "first", series).returncode == 0
    scout = pydicom.dcmread(sorted(series.glob("*.dcm"))[0])
    scout.SOPInstanceUID = scout.file_meta.MediaStorageSOPInstanceUID = "2.25.987654321"
    scout.ImageType, scout.AcquisitionTime, scout.InstanceNumber = ["ORIGINAL", "PRIMARY", "LOCALIZER"], "113000", "99"
    scout.save_as(series / "scout.dcm")
    done = run(config, tmp_path / "second", series)
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = (record(tmp_path / name) for name in ("first", "second"))
    assert first["suv"]["factors"] != second["suv"]["factors"]
    uids = [r["results"][0]["sop_instance_uid"] for r in (first, second)]
    assert uids[0] != uids[1]


def test_check_config_knows_the_units(tmp_path):
    path = configuration(tmp_path, "suvmax")
    done = subprocess.run([BIN / "noctule", "--config", path, "check-config"], text=True, capture_output=True)
    assert done.returncode != 0
    assert re.search(r'unit.*must be "images", "suvbw", "suvlbm"', " ".join((done.stdout + done.stderr).split()))
