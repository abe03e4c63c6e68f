"""Programs of the site on GPUs: a share of the memory, a whole GPU, and too little memory. The GPUs are emulated."""

import pytest
from conftest import EMULATED, needs_emulator, wait_for
from test_gpu_workers import A, B, Gpus, devices, events, wait_devices
from test_programs_daemon import BOTH, HALF, ONE, Site, assert_nothing_left, feed, runs, wait_running

pytestmark = needs_emulator

RANGE = """{ name = "range"; unreviewed = true; segments = ( { label = "Half"; method = "range"; range = [ 20.0, 4000.0 ];
      type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); }"""


@pytest.fixture
def site(daemon, tmp_path):
    """A site with two GPUs of 8 GiB each."""
    gpus = Gpus(tmp_path / "gpus", A, B)

    def make(**options):
        return daemon(programs=EMULATED, environment={"NOCTULE_EMULATOR_GPUS": str(gpus.folder)}, **options)

    one = Site(make, tmp_path)
    one.script.write_text("import os\nprint('GPU', os.environ['CUDA_VISIBLE_DEVICES'])\n" + HALF)
    return one


def start(site, more, rules=ONE):
    site.configure(more=more, rules=rules)
    text = site.d.config.read_text().replace("lanes = 2;", 'lanes = 2; backend = "cuda";')
    site.d.config.write_text(text.replace("pipelines = (", f"pipelines = ( {RANGE},"))
    d = site.start()
    wait_devices(d, {0: A, 1: B})
    d.wait_log("child.ready child=worker", 2)
    return d


def output(d, run=1):
    return (d.root / f"programs/{run}/output.txt").read_text()


def test_a_whole_gpu_is_lent_while_jobs_run_on_the_other(site, tmp_path):
    site.let("wait")
    d = start(site, 'gpu = "whole";', ONE + ', { match = { modality = "CT"; }; pipeline = "range"; }')
    feed(d, tmp_path)
    wait_running(d)
    (lent,) = events(d, "GPU_LENT")
    left = {0: A, 1: B}
    number = [key for key, uuid in left.items() if uuid == lent][0]
    del left[number]
    wait_devices(d, left)
    feed(d, tmp_path, "other", "--seed", "2")
    done = wait_for(lambda: len(d.jobs("DONE")) == 2 and d.jobs("DONE"), 60, "jobs on the other GPU")
    assert {job["pipeline"] for job in done} == {"range"}
    site.stop("wait")
    assert [job["state"] for job in d.wait_jobs(4)] == ["DONE"] * 4
    wait_devices(d, {0: A, 1: B})
    assert runs(d, "state, ran_as, gpu")[0] == ("DONE", "whole", lent)
    assert f"GPU {lent}" in output(d)
    assert len(events(d, "GPU_LENT")) == len(events(d, "GPU_RETURNED")) == 2
    assert events(d, "GPU_MEMORY_KEPT") == []
    assert_nothing_left(d)


def test_a_share_leaves_the_workers(site, tmp_path):
    site.let("wait")
    d = start(site, 'gpu = "shared"; gpu_memory_mib = 6000;', ONE + ', { match = { modality = "CT"; }; pipeline = "range"; }')
    workers = d.children("worker")
    feed(d, tmp_path)
    wait_running(d)
    feed(d, tmp_path, "other", "--seed", "2")
    wait_for(lambda: len(d.jobs("DONE")) == 2, 60, "jobs beside the program")
    site.stop("wait")
    assert [job["state"] for job in d.wait_jobs(4)] == ["DONE"] * 4
    assert d.children("worker") == workers and devices(d) == {0: A, 1: B}
    assert [row[:2] for row in runs(d, "state, ran_as, gpu")] == [("DONE", "shared"), ("DONE", "shared")]
    assert events(d, "GPU_LENT") == [] and events(d, "GPU_MEMORY_KEPT") == []


def test_too_little_gpu_memory_leads_to_the_whole_gpu_then_to_the_processors(site, tmp_path):
    site.script.write_text("import os, sys\nif os.environ['CUDA_VISIBLE_DEVICES']:\n"
                           "    print('RuntimeError: CUDA out of memory. Tried to allocate 20 MiB')\n    sys.exit(1)\n" + HALF)
    command = f'cpu_command = [ "/usr/bin/python3", "{site.script}", "{{in}}", "{{out}}", "20" ];'
    d = start(site, f'gpu = "shared"; gpu_memory_mib = 100; {command}', BOTH)
    feed(d, tmp_path)
    assert [job["state"] for job in d.wait_jobs(2)] == ["DONE", "DONE"]
    assert runs(d, "state, attempts, ran_as, gpu") == [("DONE", 1, "cpu", "")]
    assert len(events(d, "GPU_LENT")) == len(events(d, "GPU_RETURNED")) == 1
    assert [detail for detail in events(d, "PROGRAM_DELAYED") if "PROGRAM_GPU_OUT_OF_MEMORY" not in detail] == []
    wait_devices(d, {0: A, 1: B})


def test_too_little_gpu_memory_without_another_command_fails(site, tmp_path):
    site.let("fail", "torch.cuda.OutOfMemoryError: CUDA out of memory")
    d = start(site, 'gpu = "whole";')
    feed(d, tmp_path)
    (job,) = d.wait_jobs()
    assert (job["state"], job["code"]) == ("FAILED", "PROGRAM_GPU_OUT_OF_MEMORY")
    wait_devices(d, {0: A, 1: B})


def test_a_share_larger_than_each_gpu_takes_a_whole_one(site, tmp_path):
    d = start(site, 'gpu = "shared"; gpu_memory_mib = 9000;')
    feed(d, tmp_path)
    assert d.wait_jobs()[0]["state"] == "DONE"
    assert runs(d, "state, attempts, ran_as") == [("DONE", 1, "whole")]


WARM = """\
import sys
for line in sys.stdin:
    sys.argv[1:] = [*line.split(), "20"]
    exec(open("{script}").read())
    print("OK", flush=True)
"""
WHOLE = """{ name = "all"; unreviewed = true; segments = ( { label = "Half"; method = "program"; program = "all"; value = 1;
      type = { code = "12738006"; scheme = "SCT"; meaning = "Brain"; }; } ); }"""


def test_a_warm_process_keeps_its_share_until_the_whole_gpu_is_needed(site, tmp_path):
    warm = site.folder / "warm.py"
    warm.write_text(WARM.format(script=site.script))
    words = f'[ "/usr/bin/python3", "{site.script}", "{{in}}", "{{out}}", "20" ]'
    site.configure(rules=ONE + ', { match = { modality = "MR"; }; pipeline = "all"; }',
                   more='gpu = "shared"; gpu_memory_mib = 4000; warm = true; }, { name = "all"; gpu = "whole"; '
                   f'command = {words}; read = [ "{site.folder}" ]; algorithm = {{ name = "all"; version = "1"; }};')
    text = site.d.config.read_text().replace(words, f'[ "/usr/bin/python3", "{warm}" ]', 1)
    text = text.replace("lanes = 2;", f'lanes = 2; backend = "cuda"; devices = [ "{A}" ];')
    site.d.config.write_text(text.replace("pipelines = (", f"pipelines = ( {WHOLE},"))
    d = site.start()
    wait_devices(d, {0: A})
    feed(d, tmp_path, "1")
    d.wait_jobs(1)
    feed(d, tmp_path, "2", "--seed", "2")
    d.wait_jobs(2)
    feed(d, tmp_path, "3", "--kind", "mr-brain")
    d.wait_jobs(3)
    feed(d, tmp_path, "4", "--seed", "4")
    assert [job["state"] for job in d.wait_jobs(4)] == ["DONE"] * 4
    assert runs(d, "program, ran_as, starts") == [("half", "shared", 1), ("half", "shared", 0), ("all", "whole", 1), ("half", "shared", 1)]
    assert len(events(d, "GPU_LENT")) == len(events(d, "GPU_RETURNED")) == 1
    assert d.log.read_text().count("event=program.started") == 4
