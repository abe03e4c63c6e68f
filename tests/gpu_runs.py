#!/usr/bin/env python3
"""Complete runs on the GPU give the same results as on the CPU.

    gpu_runs.py BIN [BACKEND OTHER]     BIN: a folder of noctule and noctule-phantom; default: cuda cpu

Runs pipelines on synthetic series with each backend: level sets, fuzzy objects, all patterns and co-occurrence;
all families of features; segments that use other segments; rules of anatomy on a coarse grid. Compares tables byte by byte and objects by their
pixels, because dates and times differ. Needs only Python."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

SERIES = {
    "ct": ["--kind", "ct-head", "--size", "256x240x40"],
    "mr": ["--kind", "mr-brain", "--size", "139x141x33"],
    "bytes": ["--kind", "mr-brain", "--size", "130x66x9", "--bits", "8"],
    "frames": ["--kind", "ct-head", "--size", "96x100x21", "--multi-frame"],
}

if "NOCTULE_SERIES" in os.environ:  # the names of some series
    SERIES = {name: SERIES[name] for name in os.environ["NOCTULE_SERIES"].split()}

SETTINGS = """
root = "{root}";
compute = {{ backend = "{backend}"; }};
pipelines = ( {{ name = "both";
  results = [ "seg", "sr", "pmap" ];
  segments = (
    {{ label = "Middle"; range = [ 10.0, 2000.0 ]; type = {type};
      shapes = ( {{ center = {{ fraction = [ 0.5, 0.5, 0.5 ]; }}; radius_mm = 30.0; }} ); }},
    {{ label = "Object"; method = "fuzzy-connectedness"; type = {type};
      seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} ); threshold = 0.4; connectedness_map = true; }} );
  texture = {{ regions = [ "segments", "volume" ]; patterns = [ "lbp", "tlbap", "lanadp" ];
    glcm = {{ discretisation = "{discretisation}"; {bins} aggregation = "{aggregation}"; matrices = "counts"; }}; }};
}}, {{ name = "expressions";
  results = [ "seg", "codes" ];
  segments = (
    {{ label = "Inside"; range = {{ percentile = [ 10.0, 95.0 ]; of = "Body"; }}; auto = "largest"; within = [ "Body" ];
      type = {type}; then = ( {{ open_mm = 2.0; }}, {{ keep = 3; connectivity = 26; }} ); }},
    {{ label = "Again"; range = {{ sigma = 1.5; }}; from = "Inside"; minus = [ "Object" ]; type = {type}; }},
    {{ label = "Rest"; method = "range"; range = {{ otsu = 3; class = 1; }}; minus = [ "Inside", "Grown" ];
      type = {type}; then = ( {{ drop_below_ml = 0.1; }}, {{ close_mm = 3.0; }}, {{ cut_bridges_mm = 2.0; }},
        {{ keep_at_least = 0.1; }} ); }},
    {{ label = "Bright"; method = "range"; range = {{ of_max = 0.4; of = "Body"; }}; intersect = [ "Grown" ]; type = {type}; }},
    {{ label = "Object"; method = "fuzzy-connectedness"; type = {type}; intersect = [ "Body" ];
      seeds = ( {{ fraction = [ 0.5, 0.5, 0.5 ]; }} ); threshold = 0.4; then = ( {{ fill = "volume"; }} ); }},
    {{ label = "Grown"; method = "range"; range = [ -1e9, 1e9 ]; from = "Object"; hidden = true;
      then = ( {{ grow_mm = 6.0; }}, {{ shrink_mm = 1.0; }} ); }},
    {{ label = "Body"; method = "range"; range = {{ otsu = 2; class = 2; }}; hidden = true;
      then = ( {{ keep = 1; }}, {{ fill = "slices"; }} ); }} );
}}, {{ name = "measured";
  segments = (
    {{ label = "Body"; method = "range"; range = {{ otsu = 2; class = 2; }}; type = {type};
      then = ( {{ keep = 1; }}, {{ fill = "slices"; }} ); }},
    {{ label = "Dense"; method = "range"; range = {{ percentile = [ 70.0, 100.0 ]; of = "Body"; }}; within = [ "Body" ];
      type = {type}; }} );
  texture = {{ families = [ "all" ]; regions = [ "segments", "volume" ];
    discretisation = "{discretisation}"; {bins} aggregation = "{aggregation}"; }};
}}, {{ name = "rules";
  results = [ "seg" ];
  segments = (
    {{ label = "Caged"; grid_mm = 3.0; method = "enclosed"; type = {type};
      enclosed = {{ by = "Bright"; at_least = 14; within_mm = 100.0; }}; }},
    {{ label = "Walled"; method = "enclosed"; type = {type}; minus = [ "Own" ];
      enclosed = {{ by = "Own"; directions = "axial-16"; at_least = 10; within_mm = 60.0; }}; }},
    {{ label = "Chain"; grid_mm = 3.0; method = "sections"; from = "Bright"; type = {type};
      sections = {{ middle_of = "Body"; area_mm2 = [ 1.0, 1e6 ]; box_mm = 1e4; fill = 0.0; aspect = 1e4; middle_mm = 1e4; }}; }},
    {{ label = "Grown"; grid_mm = 3.0; method = "grow-until-leak"; from = "Chain"; within = [ "Caged" ]; type = {type};
      leak = {{ limits = [ 0.0, 90.0 ]; step = 9.0; most_ml = 900.0; growth = 2.0; extra_ml = 100.0; }}; }},
    {{ label = "Outline"; method = "range"; range = [ 5.0, 2000.0 ]; smooth_mm = 1.0; type = {type};
      refine = {{ label = "Body"; band_mm = 4.0; }}; }},
    {{ label = "Any"; grid_mm = 3.0; method = "any-of"; any_of = [ "Caged", "Chain" ]; type = {type};
      then = ( {{ close_mm = 6.0; }}, {{ open_mm = 4.0; space = "slice"; }} ); }},
    {{ label = "Bright"; grid_mm = 3.0; method = "range"; range = {{ of_max = 0.4; of = "Body"; }}; hidden = true; }},
    {{ label = "Own"; method = "range"; range = {{ of_max = 0.5; }}; hidden = true; }},
    {{ label = "Body"; grid_mm = 3.0; method = "range"; range = {{ otsu = 2; class = 2; }}; hidden = true;
      then = ( {{ keep = 1; }}, {{ fill = "slices"; }} ); }} );
}} );
"""

TEXTURES = [
    ("fixed-bin-number", "levels = 32;", "3d-merged"),
    ("fixed-bin-number", "levels = 256;", "2d-averaged"),
    ("pyradiomics-bin-width", "bin_width = 25.0;", "3d-averaged"),
]

RUNS = [*((name, texture) for name in ("both", "measured") for texture in TEXTURES), ("expressions", TEXTURES[0]), ("rules", TEXTURES[0])]

TYPE = '{ code = "12738006"; scheme = "SCT"; meaning = "Brain"; }'


def run(programs, folder, backend, source, pipeline, texture):
    discretisation, bins, aggregation = texture
    config, output = folder / f"{backend}.conf", folder / "output"
    config.write_text(SETTINGS.format(root=folder / "root", backend=backend, type=TYPE, discretisation=discretisation,
                                      bins=bins, aggregation=aggregation))
    subprocess.run([programs / "noctule", "--config", config, "run", "--quiet", "--pipeline", pipeline, "--output", output,
                    source], check=True)
    used = json.loads((output / "job.json").read_text())["backend"]
    assert used == backend, f"the job ran on {used}, not on {backend}"
    results = {path.name: compared(path) for path in sorted(output.iterdir())
               if path.name not in ("job.json", "preview.png", "sr.dcm")}
    output.rename(folder / f"output-{backend}-{len(list(folder.iterdir()))}")
    return results


def compared(path):
    """Returns the bytes of a table, or the pixels of an object: its last element, by that element's length."""
    data = path.read_bytes()
    if path.suffix != ".dcm":
        return data
    at = data.find(b"\xe0\x7f")
    while at >= 0:
        if at + 12 + int.from_bytes(data[at + 8:at + 12], "little") == len(data):
            return data[at + 12:]
        at = data.find(b"\xe0\x7f", at + 1)
    raise AssertionError(f"{path} has no pixel data at its end")


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    backends = sys.argv[2:] or ["cuda", "cpu"]
    files = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name, arguments in SERIES.items():
            source = pathlib.Path(scratch) / name
            subprocess.run([programs / "noctule-phantom", "--output", source, *arguments], check=True,
                           stdout=subprocess.DEVNULL)
            for number, (pipeline, texture) in enumerate(RUNS):
                folder = pathlib.Path(scratch) / f"{name}-{number}"
                folder.mkdir()
                one, other = (run(programs, folder, backend, source, pipeline, texture) for backend in backends)
                assert one.keys() == other.keys(), f"{name}, {pipeline}, {texture}: {sorted(one)}, {sorted(other)}"
                for file, content in one.items():
                    assert content == other[file], f"{name}, {pipeline}, {texture}: {file} differs"
                files += len(one)
    print(f"100%: {files} files of {len(SERIES) * len(RUNS)} runs are the same")


if __name__ == "__main__":
    main()
