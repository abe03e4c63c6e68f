#!/usr/bin/env python3
"""Times cupyx.scipy.ndimage on the level set's spheres and mazes, or on steps of masks; one JSON line per case.

    python3 tests/bench/peers_gpu.py [--masks build/ci/bin/noctule-bench]

Two labellings (in range, out of range), the flags of the components that hold a settled voxel, and
the choice of voxels: the whole problem from a mask on the device to the region there. "label_ms" is
the time of only the two calls of label; "all_ms" includes the rest. Cases have the same names as those of
noctule-bench on the same machine. With --masks the voxels are those of noctule-bench's own cases,
"label_ms" is one labelling, "all_ms" the step, and Noctule's "ours_ms" includes the download of the mask.
"""

import argparse
import json
import statistics
import subprocess
import tempfile

import cupy
import cupyx.scipy.ndimage


def ball(side, radius):
    z, y, x = cupy.ogrid[:side, :side, :side]
    middle = side // 2
    return (x - middle) ** 2 + (y - middle) ** 2 + (z - middle) ** 2 <= radius**2


def serpentine(side):
    """Returns one path through even rows and slices, with corridors along x."""
    mask = cupy.zeros((side, side, side), bool)
    lanes = (side + 1) // 2
    mask[::2, ::2, :] = True
    z, y, x = [], [], []
    for corridor in range(lanes * lanes - 1):
        level, turn = divmod(corridor, lanes)
        lane = lanes - 1 - turn if level % 2 else turn
        last = turn + 1 == lanes
        x.append(0 if corridor % 2 else side - 1)
        y.append(2 * lane + (0 if last else -1 if level % 2 else 1))
        z.append(2 * level + (1 if last else 0))
    mask[cupy.asarray(z), cupy.asarray(y), cupy.asarray(x)] = True
    return mask


def reached(labels, seeds):
    """Returns the voxels of the components that contain a seed."""
    touched = cupy.zeros(int(labels.max()) + 1, bool)
    touched[labels[seeds]] = True
    touched[0] = False
    return touched[labels]


def milliseconds(call, repeat):
    times = []
    for _ in range(repeat + 1):
        begun, ended = cupy.cuda.Event(), cupy.cuda.Event()
        begun.record()
        result = call()
        ended.record()
        ended.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begun, ended))
    return statistics.median(times[1:]), result


def solve(mask, shape):
    grown = cupyx.scipy.ndimage.label(mask)[0]
    inside = reached(grown, mask & shape)
    del grown
    shrunk = cupyx.scipy.ndimage.label(~mask)[0]
    return inside | (shape & ~mask & ~reached(shrunk, ~mask & ~shape))


def label_both(mask):
    cupyx.scipy.ndimage.label(mask)
    cupyx.scipy.ndimage.label(~mask)


MASKS = (300, 512, 512)


def keep_largest(mask):
    labels = cupyx.scipy.ndimage.label(mask)[0]
    return labels == cupy.bincount(labels.ravel())[1:].argmax() + 1


def steps_of_masks(program, repeat):
    """Yields each case, its input, and the peer's operation."""
    steps = {"keep-1-body": keep_largest, "keep-1-noise": keep_largest,
             "fill-volume-body": cupyx.scipy.ndimage.binary_fill_holes}
    for case, step in steps.items():
        ours, expected = bench(program, case, repeat)
        mask = bench(program, f"copy-{case.split('-')[-1]}", 1)[1]
        label_ms, _ = milliseconds(lambda mask=mask: cupyx.scipy.ndimage.label(mask), repeat)
        all_ms, theirs = milliseconds(lambda mask=mask, step=step: step(mask), repeat)
        print(json.dumps({
            "case": f"mask/{case}",
            "ours_ms": round(1e3 * ours["median_seconds"], 3),
            "label_ms": round(label_ms, 3),
            "all_ms": round(all_ms, 3),
            "differ": int((theirs != expected).sum()),
        }), flush=True)


def bench(program, case, repeat):
    with tempfile.NamedTemporaryFile() as out:
        text = subprocess.run([program, "--backend", "cuda", "--repeat", str(repeat), "--mask-out", out.name, f"mask/{case}"],
                              check=True, capture_output=True, text=True).stdout
        bits = cupy.fromfile(out.name, cupy.uint8).reshape(-1, 1)
    mask = (bits >> cupy.arange(8, dtype=cupy.uint8)) & 1
    return json.loads(text.splitlines()[0]), mask.reshape(*MASKS[:2], -1)[:, :, :MASKS[2]].astype(bool)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--masks", metavar="PROGRAM")
    options = parser.parse_args()
    if options.masks:
        steps_of_masks(options.masks, options.repeat)
        return
    cases = [(f"level-set-{side}-r{side // 8}", side, side / 8, None) for side in (128, 256, 512)]
    cases += [("level-set-1024-r128", 1024, 128, None)]
    cases += [("level-set-serpentine-x-512", 512, 64, serpentine)]
    for name, side, radius, make in cases:
        mask, shape = make(side) if make else ball(side, side / 4), ball(side, radius)
        label_ms, _ = milliseconds(lambda: label_both(mask), options.repeat)
        all_ms, inside = milliseconds(lambda: solve(mask, shape), options.repeat)
        print(json.dumps({
            "case": name,
            "device": cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(),
            "label_ms": round(label_ms, 3),
            "all_ms": round(all_ms, 3),
            "segmented_voxels": int(inside.sum()),
        }), flush=True)
        del mask, shape, inside
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
