"""Results of a run with texture: tables, patterns.json, SR and maps. They give reasons for absent values, are equal
for equal input, are complete or absent on a full disk, and reach the database and destinations through the daemon.

dciodvfy, dsrdump, pydicom and highdicom check the objects, and scikit-image and numpy the codes of patterns."""

import csv
import json
import resource
import shutil
import subprocess

import numpy as np
import pydicom
import pytest
from conftest import BIN, SHARED, drop, needs_shared, storescp, wait_for
from test_deliveries import QUICK, to_archive, to_folder
from test_features import smooth
from test_pmap import assert_dciodvfy_is_content as assert_map_is_content
from test_pmap import assert_frames, assert_highdicom_reads, in_frames
from test_run import assert_no_file_left, seg_masks
from test_seg import assert_references, planes_of
from texture_runs import (AGGREGATIONS, ALL_PATTERNS, ALWAYS, ONE_LEVEL, PATTERNS, PLACE, SOFT, TABLES, around_middle,
                          assert_histograms, assert_report_equals_features, features, head, lanadp, maps_of, pipeline, read,
                          reasons_of,
                          run,  # noqa: F401
                          segment, series, tlbap, values_of)


# --- local patterns ---


@pytest.mark.parametrize("options, exact, settings", [
    ("", {}, ("", "threshold=0.9", "")),
    ('tlbap_threshold = 0.25; tlbap_strict = true; lanadp_average = "integer";',
     {"tlbap": lambda plane: tlbap(plane, 1, 4, True), "lanadp": lambda plane: lanadp(plane, True)},
     ("", "threshold=0.25,strict", "integer")),
], ids=["text", "listing"])
def test_patterns(run, tmp_path, options, exact, settings):
    stored = (smooth(9, (7, 50, 67)) * 300 - 60).astype(np.int16)
    source = series(tmp_path / "in", stored)
    output = tmp_path / "out"
    run(source, output, f'regions = [ "segments", "volume" ]; first_order = false; {ALL_PATTERNS} {options}',
        [segment(-60, 40, (33, 25, 3), 8, "Dark"), segment(1000, 2000, (0, 0, 0), label="Nothing")],
        ("seg", "pmap"))
    assert sorted(p.name for p in output.iterdir()) == sorted(
        [*ALWAYS, *TABLES, "patterns.json", "seg.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)])
    datasets, stored, _ = read(source)
    masks = seg_masks(output / "seg.dcm", datasets)
    assert masks[0].any() and not masks[1].any()
    maps = maps_of(stored, **exact)
    assert_histograms(output, maps, [(1, "Dark", masks[0]), (2, "Nothing", masks[1]), (0, None, None)], settings)
    assert features(output) == []
    for name, setting in zip(PATTERNS, settings):
        path = output / f"pmap-{name}.dcm"
        planes = planes_of(sorted(source.glob("*.dcm")))
        pmap = pydicom.dcmread(path)
        assert_map_is_content(path, planes[0].source.filename)
        assert_frames(pmap, planes, in_frames(maps[name]))
        assert_references(pmap, planes)
        assert_highdicom_reads(path, planes, in_frames(maps[name]))
        mapping = pmap.SharedFunctionalGroupsSequence[0].RealWorldValueMappingSequence[0]
        assert mapping.LUTExplanation == f"{name.upper()} code" + (f", {setting}" if setting else "")


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_patterns_of_real_series(run, tmp_path, name):
    """Of its 64 middle slices, or all if it has fewer."""
    files = sorted((SHARED / name).glob("*.dcm"))
    source = tmp_path / "in"
    source.mkdir()
    for path in files[max(0, len(files) // 2 - 32):][:64]:
        (source / path.name).symlink_to(path)
    run(source, tmp_path / "out", f'regions = [ "volume" ]; {ALL_PATTERNS}', [around_middle(-5000, 5000, 20)])
    _, stored, _ = read(source)
    assert_histograms(tmp_path / "out", maps_of(stored), [(0, None, None)])


def test_slices_without_a_pattern(run, tmp_path):
    """Two rows have no codes. With other results the run succeeds, and alone it fails."""
    source = series(tmp_path / "in", np.arange(3 * 2 * 9, dtype=np.uint16).reshape(3, 2, 9))
    whole = [segment(0, 100, (4, 0, 0))]
    told = run(source, tmp_path / "out", ALL_PATTERNS, whole, ("seg", "pmap")).stdout
    assert "less than 3 x 3" in told and not list((tmp_path / "out").glob("pmap*"))
    found = json.loads((tmp_path / "out" / "patterns.json").read_text())
    assert len(found) == 3 and not any(any(h["histogram"]) for h in found)
    assert "PMAP_EMPTY" in run(source, tmp_path / "no", ALL_PATTERNS, whole, ("pmap",), status=1).stderr
    assert_no_file_left(tmp_path / "no")
    run(source, tmp_path / "codes", ALL_PATTERNS, whole, ("codes",))
    assert (tmp_path / "codes" / "codes-1.nrrd").exists()


# --- undefined values ---


def sparse(folder):
    """A lone voxel of 500, a flat block of 700 and a gradient, in 0."""
    stored = np.zeros((6, 20, 22), np.int16)
    stored[1, 3, 4] = 500
    stored[2:4, 8:12, 8:12] = 700
    stored[4, 14:18, 5:20] = np.arange(900, 960).reshape(4, 15)
    return series(folder, stored)


SPARSE = [segment(450, 550, (4, 3, 1), label="Lone"), segment(650, 750, (9, 9, 2), label="Flat"),
          segment(900, 1000, (6, 15, 4), label="Sloped"), segment(5000, 6000, (0, 0, 0), label="None")]


@pytest.mark.parametrize("aggregation, glcm", [
    *((aggregation, "levels = 32;") for aggregation in AGGREGATIONS),
    ("2d-averaged", 'discretisation = "fixed-bin-size"; bin_width = 10.0;'),
    ("3d-merged", 'discretisation = "pyradiomics-bin-width"; bin_width = 10.0;')])
def test_absent_values_have_a_reason(run, tmp_path, aggregation, glcm):
    source = sparse(tmp_path / "in")
    run(source, tmp_path / "out", f'glcm = {{ {glcm} aggregation = "{aggregation}"; }};', SPARSE, ("seg", "sr"))
    all_of_them = features(tmp_path / "out")
    assert all((f["value"] is None) == (f["reason"] is not None) for f in all_of_them)
    lone, flat, sloped, none = (reasons_of(tmp_path / "out", number) for number in (1, 2, 3, 4))
    of_glcm = {f["name"] for f in all_of_them if f["family"] == "glcm"}
    assert len(of_glcm) == 26
    assert {n for n in of_glcm if lone[n] == "NO_NEIGHBOURS"} == of_glcm
    assert {n for n, reason in lone.items() if reason == "ONE_GREY_LEVEL"} == {"skewness", "kurtosis"}
    assert {n for n, reason in flat.items() if reason} == ONE_LEVEL
    assert {flat[n] for n in ONE_LEVEL} == {"ONE_GREY_LEVEL"}
    assert not any(sloped.values())
    assert {n for n, reason in none.items() if reason is None} == {"voxel_count", "volume"}
    assert {reason for reason in none.values() if reason} == {"EMPTY_REGION"}
    values = values_of(tmp_path / "out", 2)
    assert (values["joint_maximum"], values["joint_entropy"], values["contrast"], values["entropy"]) == (1, 0, 0, 0)
    assert values_of(tmp_path / "out", 1)["mean"] == 500 and values_of(tmp_path / "out", 4)["volume"] == 0
    assert_report_equals_features(tmp_path / "out", source)


@pytest.mark.parametrize("glcm, advice", [
    ('discretisation = "paper"; levels = 8;', "fixed-bin-number"),
    ('discretisation = "fixed-bin-size"; bin_width = 0.0001;', "bin_width"),
    ('discretisation = "pyradiomics-bin-width"; bin_width = 0.0001;', "bin_width"),
])
def test_values_without_levels(run, tmp_path, glcm, advice):
    source = sparse(tmp_path / "in")
    told = run(source, tmp_path / "out", f"glcm = {{ {glcm} }};", SPARSE[2:3], ("seg", "sr")).stdout
    assert advice in told and advice in json.loads((tmp_path / "out" / "job.json").read_text())["note"]
    reasons = reasons_of(tmp_path / "out", 1)
    assert {name for name, reason in reasons.items() if reason is None} >= PLACE | {"mean", "median", "maximum"}
    assert {reason for reason in reasons.values() if reason} == {"NOT_DISCRETISED"}
    assert len([reason for reason in reasons.values() if reason]) == 27  # the entropy too
    assert_report_equals_features(tmp_path / "out", source)


def test_a_range_without_voxels(run, tmp_path):
    run(sparse(tmp_path / "in"), tmp_path / "out", "glcm = { range = [ 2000.0, 3000.0 ]; };", SPARSE[2:3])
    for feature in features(tmp_path / "out"):
        is_place = feature["family"] == "shape"
        assert feature["reason"] == (None if is_place else "EMPTY_REGION"), feature["name"]
        assert feature["range"] == (None if is_place else [2000, 3000])


def test_the_volume_needs_no_segment(run, tmp_path):
    """If all requested measurements are of the volume, an empty segment is not an error."""
    source = head(tmp_path / "in")
    nothing = [segment(5000, 6000, (0, 0, 0), label="Nothing")]
    texture = f'regions = [ "volume" ]; glcm = {{ }}; {ALL_PATTERNS}'
    run(source, tmp_path / "out", texture, nothing, ("sr", "pmap"))
    job = json.loads((tmp_path / "out" / "job.json").read_text())
    assert (job["outcome"], job["code"]) == ("DONE", "") and job["volume"]["segmented_voxels"] == 0
    assert [r["file"] for r in job["results"]] == ["sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)]
    assert_report_equals_features(tmp_path / "out", source)
    assert_histograms(tmp_path / "out", maps_of(read(source)[1]), [(0, None, None)])
    for wanted, results in (texture, ("seg", "sr", "pmap")), (texture.replace("volume", "segments"), ("pmap",)):
        run(source, tmp_path / "no", wanted, nothing, results, status=7)
        assert not list((tmp_path / "no").glob("*.dcm"))


def test_a_job_without_voxels_lists_its_features(run, tmp_path):
    source = sparse(tmp_path / "in")
    run(source, tmp_path / "out", "glcm = { };" + ALL_PATTERNS, SPARSE[3:], ("seg", "sr", "pmap"), status=7)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted([*ALWAYS, *TABLES, "patterns.json"])
    assert {r for r in reasons_of(tmp_path / "out", 1).values()} == {None, "EMPTY_REGION"}
    found = json.loads((tmp_path / "out" / "patterns.json").read_text())
    assert [sum(h["histogram"]) for h in found] == [0, 0, 0]


# --- the tables ---

FIELDS = ["segment_number", "label", "name", "meaning", "family", "ibsi_code", "value", "reason", "unit",
          "aggregation", "aggregation_ibsi_code", "discretisation", "levels", "bin_width", "range", "distance",
          "symmetric", "directions", "sigma", "alpha", "percent", "interpolation", "isotropic_mm", "in_plane_mm", "rounding",
          "energy_shift", "filter", "filter_settings", "normalise_scale", "normalise_sigma", "image_type"]
OF_COLUMNS = FIELDS[:FIELDS.index("sigma")]  # of v_features; the others are in its settings


def from_csv(path):
    """Returns features.csv in the form of features.json."""
    lines = path.read_bytes().decode().split("\r\n")
    assert lines.pop() == "" and not any("\n" in line for line in lines)
    rows = list(csv.DictReader(lines))
    told = []
    for row in rows:
        low, high = row.pop("range_low"), row.pop("range_high")
        numbers = {key: float(row[key]) if row[key] else None for key in (
            "value", "bin_width", "sigma", "isotropic_mm", "in_plane_mm")}
        whole = {key: int(row[key]) if row[key] else None for key in ("segment_number", "levels", "distance", "alpha", "percent")}
        flag = {"": None, "true": True, "false": False}[row["symmetric"]]
        told.append({**{key: value or None for key, value in row.items()}, **numbers, **whole, "symmetric": flag,
                     "range": [float(low), float(high)] if low else None})
    return told


def test_the_tables_agree_in_all_digits(run, tmp_path):
    label = 'Größe, \\"links\\"; 脳'
    run(sparse(tmp_path / "in"), tmp_path / "out",
        'regions = [ "segments", "volume" ]; glcm = { aggregation = "2.5d-merged"; angles = [ 0, 90 ]; '
        'distances = [ 1, 2 ]; }; range = [ 0.1, 1000.5 ]; sigma = 2.5; discretisation = "fixed-bin-size"; bin_width = 12.5;',
        [segment(900, 1000, (6, 15, 4), label=label), SPARSE[0]])
    told = features(tmp_path / "out")
    assert all(list(feature) == FIELDS for feature in told)
    assert from_csv(tmp_path / "out" / "features.csv") == told
    assert [f["segment_number"] for f in told] == [n for n in (1, 2, 0) for _ in range(28 + 2 * 26)]
    assert {f["name"] for f in told if f["family"] == "shape"} == PLACE
    assert {f["family"] for f in told} == {"first-order", "shape", "glcm"}
    assert told[0]["label"] == 'Größe, "links"; 脳' and told[-1]["label"] is None
    assert (told[-1]["directions"], told[-1]["bin_width"], told[-1]["range"]) == ("0,90", 12.5, [0.1, 1000.5])
    assert all(f["sigma"] == (None if f["family"] == "shape" else 2.5) for f in told)


def test_the_summary_names_the_features(run, tmp_path):
    told = run(head(tmp_path / "in"), tmp_path / "out", 'regions = [ "segments", "volume" ]; glcm = { };',
               [SOFT, segment(5000, 6000, (0, 0, 0), label="Nothing")]).stdout
    values = values_of(tmp_path / "out", 1)
    assert str(tmp_path / "out" / "features.json") in told
    assert f"mean {values['mean']:.6g} HU" in told and f"joint entropy {values['joint_entropy']:.6g}," in told
    assert "mean none (EMPTY_REGION)" in told
    assert f"{48 * 44 * 12} voxels" in told


@pytest.mark.parametrize(("setting", "word"), [('filter = { kind = "log"; sigma_mm = 2.0; };', "filtered"),
                                               ("normalise = { };", "normalised")])
def test_the_summary_has_values_of_the_image_only(run, tmp_path, setting, word):
    """The summary must not name a filter, nor an interpolation without resample."""
    told = run(head(tmp_path / "in"), tmp_path / "out", setting, [SOFT]).stdout
    assert "mean" in values_of(tmp_path / "out")
    assert "mean" not in told and f", {word}" in told and "interpolation" not in told


# --- objects ---


def test_the_same_input_gives_the_same_results(run, tmp_path):
    """Independent of the order of files and the number of threads."""
    source = head(tmp_path / "in")
    (tmp_path / "shuffled").mkdir()
    for number, path in enumerate(sorted(source.glob("*.dcm"), reverse=True)):
        shutil.copy(path, tmp_path / "shuffled" / f"{number:03}.dcm")
    texture = f'regions = [ "segments", "volume" ]; glcm = {{ aggregation = "3d-averaged"; }}; {ALL_PATTERNS}'
    for name, folder, threads in ("a", source, 1), ("b", tmp_path / "shuffled", 7):
        run(folder, tmp_path / name, texture, [SOFT], ("seg", "sr", "pmap"), arguments=("--threads", str(threads)))
    for table in (*TABLES, "patterns.json"):
        assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()
    names = ["seg.dcm", "sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    objects = [pydicom.dcmread(tmp_path / "a" / name) for name in names]
    assert len({o.SOPInstanceUID for o in objects}) == len({o.SeriesInstanceUID for o in objects}) == len(names)
    assert sorted(o.SeriesNumber for o in objects) == list(range(9000, 9000 + len(names)))
    assert len({o.StudyInstanceUID for o in objects}) == 1


@pytest.mark.parametrize("regions, results", [('"segments"', ("seg", "sr")), ('"segments", "volume"', ("seg", "sr")),
                                              ('"volume"', ("sr",))])
@pytest.mark.parametrize("glcm", [
    'aggregation = "3d-averaged"; distances = [ 1, 2 ];',
    'aggregation = "2d-averaged"; discretisation = "pyradiomics-bin-width"; bin_width = 12.5; symmetric = false;',
    'aggregation = "2.5d-merged"; discretisation = "fixed-bin-size"; bin_width = 4.0; range = [ -3.0, 90.0 ]; '
    'angles = [ 0, 135 ];',
    'symmetric = false; levels = 8; offsets = ( [ 2, 0, 1 ], [ 0, -3, 0 ] );',
])
def test_the_report_equals_the_tables(run, tmp_path, regions, results, glcm):
    source = head(tmp_path / "in")
    run(source, tmp_path / "out", f"regions = [ {regions} ]; glcm = {{ {glcm} }};",
        [SOFT, segment(300, 3000, (24, 2, 6), 3, "Bone")], results)
    assert_report_equals_features(tmp_path / "out", source)


@needs_shared
@pytest.mark.parametrize("name", ["ct-head-5mm", "mr-brain-t1"])
def test_objects_of_real_series(run, tmp_path, name):
    run(SHARED / name, tmp_path / "out", f'regions = [ "segments", "volume" ]; glcm = {{ }}; patterns = [ "lbp" ];',
        [around_middle(20, 90, 20)], ("seg", "sr", "pmap"))
    assert_report_equals_features(tmp_path / "out", SHARED / name)
    assert_map_is_content(tmp_path / "out" / "pmap-lbp.dcm", sorted((SHARED / name).glob("*.dcm"))[0])


# --- full disk and other failures ---

EVERYTHING = ('regions = [ "segments", "volume" ]; glcm = { distances = [ 1, 2 ]; matrices = "counts"; }; '
              f"{ALL_PATTERNS}")
OBJECTS = ("seg", "sr", "pmap")


def test_a_disk_full_at_any_file_leaves_no_file(run, tmp_path):
    """From no room to just enough, for blocks and for names: each file is the first that does not fit once, and no
    file remains."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "noctule-test", small],
                      capture_output=True).returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    try:
        source = head(tmp_path / "in", ("--kind", "sphere", "--size", "32x32x8"))
        segments = [segment(0, 90, (16, 16, 4), 4, "Soft")]
        stopped_at = set()
        # Files of other processes may use pages in a small file system, but not file names.
        for limits in ([f"size={4 * pages}k" for pages in range(1, 400, 5)], [f"nr_inodes={names}" for names in range(4, 40)]):
            for limit in limits:
                subprocess.run(["mount", "-o", f"remount,{limit}", small], check=True)
                result = subprocess.run(
                    [BIN / "noctule", "--config", tmp_path / "noctule.conf", "run", "--pipeline", "texture", "--output",
                     small / "out", source], text=True, capture_output=True) if stopped_at else run(
                    source, small / "out", EVERYTHING, segments, OBJECTS, status=1)
                if result.returncode == 0:
                    break
                assert "DISK_FULL" in result.stderr, result.stderr
                stopped_at.add(result.stderr.split("DISK_FULL: ", 1)[1].splitlines()[0])
                assert [p for p in small.rglob("*") if p.is_file()] == []
            assert result.returncode == 0
            shutil.rmtree(small / "out")
        told = "\n".join(stopped_at)
        for name in (*TABLES, "patterns.json", "matrices.json", "segmentation", "report", "parametric map"):
            assert name in told, told
    finally:
        subprocess.run(["umount", "-l", small], check=True)


@pytest.mark.parametrize("regions, results, victim, name", [
    ('"segments", "volume"', ("seg", "sr"), "sr.dcm", "report"),
    ('"segments"', ("seg", "pmap"), "pmap-lbp.dcm", "parametric map"),
    ('"segments", "volume"', ("seg",), "features.json", "features.json"),
])
def test_an_incomplete_file_fails_the_run(run, tmp_path, regions, results, victim, name):
    """A limit on file sizes that only this file exceeds, after smaller ones were written."""
    source = head(tmp_path / "in", ("--size", "32x32x24"))
    texture = f'regions = [ {regions} ]; glcm = {{ distances = [ 1, 2, 3, 4 ]; }}; patterns = [ "lbp" ];'
    segments = [segment(0, 90, (16, 16, 12), 4, "Soft")]
    run(source, tmp_path / "out", texture, segments, results)
    limit = (tmp_path / "out" / victim).stat().st_size - 1
    result = run(source, tmp_path / "again", texture, segments, results, status=1,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "DISK_FULL" in result.stderr and name in result.stderr
    assert_no_file_left(tmp_path / "again")


@pytest.mark.parametrize("texture, results, word", [
    ("first_order = false;", ("seg",), "there is no measurement"),
    ("glcm = { };", ("sr",), '"sr"'),
    ("glcm = { };", ("seg", "pmap"), "patterns"),
    ("glcm = { levels = 1; };", ("seg",), "levels"),
    ("glcm = { levels = 65537; };", ("seg",), "levels"),
    ('glcm = { discretisation = "fixed-bin-size"; };', ("seg",), "bin_width"),
    ('glcm = { aggregation = "2d-averaged"; offsets = ( [ 1, 0, 1 ] ); };', ("seg",), "slice"),
    ("glcm = { offsets = ( [ 0, 0, 0 ] ); };", ("seg",), "offsets"),
    ("glcm = { angles = [ 0 ]; };", ("seg",), "angles"),
    ("glcm = { range = [ 9.0, 1.0 ]; };", ("seg",), "range"),
    ('patterns = [ "ltp" ];', ("seg",), "lanadp"),
])
def test_contradictory_settings_are_refused(run, tmp_path, texture, results, word):
    source = head(tmp_path / "in", ("--size", "32x32x4"))
    result = run(source, tmp_path / "out", texture, [SOFT], results, status=5)
    assert word in result.stderr and "noctule.conf" in result.stderr
    assert_no_file_left(tmp_path / "out")


# --- the service ---


def test_the_daemon_stores_and_delivers_the_features(daemon, tmp_path):
    """`noctule features`, v_features and the delivered objects agree with the files of the job."""
    source = head(tmp_path / "in")
    with storescp(tmp_path / "archive") as archive:
        texture = f'regions = [ "segments", "volume" ]; glcm = {{ distances = [ 1, 2 ]; }}; {ALL_PATTERNS}'
        settings = f"""
            root = "{tmp_path / 'daemon0' / 'root'}";
            inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
            series = {{ quiet_seconds = 1.0; complete_seconds = 0.1; patience_seconds = 1.0; }};
            min_free_mib = 1; log_level = "debug"; {QUICK}
            destinations = ( {to_folder(tmp_path / "shelf", "SHELF")}, {to_archive(archive.port)} );
            rules = ( {{ pipeline = "texture"; }} );
            """ + pipeline(texture, [SOFT, segment(5000, 6000, (0, 0, 0), label="Nothing")], OBJECTS,
                           'deliver = [ "SHELF", "PACS" ];')
        d = daemon(settings=settings).start()
        drop(sorted(source.glob("*.dcm")), d.inbox)
        (job,) = d.wait_jobs()
        assert job["state"] == "DONE", job["message"]
        wait_for(lambda: [row["state"] for row in d.query("SELECT state FROM v_deliveries")] == ["SENT"] * 10, 40,
                 "ten deliveries")
        held = {pydicom.dcmread(path).SOPInstanceUID: pydicom.dcmread(path) for path in archive.files()}
    folder = (d.root / job["result_path"]).parent
    told = features(folder)
    assert json.loads(d.ctl("features", job["job"], "--json").stdout) == told
    assert d.ctl("features", job["job"], "--csv").stdout.encode() == (folder / "features.csv").read_bytes().replace(
        b"\r\n", b"\n")
    rows = [{**dict(row), "segment_number": row["segment"]}
            for row in d.query("SELECT * FROM v_features ORDER BY place")]
    for row, feature in zip(rows, told, strict=True):
        assert row["range_low"] == (feature["range"] or [None])[0]
        assert all((row[key] or None) == (feature[key] or None) for key in OF_COLUMNS if key != "range")
    made = sorted(path.name for path in folder.iterdir() if path.suffix == ".dcm")
    assert made == sorted(["seg.dcm", "sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)])
    shelf = {pydicom.dcmread(path).SOPInstanceUID: path for path in (tmp_path / "shelf").rglob("*.dcm")}
    for name in made:
        ours = pydicom.dcmread(folder / name)
        assert shelf[ours.SOPInstanceUID].read_bytes() == (folder / name).read_bytes()
        assert held[ours.SOPInstanceUID] == ours, name
    assert len(held) == len(shelf) == len(made)


@pytest.mark.parametrize("point", ["worker_in_write", "worker_after_rename"])
def test_a_worker_killed_while_writing_objects(daemon, tmp_path, point):
    """The report is written first. The next attempt leaves one object of each kind, and no partial files."""
    once = tmp_path / "crashed"
    extra = f'results = [ "sr", "pmap" ]; texture = {{ regions = [ "volume" ]; glcm = {{ }}; {ALL_PATTERNS} }};'
    d = daemon(quiet=0.5, pipeline_extra=extra,
               environment={"NOCTULE_CRASH_AT": point, "NOCTULE_CRASH_ONCE": str(once)}).start()
    source = head(tmp_path / "in")
    drop(sorted(source.glob("*.dcm")), d.inbox)
    wait_for(once.exists, 60, f"the crash at {point}")
    (job,) = d.wait_jobs()
    assert (job["state"], job["attempts"]) == ("DONE", 2), job["message"]
    assert not list(d.root.rglob("*.part"))
    made = d.query("SELECT kind, path FROM v_results ORDER BY kind")
    assert [row["kind"] for row in made] == ["pmap", "pmap", "pmap", "sr"]
    (folder,) = {(d.root / row["path"]).parent for row in made}
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*ALWAYS, *TABLES, "patterns.json", "sr.dcm", *(f"pmap-{name}.dcm" for name in PATTERNS)])
    assert_report_equals_features(folder, source)
