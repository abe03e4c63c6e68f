"""The values that IBSI publishes (reference manual, chapter 5) for its digital phantom and for its CT phantom without
processing, configuration A. Each family of Noctule is compared value by value, within the tolerance of the manual."""

import csv
from collections import Counter

import numpy as np
import pytest
import SimpleITK
from conftest import SHARED, needs_shared
from objects import save, segmentation
from test_features import BIN_SIZE
from test_features import features as print_features
from texture_runs import AGGREGATIONS as OURS
from texture_runs import (TYPE, assert_report_equals_features, features,
                          run,  # noqa: F401
                          series)

IBSI = SHARED / "ibsi"
DRAWN = f'{{ label = "Phantom"; method = "object"; object = {{ kind = "seg"; roi = "Liver"; }}; {TYPE} }}'

pytestmark = needs_shared

# Options of print_features for the settings of the manual.
DIGITAL = {"discretisation": BIN_SIZE, "width": 1}
CONFIGURATION_A = {"discretisation": BIN_SIZE, "width": 25, "lo": -500, "hi": 400}
IN_ML = {"RNU0", "YEKZ", "99N0"}  # printed in ml, in the manual in mm3
PERCENT = {"ivh_v10": 10, "ivh_v90": 90, "ivh_i10": 10, "ivh_i90": 90}
# Values of the digital phantom by family and aggregation.
FAMILIES = {("HCUG", "DHQ4"): 25, ("9ST6", "DHQ4"): 2, ("UHIW", "DHQ4"): 18, ("ZVCW", "DHQ4"): 23, ("P88C", "DHQ4"): 6}
AGGREGATIONS = ["BTW3", "SUJT", "JJUI", "ZW7Z", "ITBB", "IAZD"]  # in the order of enum aggregation
DIMENSIONS = ["8QNN", "8QNN", "62GR", "62GR", "KOBO", "KOBO"]
FAMILIES |= {(family, code): count for family, count in {"LFYI": 25, "TP0I": 16}.items() for code in AGGREGATIONS}
FAMILIES |= {(family, code): count for family, count in {"9SAK": 16, "VMDZ": 16, "IPET": 5, "REK0": 17}.items() for code in DIMENSIONS}


def phantom(name):
    """Returns volume and mask [z, y, x], and the spacing by x, y, z."""
    folder = IBSI / name / "nifti"
    image = SimpleITK.ReadImage(folder / "image" / "phantom.nii.gz")
    mask = SimpleITK.ReadImage(folder / "mask" / "mask.nii.gz")
    volume, inside = SimpleITK.GetArrayFromImage(image), SimpleITK.GetArrayFromImage(mask)
    return volume.astype(np.int16), inside > 0, dict(zip("xyz", image.GetSpacing(), strict=True))


def published(dataset, aggregation):
    """Returns the published values of the implemented families in one aggregation."""
    codes = {"DHQ4", AGGREGATIONS[aggregation], DIMENSIONS[aggregation]}
    with open(IBSI / "ibsi_1_reference_values.csv") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        found = [row for row in rows if row["dataset"] == dataset and row["aggregation_code"] in codes
                 and (row["family_code"], row["aggregation_code"]) in FAMILIES]
    assert Counter((row["family_code"], row["aggregation_code"]) for row in found) == {
        (family, code): count for (family, code), count in FAMILIES.items() if code in codes}
    return found


def as_printed(text):
    """Returns half of the last printed digit: a value without a tolerance is exact to its digits, at least three."""
    value = float(text)
    digits = max(3, len(text.split("e")[0].replace("-", "").replace(".", "").lstrip("0")))
    return 0.5001 * 10.0 ** (np.floor(np.log10(abs(value))) - digits + 1) if value else 0


def is_met(row, value):
    tolerance = float(row["tolerance"] or 0)
    if value is not None and row["ibsi_code"] in IN_ML:
        value *= 1000
    return value is not None and abs(value - float(row["value"])) <= tolerance + as_printed(row["value"])


def measured(folder, name, settings):
    """Returns {(code, percent): value} of all families."""
    volume, mask, spacing = phantom(name)
    folder.mkdir()
    told = print_features(folder, volume, mask, families=1, **spacing, **settings)["families"]
    return {(feature["ibsi"], feature["percent"]): feature["value"] for feature in told if feature["ibsi"]}


def assert_published(rows, values):
    missed = [f"{row['feature']} ({row['ibsi_code']} {row['aggregation_code']}): {value}, not {row['value']} +- "
              f"{row['tolerance'] or 0}"
              for row in rows
              for value in [values.get((row["ibsi_code"], PERCENT.get(row["ibsi_tag"], 0)))]
              if not is_met(row, value)]
    print(f"{len(rows) - len(missed)} of {len(rows)} values met")
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize("aggregation", range(6))
def test_digital_phantom(tmp_path, aggregation):
    assert_published(published("dig_phantom", aggregation),
                     measured(tmp_path / "all", "ibsi_1_digital_phantom", DIGITAL | {"aggregation": aggregation}))


@pytest.mark.parametrize("aggregation", range(4))
def test_ct_phantom_without_processing(tmp_path, aggregation):
    assert_published(published("chest_config_a", aggregation),
                     measured(tmp_path / "all", "ibsi_1_ct_radiomics_phantom",
                              CONFIGURATION_A | {"aggregation": aggregation}))


@pytest.mark.parametrize("aggregation", enumerate(OURS))
def test_digital_phantom_through_a_run(run, tmp_path, aggregation):
    number, name = aggregation
    volume, mask, spacing = phantom("ibsi_1_digital_phantom")
    source = series(tmp_path / "in", volume, tuple(spacing.values()))
    drawn = save(segmentation(sorted(source.iterdir()), mask=mask.astype(np.uint8)), tmp_path / "seg.dcm")
    run(source, tmp_path / "out", f'families = [ "all" ]; aggregation = "{name}"; '
        'discretisation = "fixed-bin-size"; bin_width = 1.0;', [DRAWN], ["seg", "sr"], arguments=["--object", drawn])
    told = features(tmp_path / "out")
    assert_published(published("dig_phantom", number),
                     {(f["ibsi_code"], f["percent"] or 0): f["value"] for f in told if f["ibsi_code"]})
    codes = {f["family"]: f["aggregation_ibsi_code"] for f in told}
    assert (codes["glrlm"], codes["glcm"], codes["ngldm"], codes["glszm"]) == (
        AGGREGATIONS[number], AGGREGATIONS[number], DIMENSIONS[number], DIMENSIONS[number])
    assert_report_equals_features(tmp_path / "out", source)
