"""The simulation of docs/scale.md: properties for any input. tests/bench/scale_measure.py compares it with
measurements."""

import random
import sys

import pytest
from conftest import SOURCE

sys.path.append(str(SOURCE / "tests" / "bench"))

import scale  # noqa: E402

INPUTS = scale.read_inputs(scale.INPUTS)


def simulate(job="cpu", **changed):
    return scale.simulate(INPUTS, job, **changed)


def test_the_seed_repeats():
    lossy = {"nodes": 8, "series": 2000, "losses_per_node_hour": 2.0, "batch_seconds": 20.0}
    first = simulate(seed=7, **lossy)
    assert first == simulate(seed=7, **lossy) and first["lost"] > 0
    assert first != simulate(seed=8, **lossy)


@pytest.mark.parametrize("seed", range(20))
def test_every_job_ends_once(seed):
    """With any settings each job ends once, and no task remains."""
    draw = random.Random(seed)
    changed = {"seed": seed, "series": draw.randrange(1, 1500), "nodes": draw.randrange(1, 20), "slots": draw.randrange(1, 4),
               "batch_seconds": draw.choice((0.0, 5.0, 60.0, 600.0)), "max_submitted": draw.choice((1, 3, 2000)),
               "losses_per_node_hour": draw.choice((0.0, 1.0, 30.0)), "noticed_seconds": 20.0, "down_seconds": 100.0,
               "child_threads": draw.choice((4, 16)), "submits_at_a_time": draw.choice((0, 3)),
               "collects_a_poll": draw.choice((0, 256)), "is_mean_known": draw.random() < 0.5}
    model = scale.Model(scale.settings_of(INPUTS, draw.choice(("small", "cpu")), **changed))
    told = model.run()
    assert told["done"] + told["failed"] == changed["series"]
    assert not model.tasks and not model.ended_at and model.in_flight == 0
    assert told["failed"] == 0 or told["lost"] >= 3 * told["failed"]
    assert told["lost"] == 0 or changed["losses_per_node_hour"] > 0


@pytest.mark.parametrize("share", [1.25e8, 1.25e9, 1e12])
def test_more_nodes_take_no_longer(share):
    """Except for the last group: a task ends slightly later when more tasks divide a share."""
    times = [simulate(nodes=nodes, series=2000, spread=0.0, batch_seconds=10.0, share_bytes_per_second=share)["seconds"]
             for nodes in (1, 2, 4, 8, 16, 32)]
    assert all(after <= before * 1.02 for before, after in zip(times, times[1:])), times


def test_one_node_needs_the_sum_of_its_jobs():
    """Without other delays the time is the sum of jobs and of pauses between tasks."""
    values = scale.settings_of(INPUTS, "small")
    told = simulate("small", series=300, sleep_seconds=1.0, batch_seconds=0.0, poll_seconds=1.0, spread=0.0)
    job = 1.0 + sum(values[name] for name in ("read_seconds", "compute_seconds", "write_seconds", "verify_seconds", "step_seconds"))
    assert told["tasks"] == 300
    assert told["seconds"] == pytest.approx(300 * (job + values["turn_seconds"]), rel=0.02)


def test_a_saturated_share_moves_exactly_its_bytes():
    """Each image crosses the share twice: copied when its folder is made, and read by its node."""
    values = scale.settings_of(INPUTS, "cpu")
    told = simulate(nodes=64, series=3000, share_bytes_per_second=1.25e8)
    assert told["limit"] == "share" and told["busy"]["share"] == pytest.approx(1.0, abs=0.02)
    seconds = 3000 * (2 * values["input_bytes"] + 2 * values["result_bytes"]) / 1.25e8
    assert seconds < told["seconds"] < 1.1 * seconds


def test_visible_images_are_read_once():
    """Images cross the share only when their node reads them. Without digests they cross it once more."""
    values = scale.settings_of(INPUTS, "cpu")
    for is_digested, times in ((True, 1), (False, 2)):
        told = simulate(nodes=64, series=3000, share_bytes_per_second=1.25e8, is_seen=True, is_digested=is_digested)
        seconds = 3000 * (times * values["input_bytes"] + 2 * values["result_bytes"]) / 1.25e8
        assert seconds < told["seconds"] < 1.1 * seconds


def test_an_invalid_setting_is_refused():
    with pytest.raises(SystemExit, match="no such setting: nods"):
        simulate(nods=4)
