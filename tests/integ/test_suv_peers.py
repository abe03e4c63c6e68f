"""SUV factors of z-rad and pysuv on 300 mutated PET headers.

Each program has its reading of the rules. `factor` is a second implementation of the rules that Noctule documents
(suv.h: QIBA's pseudo-code, no default), and of the rules by which a peer departs from them, each with a name. Noctule's
factor must equal the documented rules, and a peer's factor these with its own. So a difference between the two has a
name, and the value that it explains."""

import collections
import datetime
import json
import math
import random
import subprocess
import warnings

import pydicom
import pysuv
import pytest
import SimpleITK
from conftest import BIN, phantom
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence
from test_suv import configuration
from zrad.io import pet_suv

HEADERS = 300
HALF_LIVES = {"F18": 6586.2, "C11": 1223.4, "Ga68": 4057.74, "Cu64": 45721.1}
VENDORS = ("SIEMENS", "GE MEDICAL SYSTEMS", "Philips Medical Systems", "CPS", "UIH")
DAY = 86400.0

# Rules of a peer that differ from those of suv.h, with the reason.
ZRAD = {
    "kg or g": "a weight from 1000 on is in g; Noctule uses it as kg and holds the result for REVIEW",
    "MBq": "a dose of FDG below 10 kBq is in MBq; Noctule uses it as Bq and holds the result for REVIEW",
    "corrections only warned of": "Corrected Image without ATTN or DECY is a warning; Noctule refuses",
    "NONE is corrected": "decay NONE is corrected from the frame; Noctule refuses",
    "clock of the vendor": "GE's scan time, or Frame Reference Time, before Series Time; QIBA's order is Series Time if not "
                           "after the acquisition, GE's scan time, Acquisition Time",
    "two half-lives": "later scans are refused; Noctule accepts 10 half-lives, and from 4 on holds for REVIEW",
    "a shifted date is repaired": "the clock times count if the date is impossible; Noctule refuses",
    "activity factor first": "of Philips' factors, (7053,1009) counts first; QIBA's order is (7053,1000), (7053,1009)",
    "weight always": "a weight is required where SUV needs none",
}
PYSUV = {
    "START only": "decay ADMIN is refused",
    "no stored SUV": "Units GML is refused",
    "ATTN only": "Corrected Image without DECY is accepted; Noctule refuses",
    "Series Time": "also of a series that was made after the scan; Noctule then uses GE's scan time or Acquisition Time",
    "no dates": "only clock times count, one hour before the injection is accepted, and any time after it",
    "no activity factor": "Philips' (7053,1009) is not read",
    "all attributes": "weight, dose, half-life and start time are required where SUV needs none",
}


def mutated(draw):
    """Draws one header: a plausible one with up to three changes."""
    vendor = draw.choice(VENDORS)
    nuclide = draw.choices(list(HALF_LIVES), (7, 1, 2, 1))[0]
    half_life = HALF_LIVES[nuclide]
    bed, duration = draw.choice((0, 0, round(draw.uniform(60, 1500)))), draw.choice((90, 120, 240))
    part = math.log(2) / half_life * duration
    to_mean = math.log(part / (1 - math.exp(-part))) * half_life / math.log(2)
    h = {"vendor": vendor, "nuclide": nuclide, "half_life": half_life, "duration": duration, "to_mean": to_mean,
         "weight": round(draw.uniform(40, 120), 1), "dose": float(round(draw.uniform(1e8, 5e8))), "units": "BQML",
         "decay": "START", "corrected": ["ATTN", "DECY", "SCAT"], "dated": draw.choice((True, True, False)), "timed": True,
         "shift": 0, "scan": 1e9 - 1e9 % DAY + round(draw.uniform(0, DAY - 1)), "suv": None, "activity": None, "ge": None}
    after = round(draw.uniform(600, min(7200, 1.8 * half_life)))
    h["series"] = h["scan"]
    reference = bed if "GE" in vendor else bed + to_mean
    if draw.random() < 0.15:
        h["units"] = "GML"
    elif "Philips" in vendor and draw.random() < 0.6:
        h["units"] = "CNTS"
        h["suv"], h["activity"] = draw.choice(((0.000513, None), (None, 1.25), (0.000513, 1.25), (None, None)))
    if "GE" in vendor and draw.random() < 0.5:
        h["ge"] = h["scan"]

    def at_midnight():
        h["scan"] = h["series"] = h["scan"] - h["scan"] % DAY + draw.choice((0, 60, 900, DAY - 120))
        h["ge"] = h["ge"] and h["scan"]

    changes = {
        "midnight": at_midnight, "made later": lambda: h.update(series=h["scan"] + bed + 7200),
        "weight in g": lambda: h.update(weight=h["weight"] * 1000), "no weight": lambda: h.update(weight=None),
        "dose in MBq": lambda: h.update(dose=round(h["dose"] / 1e6, 1)), "no dose": lambda: h.update(dose=None),
        "no half-life": lambda: h.update(half_life=None), "ADMIN": lambda: h.update(decay="ADMIN"),
        "NONE": lambda: h.update(decay="NONE"), "no ATTN": lambda: h.update(corrected=["DECY"]),
        "no DECY": lambda: h.update(corrected=["ATTN"]), "no time": lambda: h.update(timed=False),
        "date shifted": lambda: h.update(shift=400 * DAY, dated=True)}
    for name in draw.sample(list(changes), draw.choice((0, 1, 1, 2, 3))):
        changes[name]()
    if draw.random() < 0.1:
        after = round(draw.choice((-1200, 3 * half_life, 12 * half_life)))
    if draw.random() < 0.1:
        reference = 0
    h.update(reference=reference, acquired=h["scan"] + bed, start=h["scan"] - after)
    return h


def factor(h, rules=frozenset()):
    """Returns the factor to SUVbw, or None for a refusal."""
    weight, dose = h["weight"], h["dose"]
    if weight is None and ("weight always" in rules or "all attributes" in rules):
        return None
    if "all attributes" in rules and (dose is None or h["half_life"] is None or not h["timed"]):
        return None
    if "ATTN" not in h["corrected"] and "corrections only warned of" not in rules:
        return None
    if "DECY" not in h["corrected"] and not rules & {"corrections only warned of", "ATTN only"}:
        return None
    if h["units"] == "GML":
        return None if "no stored SUV" in rules or (h["decay"] == "NONE" and not rules & ZRAD.keys()) else 1
    scale = 1
    if h["units"] == "CNTS":
        activity = h["activity"] if "no activity factor" not in rules else None
        if h["suv"] is not None and not ("activity factor first" in rules and activity):
            return None if h["decay"] == "NONE" and not rules & PYSUV.keys() else h["suv"]
        if activity is None:
            return None
        scale = activity
    if "kg or g" in rules and weight is not None and weight >= 1000:
        weight /= 1000
    if "MBq" in rules and dose is not None and dose < 1e4 and h["nuclide"] == "F18":
        dose *= 1e6
    if weight is None or dose is None:
        return None
    if h["decay"] == "ADMIN":
        return None if "START only" in rules else scale * weight * 1000 / dose
    if h["half_life"] is None or (h["decay"] == "NONE" and "NONE is corrected" not in rules):
        return None
    if not h["dated"] and not h["timed"]:
        return None

    seconds = clock(h, rules) - h["start"]
    left = 10 * h["half_life"] if "two half-lives" not in rules else 2 * h["half_life"]
    if "no dates" in rules:
        seconds = clock(h, rules) % DAY - h["start"] % DAY
        seconds += DAY if seconds < -3600 else 0
    elif not h["dated"]:
        if h["half_life"] > 41400 or seconds + DAY <= left:
            return None
        seconds %= DAY
    elif h["shift"] and ("a shifted date is repaired" not in rules or h["half_life"] > 41400 or h["ge"]):
        return None
    elif h["shift"]:
        seconds %= DAY
    if "no dates" not in rules and not 0 <= seconds <= left:
        return None
    if h["decay"] == "NONE":
        seconds += h["to_mean"]
        return scale * weight * 1000 / dose * 2 ** (seconds / h["half_life"])
    return scale * weight * 1000 / dose * 2 ** (seconds / h["half_life"])


def clock(h, rules):
    """Returns the time to which values are decay corrected."""
    if h["decay"] == "NONE":
        return h["acquired"]
    if "Series Time" in rules:
        return h["series"]
    if "clock of the vendor" in rules:
        if h["series"] == h["acquired"] and not h["shift"]:
            return h["acquired"]
        if "GE" in h["vendor"]:
            return h["acquired"] - h["reference"] if h["ge"] is None else h["ge"]
        return h["acquired"] + h["to_mean"] - h["reference"]
    if h["series"] <= h["acquired"]:
        return h["series"]
    return h["acquired"] if h["ge"] is None else h["ge"]


def moment(seconds):
    when = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    return when.strftime("%Y%m%d"), when.strftime("%H%M%S")


def write_header(template, h, number, path):
    """Writes a slice with the header, whose 16 pixels are 0 to 15."""
    ds = pydicom.dcmread(template)
    ds.Rows = ds.Columns = 4
    ds.ImagesInAcquisition = ds.NumberOfSlices = 1
    ds.PixelData = b"".join(value.to_bytes(2, "little") for value in range(16))
    ds.SeriesInstanceUID, ds.SOPInstanceUID = f"1.2.3.{number}", f"1.2.4.{number}"
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.RescaleSlope, ds.RescaleIntercept, ds.Manufacturer, ds.Units = "1", "0", h["vendor"], h["units"]
    ds.DecayCorrection, ds.CorrectedImage = h["decay"], h["corrected"]
    ds.SeriesDate, ds.SeriesTime = moment(h["series"])
    ds.AcquisitionDate, ds.AcquisitionTime = moment(h["acquired"])
    ds.FrameReferenceTime, ds.ActualFrameDuration = f"{h['reference'] * 1000:.10g}", str(h["duration"] * 1000)
    ds.PatientWeight = "" if h["weight"] is None else f"{h['weight']:.8g}"
    if h["units"] == "GML":
        ds.SUVType = "BW"
    dose = Dataset()
    dose.Radiopharmaceutical = "Fluorodeoxyglucose F^18^" if h["nuclide"] == "F18" else h["nuclide"]
    dose.RadionuclideTotalDose = "" if h["dose"] is None else f"{h['dose']:.10g}"
    dose.RadionuclideHalfLife = "" if h["half_life"] is None else f"{h['half_life']:.10g}"
    if h["timed"]:
        dose.RadiopharmaceuticalStartTime = moment(h["start"])[1]
    if h["dated"]:
        dose.RadiopharmaceuticalStartDateTime = "".join(moment(h["start"] - h["shift"]))
    ds.RadiopharmaceuticalInformationSequence = Sequence([dose])
    if h["ge"] is not None:
        ds.private_block(0x0009, "GEMS_PETD_01", create=True).add_new(0x0D, "DT", "".join(moment(h["ge"])))
    if h["units"] == "CNTS":
        block = ds.private_block(0x7053, "Philips PET Private Group", create=True)
        for element, value in ((0x00, h["suv"]), (0x09, h["activity"])):
            if value is not None:
                block.add_new(element, "DS", str(value))
    ds.save_as(path)


def of_zrad(path):
    files = [{"ds": pydicom.dcmread(path), "file_path": path}]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pet_suv.validate_pet_dicom_tags(files)
            image = pet_suv.apply_suv_correction(files, SimpleITK.Image(4, 4, 1, SimpleITK.sitkFloat64))
    except Exception:  # also ValueError and AttributeError
        return None
    return SimpleITK.GetArrayFromImage(image).max() / 15


def of_pysuv(path):
    try:
        return pysuv.get_suv_factor(path, philips_timing="3dslicer").suv_factor
    except Exception:  # has no base class
        return None


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """Returns [(header, factor of Noctule, of z-rad, of pysuv)], None: refused, and the number of doubtful results that
    were not held for REVIEW."""
    folder = tmp_path_factory.mktemp("peers")
    template = phantom(folder / "phantom", "--kind", "pet", "--size", "64x64x20")[0]
    draw = random.Random(39)
    headers = [mutated(draw) for _ in range(HEADERS)]
    (folder / "in").mkdir()
    paths = [folder / "in" / f"{number:03}.dcm" for number in range(HEADERS)]
    for number, (h, path) in enumerate(zip(headers, paths)):
        write_header(template, h, number, path)
    config = configuration(folder, more="min_slices = 1;", low=0.0)
    done = subprocess.run([BIN / "noctule", "--config", config, "run", "--pipeline", "p", "--json", "--output", folder / "out",
                           folder / "in"], capture_output=True, text=True, timeout=600)
    own, unheld = {}, 0
    for job in json.loads(done.stdout)["jobs"]:
        number = int(job["series_instance_uid"].rsplit(".", 1)[1])
        if job["code"].startswith("SUV_"):
            own[number] = None
        else:
            low, high = job["suv"]["factors"]
            assert low == high, job
            own[number] = low
            # A weight in g or a dose in MBq, where the rule used it.
            doubtful = job["suv"].get("weight_kg", 1) >= 1000 or job["suv"].get("dose_bq", 1e6) < 1e6
            unheld += doubtful and job["outcome"] != "REVIEW"
    assert len(own) == HEADERS
    return [(h, own[number], of_zrad(path), of_pysuv(path)) for number, (h, path) in enumerate(zip(headers, paths))], unheld


def same(a, b):
    return a is b if a is None or b is None else a == pytest.approx(b, rel=1e-6)


def test_noctule_follows_its_rules(compared):
    results, unheld = compared
    wrong = [(h, own, factor(h)) for h, own, *_ in results if not same(own, factor(h))]
    assert not wrong, wrong[:3]
    assert unheld == 0


@pytest.mark.parametrize("peer", ["z-rad", "pysuv"])
def test_each_difference_has_a_name(compared, peer):
    rules = {"z-rad": ZRAD, "pysuv": PYSUV}[peer]
    names = collections.Counter()
    for h, own, *others in compared[0]:
        other = others[peer == "pysuv"]
        assert same(other, factor(h, frozenset(rules))), (peer, h, own, other, factor(h, frozenset(rules)))
        if same(own, other):
            names["both refuse" if own is None else "equal"] += 1
            continue
        names["different"] += 1
        needed = frozenset(rules)  # a smallest set that explains the peer's value
        for rule in rules:
            if same(factor(h, needed - {rule}), other):
                needed -= {rule}
        assert needed, (peer, h, own, other)
        names.update(needed)
    print(peer, dict(names))
    assert names["equal"] + names["both refuse"] + names["different"] == HEADERS
    assert names["equal"] >= 60 and all(names[rule] for rule in rules), names
