"""Requests from the OpenAPI document for NOCTULE_API_SECONDS, by schemathesis: such that fit it, and such that do not. Status,
type, schema and headers of each answer must be those of the document. Operators, who may decide all, take turns: each has a limit."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys

import pytest
from conftest import SHARED, daemons, drop, open_files, wait_for
from test_decide import ALL
from test_page import PIPELINES, busy_site

SECONDS = int(float(os.environ.get("NOCTULE_API_SECONDS", "30")))
EXAMPLES = ["--max-examples", "2000"] if SECONDS > 300 else []  # the default of 100 ends after 15 minutes
PATIENT = SHARED / "ct-head-5mm"
OPERATORS = {f"operator-{number}": hashlib.sha256(f"operator {number}".encode()).hexdigest()[:32] for number in range(300)}
MEASURED = """texture = ( {{ profile = "ibsi-b"; resample = {{ in_plane_mm = 7.0; }}; }} ); deliver = [ "PACS" ]; }},"""

# Most requests that fit the document name a job, a series, ... that is there: a random one never is. The limit of a reason is in
# bytes, which a schema cannot limit.
HOOKS = """
import json, os, random
import schemathesis

THERE = json.loads(os.environ["NOCTULE_THERE"])
TOKENS = json.loads(os.environ["NOCTULE_TOKENS"])

@schemathesis.serializer("application/dicom")
def dicom(context, value):
    data = getattr(value, "data", value)
    return (data if isinstance(data, bytes) else str(data).encode(errors="ignore")) or b"x"  # an empty file does not fit

@schemathesis.hook
def before_call(context, case, kwargs):
    headers = kwargs.get("headers") or {}
    if "Authorization" in headers:
        kwargs["headers"] = {**headers, "Authorization": f"Bearer {random.choice(TOKENS)}"}
    if not case.meta or not case.meta.generation.mode.is_positive:
        return
    for name in set(THERE) & set(case.path_parameters or {}):
        if random.random() < 0.8:
            case.path_parameters[name] = random.choice(THERE[name])
    if "pipeline" in (case.query or {}) and random.random() < 0.5:
        case.query["pipeline"] = "head-ct"
    query = case.query or {}
    if (query.get("distance"), query.get("by") == "glcm") in (("euclidean", False), ("chi-square", True)):
        case.query["distance"] = "l1"  # one is of features, the other of histograms
    if isinstance(case.body, dict) and isinstance(case.body.get("reason"), str):
        case.body["reason"] = case.body["reason"].encode(errors="ignore")[:400].decode(errors="ignore") or "why"
"""
# Beside the statuses that it expects: a decision that came too late, too many of them, a form whose escapes are too long, a header
# or a body that is no JSON.
SETTINGS = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "413", "422", "429", "503"]
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "406", "409", "411", "413", "415", "421", "422", "429", "503"]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Finished, failed and refused work of phantoms, and of a patient where the images are there."""
    folder = tmp_path_factory.mktemp("requests")
    (folder / "tokens").write_text("".join(f"{name} operator {hashlib.sha256(token.encode()).hexdigest()}\n"
                                           for name, token in OPERATORS.items()))
    with daemons(folder) as daemon:
        site = busy_site(daemon, folder, pipelines=PIPELINES.replace('deliver = [ "PACS" ]; }},', MEASURED, 1),
                         options=f'tokens_file = "{folder / "tokens"}"; {ALL}')
        d = site.daemon
        if PATIENT.is_dir():
            files = sorted(PATIENT.glob("*.dcm"))
            d.stop()
            d.config.write_text(d.config.read_text().replace("memory_mib = 8.0", "memory_mib = 2048.0"))
            d.start()
            site.wait()
            drop(files, d.inbox / "patient")
            d.declare_complete(files)
            wait_for(lambda: len(d.jobs()) == 4 and {job["state"] for job in d.jobs()} <= {"DONE", "REVIEW", "FAILED"}, 120, "the jobs")
        yield site


def columns(d, sql):
    return [row[0] for row in d.query(sql)]


@pytest.mark.skipif(not importlib.util.find_spec("schemathesis"), reason="schemathesis is not here")
def test_each_answer_is_as_documented(site, tmp_path):
    d = site.daemon
    own = f"http://127.0.0.1:{site.port}"
    there = {"job": columns(d, "SELECT job FROM v_jobs"), "series": columns(d, "SELECT series_uid FROM v_series"),
             "instance": columns(d, "SELECT sop_instance_uid FROM v_results WHERE sop_instance_uid <> ''"),
             "delivery": columns(d, "SELECT delivery FROM v_deliveries"), "file": columns(d, "SELECT quarantine FROM v_quarantine")}
    (page,) = d.children("page")
    files = len(open_files(page))
    (tmp_path / "hooks.py").write_text(HOOKS)
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    with open(tmp_path / "out", "wb") as out:
        code = subprocess.call([sys.executable, "-m", "schemathesis.cli", "run", f"{own}/api/v1/openapi.json", "--checks", "all",
                                "--max-time", str(SECONDS), *EXAMPLES, "--request-timeout", "60", "--no-color", "--continue-on-failure",
                                # What is valid depends on the action, or on a login.
                                "--exclude-path-regex", "/(decisions|session|session/end|views)$",
                                "-H", f"Authorization: Bearer {OPERATORS['operator-0']}"], cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT,
                               env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(tmp_path),
                                    "NOCTULE_THERE": json.dumps(there), "NOCTULE_TOKENS": json.dumps([*OPERATORS.values()])})
    text = (tmp_path / "out").read_text()
    print(text[-3000:], flush=True)
    assert code == 0, text[-20000:]
    assert d.children("page") == [page]
    wait_for(lambda: len(open_files(page)) <= files, 120, "the end of kept slices")
