"""Each call of the CUDA runtime fails in turn, in complete jobs of `noctule run` and of the service on the emulated
GPU. Kinds of failures: once, once without memory, or loss of the GPU (kernels/cuda/fault.h). Results must not
change. A job succeeds or fails with a permitted code, no partial file remains, and failed jobs succeed without
faults.

NOCTULE_FAULT_POINTS is the number of tried calls of each kind, evenly spread, with three times as many for
`noctule run`, because its lives are short. 0 tries all."""

import concurrent.futures
import os
import subprocess

import pytest
from conftest import EMULATED, Daemon, drop, needs_emulator, phantom, wait_for

pytestmark = needs_emulator

POINTS = int(os.environ.get("NOCTULE_FAULT_POINTS", "1"))
KINDS = {"once": "", "memory": ":memory", "lost": ":lost"}
LIVES = 2 * os.cpu_count()  # at a time
UNOPENED = "cannot open the compute backend"
CODES = {"COMPUTE_FAILED", "COMPUTE_DEVICE_LOST"}

SETTINGS = """
root = "{root}";
inbox = ( {{ path = "inbox"; settle_seconds = 0.1; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 0.2; complete_seconds = 0.1; }};
jobs = {{ max_attempts = 2; retry_seconds = 0.1; retry_max_seconds = 0.2; }};
compute = {{ backend = "cuda"; lanes = 1; threads = 1; }};
min_free_mib = 1;
pipelines = (
  {{ name = "all-kinds"; results = [ "seg", "codes" ];
    segments = (
      {{ label = "Middle"; range = [ 10.0, 2000.0 ]; type = {type};
        shapes = ( {{ center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} ); }},
      {{ label = "Object"; method = "fuzzy-connectedness"; type = {type};
        seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} ); threshold = 0.4; }},
      {{ label = "Body"; method = "range"; range = {{ otsu = 2; class = 2; }}; type = {type};
        then = ( {{ keep = 1; }}, {{ fill = "slices"; }}, {{ open_mm = 2.0; }} ); }} );
    texture = {{ regions = [ "segments" ]; families = [ {families} ]; patterns = [ "lbp" ]; levels = 8; }};
  }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "all-kinds"; }} );
"""
# All but spatial-correlation, which needs six seconds for its transforms on the emulator.
FAMILIES = ("morphology", "local-intensity", "first-order", "intensity-histogram", "intensity-volume-histogram", "glcm", "glrlm",
            "glszm", "gldzm", "ngtdm", "ngldm")
TYPE = '{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }'


def settings(root):
    return SETTINGS.format(root=root, type=TYPE, families=", ".join(f'"{each}"' for each in FAMILIES))


def results_in(folder):
    """Returns the values of tables and codes. Times and UIDs of objects differ per job."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())
            if path.suffix in (".json", ".csv", ".npy") and path.name != "job.json"}


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    phantom(folder, "--kind", "ct-head", "--size", "40x36x6", "--tilt", "12")
    return folder


def spread(last, points):
    """Returns that many of the numbers 1 .. last, or all for 0."""
    return range(1, last + 1) if points == 0 else [int((i + 0.5) * last / points) + 1 for i in range(points)]


def last_call(fails):
    """Finds the last call that a successful job requires, by loss of the GPU at that call."""
    well = 64
    while fails(well):
        well *= 2
    failing = well // 2
    while well - failing > 1:
        middle = (failing + well) // 2
        failing, well = (middle, well) if fails(middle) else (failing, middle)
    return failing


def each_at_once(operation, last, points):
    cases = [(n, kind) for kind in KINDS for n in spread(last, points)]
    with concurrent.futures.ThreadPoolExecutor(LIVES) as pool:
        outcomes = list(pool.map(lambda case: operation.lived(*case), cases))
    print(f"{len(cases)} of {3 * last} calls: {({each: outcomes.count(each) for each in sorted(set(outcomes))})}")
    return outcomes


class Operation:
    """usual: the results without failed calls."""

    def __init__(self, folder):
        self.folder, self.usual, self.outcomes = folder, None, {}
        folder.mkdir()
        assert self.live(0, "once") == "DONE" and "features.csv" in self.usual

    def lived(self, *case):
        if case not in self.outcomes:
            self.outcomes[case] = self.live(*case)
        return self.outcomes[case]


# -------------------------------------------------------------------------------- one job ----


class Run(Operation):
    def __init__(self, folder, series):
        self.series = series
        super().__init__(folder)

    def live(self, n, kind):
        """Runs one job with a failing n-th call. Returns its outcome."""
        folder = self.folder / f"{n}-{kind}"
        folder.mkdir()
        config, output = folder / "noctule.conf", folder / "output"
        config.write_text(settings(folder / "root"))
        done = subprocess.run(
            [EMULATED / "noctule", "--config", config, "run", "--quiet", "--pipeline", "all-kinds", "--output", output,
             self.series], env={**os.environ, "NOCTULE_CUDA_FAIL_AT": f"{n}{KINDS[kind]}"}, text=True, capture_output=True)
        what = f"call {n}, {kind}: status {done.returncode}, {done.stderr}"
        assert not list(folder.rglob("*.part")), what
        if done.returncode == 0:
            found = results_in(output)
            self.usual = self.usual or found
            assert found == self.usual, what
            return "DONE"
        (told,) = [each for each in (*CODES, UNOPENED) if each in done.stderr]
        assert done.returncode == 1 and not output.exists(), what
        return told


# ------------------------------------------------------------------------------------ the service ----


class Service(Operation):
    def __init__(self, folder, series):
        self.files = sorted(series.iterdir())
        super().__init__(folder)

    def live(self, n, kind):
        """Runs a service with a failing n-th call in its workers, then restarts it. Returns the outcome of its job
        before the restart."""
        folder = self.folder / f"{n}-{kind}"
        d = Daemon(folder, settings=settings(folder / "root"), programs=EMULATED,
                   environment={"NOCTULE_CUDA_FAIL_AT": f"{n}{KINDS[kind]}", "NOCTULE_CUDA_FAIL_IN": "worker"})
        try:
            d.start()
            drop(self.files, d.inbox)
            (job,) = wait_for(d.jobs, 60, "the job")
            outcome = wait_for(lambda: self.outcome(d), 120, "the end, or that there is nothing to compute with")
            assert d.stop() == 0
            del d.environment["NOCTULE_CUDA_FAIL_AT"]
            d.start()
            if outcome in CODES:
                d.ctl("retry", job["job"])
            (job,) = d.wait_jobs(states=("DONE",))
            found = results_in(d.root / "outbox" / str(job["job"]))
            self.usual = self.usual or found
            assert found == self.usual and job["backend"] == "cuda"
            assert not list(d.root.rglob("*.part")) and d.query("PRAGMA integrity_check")[0][0] == "ok"
            assert d.stop() == 0
            return outcome
        except BaseException as error:
            raise AssertionError(f"call {n}, {kind}: the log ends\n{d.log.read_text()[-6000:]}") from error
        finally:
            d.kill_all()

    def outcome(self, d):
        """Returns DONE, the code of the failed job, or WAITING if no GPU can be opened."""
        for job in d.jobs():
            if job["state"] == "DONE":
                return "DONE"
            if job["state"] == "FAILED":
                assert job["code"] in CODES, job["message"]
                return job["code"]
        return "WAITING" if d.query("SELECT 1 FROM v_events WHERE kind = 'COMPUTE_WAITING'") else None


# ----------------------------------------------------------------------------------------- both ----


def test_each_call_may_fail(tmp_path, series):
    run, service = Run(tmp_path / "run", series), Service(tmp_path / "service", series)
    last = last_call(lambda n: run.lived(n, "lost") != "DONE")
    assert len(set(each_at_once(run, last, 3 * POINTS))) > 1
    assert len(set(each_at_once(service, last, POINTS))) > 1
