"""The CT phantom of IBSI, measured by `noctule run` with the profiles of IBSI 2: its published values of phase 2."""

import csv
import json
import subprocess

import pytest
from conftest import BIN, SHARED, SOURCE, needs_shared
from test_ibsi_chain import IMAGES, OBJECTS, SEGMENT

VALUES = SHARED / "ibsi2" / "reference_values.csv"
PROFILES = sorted(path.stem for path in (SOURCE / "config" / "profiles").glob("ibsi2-*.conf"))
NAMES = {"mean": "mean", "var": "variance", "skew": "skewness", "kurt": "kurtosis", "median": "median", "min": "minimum",
         "p10": "percentile_10", "p90": "percentile_90", "max": "maximum", "iqr": "interquartile_range", "range": "range",
         "mad": "mean_absolute_deviation", "rmad": "robust_mean_absolute_deviation", "medad": "median_absolute_deviation",
         "cov": "coefficient_of_variation", "qcod": "quartile_coefficient_of_dispersion", "energy": "energy",
         "rms": "root_mean_square"}


def measure(folder, profiles):
    """Returns the statistics of each profile, whose groups have settings of their own."""
    config = folder / "noctule.conf"
    groups = ", ".join(f'{{ profile = "{profile}"; }}' for profile in profiles)
    config.write_text(f'root = "{folder / "root"}"; pipelines = ( {{ name = "ibsi2"; segments = ( {SEGMENT} ); '
                      f'results = [ "sr" ]; texture = ( {groups} ); }} );')
    (rtstruct,) = OBJECTS.glob("*.dcm")
    result = subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "ibsi2", "-o", folder / "out", "--object",
                             rtstruct, IMAGES], text=True, capture_output=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    found = {}
    for feature in json.loads((folder / "out" / "features.json").read_text()):
        if feature["family"] == "first-order":
            key = feature["isotropic_mm"], feature["filter"], feature["filter_settings"]
            found.setdefault(key, {})[feature["name"]] = feature["value"]
    return dict(zip(profiles, found.values(), strict=True))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A pipeline has at most 16 groups."""
    found = {}
    for first in range(0, len(PROFILES), 16):
        found |= measure(tmp_path_factory.mktemp("ibsi2"), PROFILES[first : first + 16])
    return found


@needs_shared
@pytest.mark.parametrize("profile", PROFILES)
def test_values_are_the_published_ones(measured, profile):
    with open(VALUES, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter=";")
                if row["filter_id"] == f"{profile[6]}.{profile[7].upper()}" and row["consensus_value"]]
    assert len(rows) >= 17
    missed = []
    for row in rows:
        found = measured[profile][NAMES[row["feature_tag"].removeprefix("stat_")]]
        if abs(found - float(row["consensus_value"])) > float(row["tolerance"]):
            missed.append((row["feature"], found, row["consensus_value"], row["tolerance"]))
    assert not missed
