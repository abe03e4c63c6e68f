"""Texture profiles: shipped ones are listed, print their settings, and give the same values as these. Settings of a
group override those of its profile."""

import json
import subprocess

import numpy as np
import pytest
import radiomics.featureextractor
import SimpleITK
from conftest import BIN, SOURCE, needs_shared, run_program
from test_features import (FIRST_ORDER, OF_DEPENDENCES, OF_PYRADIOMICS, OF_RUNS, OF_TONES, OF_ZONES, assert_close,
                           smooth)
from test_ibsi_chain import CONFIGURATIONS, FAMILIES, IMAGES, OBJECTS, SEGMENT
from test_run_texture import evenly
from test_run import seg_masks
from texture_runs import features, pipeline, read, run, segment, series  # noqa: F401 - run is a fixture

PROFILES = sorted(path.stem for path in (SOURCE / "config" / "profiles").glob("*.conf"))
OF_PROGRAMS = {"mercure", "nnunet", "podman", "totalsegmentator"}  # test_profiles_programs.py
IBSI = {f"ibsi-{configuration}": configuration for configuration in CONFIGURATIONS}


def explicit(configuration, aggregation):
    interpolation, more, _, _ = CONFIGURATIONS[configuration]
    return f'{FAMILIES} {interpolation} {more} aggregation = "{aggregation}";'


def understood(folder, texture, check=True):
    """Returns the output of check-config for a configuration with this group, or its error."""
    path = folder / "noctule.conf"
    path.write_text(pipeline(texture, [segment(0, 1, (0, 0, 0))]))
    result = run_program("noctule", "check-config", "--print", path, check=False)
    assert (result.returncode == 0) == check, result.stderr
    return result.stdout if check else result.stderr


def test_the_list_is_the_files():
    listed = json.loads(run_program("noctule", "profiles", "--json").stdout)
    assert [profile["name"] for profile in listed] == PROFILES
    assert {*IBSI, *OF_PROGRAMS, "pyradiomics-default", "haralick-1973"} <= set(PROFILES)
    text = " ".join(run_program("noctule", "profiles").stdout.split())
    for profile in listed:
        assert set(profile) == {"name", "title", "source", "limits"} and all(profile.values())
        assert all(value in text for value in profile.values())
        written = (SOURCE / "config" / "profiles" / f"{profile['name']}.conf").read_text()
        assert run_program("noctule", "profiles", profile["name"]).stdout == written
    missing = run_program("noctule", "profiles", "ibsi-z", check=False)
    assert missing.returncode == 3 and 'no profile "ibsi-z"' in missing.stderr


@pytest.mark.parametrize("name", sorted({*PROFILES} - OF_PROGRAMS))
def test_a_profile_equals_the_settings_of_its_file(tmp_path, name):
    written = (SOURCE / "config" / "profiles" / f"{name}.conf").read_text()
    assert understood(tmp_path, f'profile = "{name}";') == understood(tmp_path, written)
    assert "profile" not in understood(tmp_path, f'profile = "{name}";')


@pytest.mark.parametrize("name", IBSI)
def test_the_ibsi_profile_equals_its_settings(tmp_path, name):
    for aggregation in CONFIGURATIONS[IBSI[name]][2]:
        assert understood(tmp_path, f'profile = "{name}"; aggregation = "{aggregation}";') == understood(
            tmp_path, explicit(IBSI[name], aggregation))


@pytest.mark.parametrize("changed, same", [
    # Its own value overrides the profile's, before or after it.
    ('range = [ 0.0, 9.0 ]; profile = "ibsi-a";', FAMILIES + 'range = [ 0.0, 9.0 ]; discretisation = "fixed-bin-size"; '
     'bin_width = 25.0; aggregation = "2d-averaged";'),
    # A value that makes another setting of the profile useless.
    ('profile = "ibsi-a"; discretisation = "fixed-bin-number"; levels = 8;', FAMILIES + "range = [ -500.0, 400.0 ]; "
     'levels = 8; discretisation = "fixed-bin-number"; aggregation = "2d-averaged";'),
    ('profile = "ibsi-e"; families = [ "glszm" ];', 'families = [ "glszm" ]; resample = { isotropic_mm = 2.0; '
     'interpolation = "cubic"; }; range = [ -1000.0, 400.0 ]; sigma = 3.0; discretisation = "fixed-bin-number"; '
     'aggregation = "3d-averaged";'),
    # A part of a group, and a replaced setting that may occur once.
    ('profile = "ibsi-d"; resample = { interpolation = "nearest"; };', FAMILIES + "sigma = 3.0; resample = { "
     'isotropic_mm = 2.0; interpolation = "nearest"; }; discretisation = "fixed-bin-number"; '
     'aggregation = "3d-averaged";'),
    ('profile = "ibsi-d"; resample = { in_plane_mm = 1.5; };', FAMILIES + "sigma = 3.0; resample = { in_plane_mm = 1.5; "
     '}; discretisation = "fixed-bin-number"; aggregation = "3d-averaged";'),
    # Offsets replace distances and angles.
    ('profile = "haralick-1973"; glcm = { offsets = ( [ 1, 0, 0 ] ); };', 'first_order = false; families = [ "glcm" ]; '
     'discretisation = "fixed-bin-number"; levels = 16; aggregation = "2d-averaged"; '
     'glcm = { aggregation = "2d-averaged"; offsets = ( [ 1, 0, 0 ] ); };'),
])
def test_settings_override_the_profile(tmp_path, changed, same):
    assert understood(tmp_path, changed) == understood(tmp_path, same)


@pytest.mark.parametrize("texture, complaint", [
    ('profile = "ibsi-z";', "profiles/ibsi-z.conf: No such file"),
    ('profile = "ibsi-z";', "noctule profiles lists the installed profiles"),
    ('profile = "../ibsi-a";', "profile: may only contain A-Z a-z 0-9 _ -"),
    ("profile = 1;", "profile: must be a string"),
    # Settings in the file itself are not dropped.
    ('profile = "ibsi-a"; levels = 8;', "levels: is only allowed with discretisation"),
    ('profile = "ibsi-a"; binwidth = 8.0;', "unknown option"),
    ('profile = "own";', "profile: label cannot be set by a profile"),
    ('profile = "broken";', "profiles/broken.conf:2: syntax error"),
    ('profile = "wide";', "texture.bin_width: "),
])
def test_errors_in_profiles_are_reported(tmp_path, texture, complaint):
    (tmp_path / "profiles").mkdir()
    for name, text in (("own", 'label = "A";'), ("broken", "sigma = 1.0;\n=\n"),
                       ("wide", 'discretisation = "fixed-bin-size"; bin_width = -1.0;')):
        (tmp_path / "profiles" / f"{name}.conf").write_text(text)
    told = understood(tmp_path, texture, check=False)
    assert complaint in told and "noctule.conf:1" in told


def test_a_profile_next_to_the_configuration_has_precedence(tmp_path):
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "ibsi-a.conf").write_text("sigma = 2.0;")
    assert understood(tmp_path, 'profile = "ibsi-a";') == understood(tmp_path, "sigma = 2.0;")


@needs_shared
@pytest.mark.parametrize("name", IBSI)
def test_the_ibsi_profile_gives_the_values_of_its_settings(tmp_path, name):
    aggregations = CONFIGURATIONS[IBSI[name]][2]
    found = []
    for way in (lambda a: explicit(IBSI[name], a), lambda a: f'profile = "{name}"; aggregation = "{a}";'):
        config, out = tmp_path / "noctule.conf", tmp_path / f"out{len(found)}"
        groups = ", ".join("{ " + way(aggregation) + " }" for aggregation in aggregations)
        config.write_text(f'root = "{tmp_path / "root"}"; pipelines = ( {{ name = "ibsi"; segments = ( {SEGMENT} ); '
                          f'results = [ "sr" ]; texture = ( {groups} ); }} );')
        (rtstruct,) = OBJECTS.glob("*.dcm")
        subprocess.run([BIN / "noctule", "--config", config, "run", "-p", "ibsi", "-o", out, "--object", rtstruct, IMAGES],
                       check=True, capture_output=True, timeout=300)
        found.append((out / "features.json").read_bytes())
    rows = json.loads(found[0])
    assert len(rows) > 200 and len({json.dumps(row) for row in rows}) == len(rows)  # what groups measure alike is there once
    assert found[0] == found[1]


def test_pyradiomics_by_default_is_pyradiomics_by_default(run, tmp_path):  # noqa: F811
    """Without a parameter file for pyradiomics and without a setting here."""
    stored = evenly(smooth(11, (12, 40, 43)), 900, 1500).astype(np.int16)
    source = series(tmp_path / "in", stored, intercepts=-1024)
    run(source, tmp_path / "out", 'profile = "pyradiomics-default";', [segment(-100, 200, (20, 20, 6), 9, "Most")])
    datasets, _, values = read(source)
    (mask,) = seg_masks(tmp_path / "out" / "seg.dcm", datasets)
    image, region = (SimpleITK.GetImageFromArray(a) for a in (values, mask.astype(np.uint8)))
    theirs = radiomics.featureextractor.RadiomicsFeatureExtractor().execute(image, region)
    theirs = {tuple(name.split("_")[1:]): float(value) for name, value in theirs.items() if name.startswith("original_")}
    measured = features(tmp_path / "out")
    for kind, family, key, names in (("firstorder", "first-order", "name", FIRST_ORDER), ("glcm", "glcm", "name", OF_PYRADIOMICS),
                                     ("glrlm", "glrlm", "ibsi_code", OF_RUNS), ("glszm", "glszm", "ibsi_code", OF_ZONES),
                                     ("gldm", "ngldm", "ibsi_code", OF_DEPENDENCES),
                                     ("ngtdm", "ngtdm", "ibsi_code", OF_TONES)):
        expected = {name: value for (of, name), value in theirs.items() if of == kind}
        assert set(names) <= set(expected), kind
        assert_close({f[key]: f["value"] for f in measured if f["family"] == family}, expected, names)
