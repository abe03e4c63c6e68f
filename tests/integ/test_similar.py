"""noctule similar: like and unlike textures of generated series, in the command, v_pattern_distances, the API and the web
UI. SciPy and NumPy compute the expected distances from the counts."""

import csv
import io
import itertools
import json
import sqlite3
import subprocess
import threading

import numpy as np
import pydicom
import pytest
import scipy.ndimage
import scipy.spatial.distance
from conftest import BIN, daemons, drop, phantom, wait_for
from test_page import Site

NOT_FOUND, USAGE, DATABASE = 3, 2, 6
REGION_BYTES = 40  # struct pattern_region
PATTERNS = ("lbp", "tlbap", "lanadp")
TEXTURE = """texture = { regions = [ "volume", "segments" ]; glcm = { levels = 16; };
      patterns = [ "lbp", "tlbap", "lanadp" ]; };
    results = [ "seg" ];"""
# Grain of the texture in pixels: the series of one row are alike.
KINDS = {"fine": 0.0, "coarse": 2.5}
PER_KIND = 3


def textured(folder, kind, number):
    """A series whose values are noise of this grain, of equal mean and deviation."""
    files = phantom(folder, "--size", "48x40x8", "--seed", str(number))
    noise = np.random.default_rng(number).normal(size=(len(files), 40, 48))
    noise = scipy.ndimage.gaussian_filter(noise, (0, KINDS[kind], KINDS[kind]))
    values = np.rint(1064 + 60 * (noise - noise.mean()) / noise.std()).astype("int16")
    for file, plane in zip(sorted(files), values, strict=True):
        ds = pydicom.dcmread(file)
        ds.PixelData = plane.tobytes()
        ds.PatientID = f"{kind}-{number}"
        ds.StudyDescription = kind
        ds.SeriesDescription = kind
        ds.save_as(file)
    return files


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("similar")
    with daemons(folder) as daemon:
        site = Site(daemon, quiet=0.5, pipeline_extra=TEXTURE, extra='identifiers = "plain";\n').start()
        for number, kind in enumerate(sorted(KINDS) * PER_KIND, start=1):
            drop(textured(folder / f"in{number}", kind, number), site.daemon.inbox / str(number))
            site.daemon.wait_jobs(number)
        site.kinds = {row["job"]: row["series_description"] for row in site.daemon.query("SELECT * FROM v_jobs")}
        assert sorted(site.kinds.values()) == sorted(list(KINDS) * PER_KIND)
        yield site


def similar(site, *arguments, status=0):
    done = subprocess.run([BIN / "noctule", "--config", site.daemon.config, "similar", *map(str, arguments)], text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stderr


def answer(site, *arguments):
    return json.loads(similar(site, *arguments, "--json"))


def counts(site):
    """Returns the shares of codes: {(job, segment): {pattern: array}}."""
    found = {}
    for row in site.daemon.query("SELECT * FROM v_pattern_histograms WHERE superseded_by IS NULL"):
        values = np.array(json.loads(row["counts"]), float)
        if values.sum() > 0:
            found.setdefault((row["job"], row["segment"]), {})[row["pattern"]] = values / values.sum()
    return found


DISTANCES = {
    "chi-square": lambda p, q: float(((p - q) ** 2)[p + q > 0] @ (1 / (p + q)[p + q > 0])) / 2,
    "l1": scipy.spatial.distance.cityblock,
    "cosine": scipy.spatial.distance.cosine,
}


def expected(histograms, job, segment, patterns, distance):
    """Returns (distance, job, segment) of all regions of other jobs, nearest first."""
    own = histograms[job, segment]
    return sorted((float(np.mean([DISTANCES[distance](own[k], other[k]) for k in patterns])), *place)
                  for place, other in histograms.items() if place[0] != job)


def places(found):
    return [(item["job"], item["segment"]) for item in found]


# ------------------------------------------------------------------------------------ rank, distance


def test_like_textures_come_first(site):
    for job, kind in site.kinds.items():
        for by in (*PATTERNS, "patterns", "glcm"):
            items = answer(site, job, "--segment", 0, "--by", by)["items"]
            whole = [item for item in items if item["segment"] == 0]
            assert [site.kinds[item["job"]] for item in whole][:PER_KIND - 1] == [kind] * (PER_KIND - 1), (job, by)
            assert [item["rank"] for item in items] == list(range(1, len(items) + 1))


def test_distances_equal_those_of_scipy_and_of_the_view(site):
    histograms = counts(site)
    for by, distance in itertools.product((*PATTERNS, "patterns"), DISTANCES):
        patterns = PATTERNS if by == "patterns" else (by,)
        for segment in (0, 1):
            found = answer(site, 1, "--segment", segment, "--by", by, "--distance", distance, "--limit", 100)
            truth = expected(histograms, 1, segment, patterns, distance)
            assert found["searched"] == len(truth) == len(found["items"])
            assert places(found["items"]) == [(job, number) for _, job, number in truth]
            assert [item["distance"] for item in found["items"]] == pytest.approx([t[0] for t in truth], abs=1e-12)
        column = distance.replace("-", "_")
        rows = site.daemon.query(
            f"SELECT other_job, other_segment, avg({column}) AS distance FROM v_pattern_distances WHERE job = 1 AND segment = 1 "
            f"AND pattern IN ({', '.join('?' * len(patterns))}) GROUP BY 1, 2 ORDER BY 3", *patterns)
        assert [(row["other_job"], row["other_segment"]) for row in rows] == places(found["items"])
        assert [row["distance"] for row in rows] == pytest.approx([i["distance"] for i in found["items"]], abs=1e-12)


def test_glcm_equals_standardised_features(site):
    values = {}
    for row in site.daemon.query("SELECT * FROM v_features WHERE family = 'glcm' AND value IS NOT NULL"):
        values.setdefault((row["job"], row["segment"]), {})[row["name"], row["settings"]] = row["value"]
    own = values[1, 0]
    same = {place: [v[name] for name in sorted(own)] for place, v in values.items() if set(v) == set(own)}
    matrix = np.array(list(same.values()))
    scale = matrix.std(axis=0)
    z = dict(zip(same, (matrix - matrix.mean(axis=0)) / np.where(scale > 0, scale, 1), strict=True))
    measures = {"euclidean": lambda a, b: float(np.sqrt(np.mean((a - b) ** 2))), "l1": lambda a, b: float(np.mean(abs(a - b))),
                "cosine": scipy.spatial.distance.cosine}
    for distance, measure in measures.items():
        found = answer(site, 1, "--segment", 0, "--by", "glcm", "--distance", distance, "--limit", 100)
        truth = sorted((measure(z[1, 0], other), *place) for place, other in z.items() if place[0] != 1)
        assert places(found["items"]) == [(job, segment) for _, job, segment in truth]
        assert [item["distance"] for item in found["items"]] == pytest.approx([t[0] for t in truth], rel=1e-9, abs=1e-12)


def test_rows_have_their_region(site):
    text = similar(site, 1, "--segment", 0)
    assert "Job 1, segment 0: lanadp, lbp, tlbap (threshold=0.9), distance chi-square" in text
    assert "regions were compared." in text and "does not mean the same disease" in text
    rows = list(csv.DictReader(io.StringIO(similar(site, 1, "--segment", 1, "--csv"))))
    items = answer(site, 1, "--segment", 1)["items"]
    assert [{key: "" if value is None else str(value) for key, value in item.items() if key not in ("distance", "volume_ml")}
            for item in items] == [{key: value for key, value in row.items() if key not in ("distance", "volume_ml")} for row in rows]
    for item in items:
        (job,) = site.daemon.query("SELECT * FROM v_jobs WHERE job = ?", item["job"])
        volumes = site.daemon.query("SELECT * FROM v_segments WHERE job = ? AND segment = ?", item["job"], item["segment"])
        assert (item["pipeline"], item["series_uid"], item["measured_at"]) == (job["pipeline"], job["series_uid"], job["ended_at"])
        assert [(item["label"], item["volume_ml"])] == [(v["label"], v["volume_ml"]) for v in volumes] or [("", None)]
    # the codes that differ most, with their shares
    why = answer(site, 1, "--segment", 0, "--by", "lbp", "--distance", "l1")["items"][0]
    histograms = counts(site)
    p, q = histograms[1, 0]["lbp"], histograms[why["job"], why["segment"]]["lbp"]
    code = int(np.argmax(abs(p - q)))
    assert why["why"].startswith(f"lbp {code}: {100 * p[code]:.2f} % and {100 * q[code]:.2f} %; ")


def test_wrong_requests_are_refused_by_name(site):
    assert "several regions: choose one of 0 (whole volume), 1 (Brain)" in similar(site, 1, status=USAGE)
    assert answer(site, 1, "--segment", "Brain")["segment"] == 1
    assert "has no region Liver" in similar(site, 1, "--segment", "Liver", status=NOT_FOUND)
    assert "there is no job 99" in similar(site, 99, status=NOT_FOUND)
    assert "no job with texture" in similar(site, "1.2.3", status=NOT_FOUND)
    assert "chi-square compares histograms" in similar(site, 1, "--segment", 0, "--by", "glcm", "--distance", "chi-square", status=USAGE)
    assert "euclidean compares features" in similar(site, 1, "--segment", 0, "--distance", "euclidean", status=USAGE)
    assert '--by: there is no "shape"; it is one of lbp, tlbap' in similar(site, 1, "--segment", 0, "--by", "shape", status=USAGE)
    assert '--distance: there is no "l2"; it is one of chi-square, l1' in similar(site, 1, "--distance", "l2", status=USAGE)
    for words in ((), (1, "--evaluate", "patient"), (1, "--spacing", "much"), (1, "--json", "--csv"), ("--evaluate", "patient", "--csv")):
        similar(site, *words, status=USAGE)
    (row,) = site.daemon.query("SELECT series_uid FROM v_jobs WHERE job = 2")
    assert answer(site, row["series_uid"], "--segment", 0)["job"] == 2


# --------------------------------------------------------------------------------------- evaluation


def scores(histograms, labels, series):
    """Leave one out, written for itself: precision at 1, 5 and 10, their best values, mean average precision, chance."""
    found = []
    for job, segment in histograms:
        ranked = [labels[other, number] == labels[job, segment]
                  for _, other, number in expected(histograms, job, segment, PATTERNS, "chi-square") if series[other] != series[job]]
        if any(ranked):
            hits = np.flatnonzero(ranked)
            found.append([*(np.mean(ranked[:k]) for k in (1, 5, 10)),
                          *(min(len(hits), len(ranked[:k])) / len(ranked[:k]) for k in (1, 5, 10)),
                          np.mean(np.arange(1, len(hits) + 1) / (hits + 1)), np.mean(ranked)])
    return len(found), np.mean(found, axis=0)


KEYS = ("precision_1", "precision_5", "precision_10", "best_1", "best_5", "best_10", "mean_average_precision", "chance")


def test_an_evaluation_equals_its_definition(site, tmp_path):
    histograms = counts(site)
    series = {row["job"]: row["series_uid"] for row in site.daemon.query("SELECT * FROM v_jobs")}
    kinds = {place: site.kinds[place[0]] for place in histograms}
    for column in ("description", "label"):
        labels = kinds if column == "description" else {place: "Brain" if place[1] else "" for place in histograms}
        found = json.loads(similar(site, "--evaluate", column, "--json"))
        regions = {place: h for place, h in histograms.items() if labels[place]}
        queries, truth = scores(regions, labels, series)
        assert (found["queries"], found["regions"]) == (queries, len(regions))
        assert [found[key] for key in KEYS] == pytest.approx(list(truth), abs=1e-12)
    # labels of the site, by job and by patient
    for column, name in (("job", str), ("patient", lambda job: f"{site.kinds[job]}-{job}")):
        path = tmp_path / f"{column}.csv"
        path.write_text(f'{column},texture\n' + "".join(f'{name(job)},"a ""{kind}"" one"\r\n' for job, kind in site.kinds.items()))
        found = json.loads(similar(site, "--labels", path, "--json"))
        queries, truth = scores(histograms, kinds, series)
        assert (found["queries"], found["labels"]) == (queries, 2)
        assert [found[key] for key in KEYS] == pytest.approx(list(truth), abs=1e-12)
    text = similar(site, "--evaluate", "description", "--segment", "Brain", "--by", "lbp")
    assert "same description, by lbp, distance chi-square" in text and "6 regions, 2 labels; 6 queries" in text
    # each patient has one series, so that no query has another one to find
    assert "none can be compared with one of the same label" in similar(site, "--evaluate", "patient", status=NOT_FOUND)
    (tmp_path / "wrong.csv").write_text("patient,x\nsomebody,a\n")
    assert "none of 12 regions has a label" in similar(site, "--labels", tmp_path / "wrong.csv", status=NOT_FOUND)
    for text in ("nothing,x\n1,a\n", "job,x\n1,a\n1,b\n", 'job,x\n1,"a\n', "job,x\n", "job,x\n1,a,b\n2,a\n", "job;x\n1;a\n", "job,x\n1\n"):
        (tmp_path / "wrong.csv").write_text(text)
        similar(site, "--labels", tmp_path / "wrong.csv", status=USAGE)


# -------------------------------------------------------------------------------------- web UI, API


def test_the_api_and_the_page_show_the_same(site):
    truth = answer(site, 1, "--segment", 1, "--by", "lbp", "--limit", 5)
    assert json.loads(site.text("api/v1/jobs/1/similar?segment=1&by=lbp&limit=5")) == truth
    assert site.text("api/v1/jobs/1/similar?segment=1&by=lbp&limit=5&format=csv") == similar(
        site, 1, "--segment", 1, "--by", "lbp", "--limit", 5, "--csv").replace("\n", "\r\n")
    for query, status in (("segment=1&by=all", 400), ("segment=1&limit=0", 400), ("segment=1&limit=1001", 400), ("", 400),
                          ("segment=1&spacing=x", 400), ("segment=7", 404)):
        site.get(f"api/v1/jobs/1/similar?{query}", status)
    site.get("api/v1/jobs/99/similar?segment=1", 404)
    assert "/api/v1/jobs/{job}/similar" in json.loads(site.text("api/v1/openapi.json"))["paths"]
    assert 'href="similar?id=1&amp;by=patterns">Similar texture</a>' in site.text("job?id=1")
    text = site.text("similar?id=1&by=lbp&segment=1")
    shown = answer(site, 1, "--segment", 1, "--by", "lbp", "--limit", 12)["items"]
    assert text.count("<li>") >= len(shown)
    for item in shown:
        assert f'<strong>{item["distance"]:.4f}</strong> job {item["job"]}</a>' in text
        assert item["why"] in text
    assert 'src="preview?id=1"' in text and "does not mean the same disease" in text and "codes that differ most, with their shares" in text and "<script" not in text.split("<main")[1]
    assert "no job 99" in site.text("similar?id=99")
    site.get("similar?id=1&by=all", 404)


# ------------------------------------------------------------ other settings, states, blocks, deletion


def copy_job(db, job, histograms, **changes):
    """Adds a copy of a job with these histograms, {(segment, pattern): counts}."""
    columns = [row[1] for row in db.execute("PRAGMA table_info(job)") if row[1] != "id"]
    values = [f"'{changes[c]}'" if c in changes else c for c in columns]
    (uid,) = db.execute("SELECT count(*) FROM series").fetchone()
    series = [row[1] for row in db.execute("PRAGMA table_info(series)") if row[1] not in ("id", "series_uid")]
    cursor = db.execute(f"INSERT INTO series (series_uid, {', '.join(series)}) SELECT '2.25.{uid}', {', '.join(series)} FROM series "
                        f"WHERE id = (SELECT series_id FROM job WHERE id = {job})")
    values[columns.index("series_id")] = str(cursor.lastrowid)
    stack = [row[1] for row in db.execute("PRAGMA table_info(stack)") if row[1] not in ("id", "series_id")]
    db.execute(f"INSERT INTO stack (series_id, {', '.join(stack)}) SELECT {cursor.lastrowid}, {', '.join(stack)} FROM stack "
               f"WHERE series_id = (SELECT series_id FROM job WHERE id = {job})")
    new = db.execute(f"INSERT INTO job ({', '.join(columns)}) SELECT {', '.join(values)} FROM job WHERE id = {job}").lastrowid
    for (segment, pattern), values in histograms.items():
        db.execute("INSERT INTO pattern_histogram (job_id, segment_number, label, pattern, settings, counts) "
                   "SELECT ?, ?, label, pattern, settings, ? FROM pattern_histogram WHERE job_id = ? AND segment_number = ? AND pattern = ?",
                   (new, segment, "[" + ",".join(map(str, values)) + "]", job, segment, pattern))
    return new


@pytest.fixture
def stopped(site, tmp_path):
    """The site without its daemon. Its database is as before after the test."""
    site.daemon.stop()
    root = site.daemon.root
    with sqlite3.connect(root / "noctule.db") as db, sqlite3.connect(tmp_path / "copy.db") as copy:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.backup(copy)
    yield site
    site.daemon.stop()
    for path in root.glob("noctule.db*"):
        path.unlink()
    with sqlite3.connect(tmp_path / "copy.db") as copy, sqlite3.connect(root / "noctule.db") as db:
        copy.backup(db)
        db.execute("PRAGMA journal_mode = WAL")
    site.start()


def change(site, *statements):
    db = sqlite3.connect(site.daemon.root / "noctule.db")
    with db:
        for statement in statements:
            db.execute(statement)
    db.close()


def test_other_settings_are_counted_and_other_states_left_out(stopped):
    site, before = stopped, answer(stopped, 1, "--segment", 0, "--limit", 100)
    assert (before["searched"], before["other_settings"], before["other_grid"]) == (10, 0, 0)
    change(site, "UPDATE job SET spacing_x_mm = spacing_x_mm * 1.1, spacing_y_mm = spacing_y_mm * 1.1 WHERE id = 2",
           "UPDATE pattern_histogram SET settings = 'threshold=0.8' WHERE job_id = 3 AND pattern = 'tlbap'",
           "UPDATE job SET straightened = 'tilted' WHERE id = 5", "UPDATE job SET superseded_by = 6 WHERE id = 4")
    found = answer(site, 1, "--segment", 0, "--limit", 100)
    # Job 4 is superseded: only the two regions of job 6 are left.
    assert (found["searched"], found["other_settings"], found["other_grid"]) == (2, 2, 4)
    assert {job for job, _ in places(found["items"])} == {6}
    assert {job for job, _ in places(answer(site, 1, "--segment", 0, "--by", "lbp", "--limit", 100)["items"])} == {3, 6}
    assert {job for job, _ in places(answer(site, 1, "--segment", 0, "--spacing", "11", "--limit", 100)["items"])} == {2, 6}
    assert answer(site, 1, "--segment", 0, "--spacing", "9", "--limit", 100)["other_grid"] == 4
    assert {job for job, _ in places(answer(site, 1, "--segment", 0, "--spacing", "any", "--limit", 100)["items"])} == {2, 5, 6}
    assert "on another pixel grid" in similar(site, 1, "--segment", 0)
    rows = site.daemon.query("SELECT DISTINCT other_job FROM v_pattern_distances WHERE job = 1 AND pattern = 'tlbap'")
    assert {row[0] for row in rows} == {6}
    change(site, "UPDATE job SET state = 'REJECTED' WHERE id = 6")
    found = answer(site, 1, "--segment", 0)
    assert (found["items"], found["searched"]) == ([], 0)
    assert "is not DONE" in similar(site, 6, "--segment", 0, status=NOT_FOUND)
    assert answer(site, 1, "--segment", 0, "--pipeline", "other")["searched"] == 0


def fill(site, count, seed=1):
    """Adds copies of job 1 with other histograms."""
    rng = np.random.default_rng(seed)
    shapes = rng.dirichlet(np.full(256, 0.5), 20)
    db = sqlite3.connect(site.daemon.root / "noctule.db")
    with db:
        jobs = [copy_job(db, 1, {(segment, pattern): rng.multinomial(20_000, rng.dirichlet(np.full(20, 0.3)) @ shapes)
                                 for segment in (0, 1) for pattern in PATTERNS}) for _ in range(count)]
    db.close()
    return jobs


def searches(site):
    return [answer(site, job, "--segment", 1, "--limit", 25, *words) for job in (1, 2, 50) for words in (
        (), ("--by", "tlbap"), ("--distance", "l1"), ("--distance", "cosine"), ("--pipeline", "head-ct"))]


def blocks(site):
    return site.daemon.query("SELECT last_id, stale, length(data) FROM pattern_block WHERE term_id = 0 ORDER BY last_id")


def wait_blocks(site, count):
    wait_for(lambda: len(blocks(site)) >= count and not any(row["stale"] for row in blocks(site)), 60, "blocks")


def assert_nearest(site, *jobs):
    histograms = counts(site)
    for job in jobs:
        truth = expected(histograms, job, 1, PATTERNS, "chi-square")[:25]
        found = answer(site, job, "--segment", 1, "--limit", 25)["items"]
        assert places(found) == [(other, segment) for _, other, segment in truth]
        assert [item["distance"] for item in found] == pytest.approx([t[0] for t in truth], abs=1e-12)


def test_blocks_change_no_answer(stopped):
    site = stopped
    fill(site, 1100)
    before = searches(site)
    assert_nearest(site, 1, 50)
    answers, end = [], threading.Event()

    def repeat():
        while not end.is_set():
            answers.append(searches(site))

    thread = threading.Thread(target=repeat)
    thread.start()
    site.daemon.start()
    wait_blocks(site, 2)
    end.set()
    thread.join()
    answers.append(searches(site))
    assert all(found == before for found in answers)
    site.daemon.stop()
    # A deleted job is not found, also while a block has it; the daemon then makes the block again.
    nearest, whole = before[10]["items"][0]["job"], sum(row[2] for row in blocks(site))
    change(site, f"DELETE FROM pattern_histogram WHERE job_id = {nearest}", f"DELETE FROM job WHERE id = {nearest}")
    assert sum(row["stale"] for row in blocks(site)) == 1
    assert_nearest(site, 1, 50)
    site.daemon.start()
    wait_blocks(site, 2)
    site.daemon.stop()
    assert whole - sum(row[2] for row in blocks(site)) == 2 * REGION_BYTES
    assert_nearest(site, 1, 50)
    # The ids of deleted rows at the end are given again: no block may have the old counts.
    last = site.daemon.query("SELECT max(job_id) FROM pattern_histogram")[0][0]
    change(site, f"DELETE FROM pattern_histogram WHERE job_id > {last - 600}", f"DELETE FROM job WHERE id > {last - 600}")
    fill(site, 30, seed=2)
    assert_nearest(site, 1, 50)


def test_a_damaged_block_is_reported(stopped):
    site = stopped
    fill(site, 520)
    site.daemon.start()
    wait_blocks(site, 1)
    site.daemon.stop()
    change(site, "UPDATE pattern_block SET data = substr(data, 1, length(data) - 7) WHERE term_id <> 0")
    assert "a block of pattern histograms is damaged" in similar(site, 1, "--segment", 0, status=DATABASE)
    change(site, "UPDATE pattern_block SET data = x'', stale = 1 WHERE term_id = 0")
    assert "damaged" in similar(site, 1, "--segment", 0, status=DATABASE)
    site.daemon.start()
    wait_blocks(site, 1)
    wait_for(lambda: blocks(site)[0][2] > 0, 60, "the block again")
    assert answer(site, 1, "--segment", 0)["items"]
