#!/usr/bin/env python3
"""
Measures how well a search for similar textures finds the same patient or modality: CT, PET and MR of four sarcomas, each with
its contour. Usage: similar_sarcomas.py BIN DATA FOLDER, where DATA has the folders STS_*. Prints rows of a table: compared
values, regions, label, precision at 1 and 5, mean average precision, chance.
"""

import json
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time

CONF = """root = "{root}"; identifiers = "plain"; min_free_mib = 1;
inbox = ( {{ path = "inbox"; settle_seconds = 0.2; sweep_seconds = 1.0; }} );
series = {{ quiet_seconds = 5.0; complete_seconds = 2.0; patience_seconds = 5.0; }};
pipelines = ( {{ name = "lesions"; results = [ "seg" ];
  segments = ( {{ label = "Lesion"; method = "object"; object = {{ kind = "rtstruct"; roi = "GTV*"; }};
    type = {{ code = "52988006"; scheme = "SCT"; meaning = "Lesion"; }}; }} );
  texture = {{ regions = [ "segments", "volume" ]; glcm = {{ levels = 32; }}; patterns = [ "lbp", "tlbap", "lanadp" ]; }}; }} );
rules = ( {{ match = {{ modality = "CT"; }}; pipeline = "lesions"; }}, {{ match = {{ modality = "MR"; }}; pipeline = "lesions"; }},
  {{ match = {{ modality = "PT"; }}; pipeline = "lesions"; }} );
"""


def main():
    programs, data, folder = map(pathlib.Path, sys.argv[1:4])
    (folder / "inbox").mkdir(parents=True)
    conf = folder / "noctule.conf"
    conf.write_text(CONF.format(root=folder))
    sources = [path for path in sorted(data.glob("STS_*/*")) if (path / "image").is_dir()]
    for path in sources:
        shutil.copytree(path, folder / "inbox" / f"{path.parent.name}-{path.name}", copy_function=shutil.copyfile)
    daemon = subprocess.Popen([programs / "noctuled", "--config", conf], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        time.sleep(1)
        if daemon.poll() is not None:
            sys.exit(f"the daemon ended with {daemon.returncode}")
        try:
            with sqlite3.connect(f"file:{folder}/noctule.db?mode=ro", uri=True) as db:
                states = [row[0] for row in db.execute("SELECT state FROM v_jobs")]
        except sqlite3.OperationalError:
            continue
        if len(states) >= len(sources) and not set(states) & {"READY", "RUNNING", "DELAYED"}:
            break
    daemon.terminate()
    daemon.wait()
    print({state: states.count(state) for state in set(states)}, file=sys.stderr)
    print("| compared | regions | same | queries | precision at 1 | at 5 | mean average precision | chance |\n|---|---|---|---|---|---|---|---|")
    for region, words in (("lesion", ["--segment", "Lesion"]), ("whole volume", ["--segment", ""])):
        for column in ("patient", "modality"):
            for by in ("lbp", "tlbap", "lanadp", "patterns", "glcm"):
                done = subprocess.run([programs / "noctule", "--config", conf, "similar", "--evaluate", column, "--by", by, *words,
                                       "--spacing", "any", "--json"], text=True, capture_output=True)
                if done.returncode:
                    print(done.stderr, file=sys.stderr)
                    continue
                s = json.loads(done.stdout)
                print(f"| {by} | {region} | {column} | {s['queries']} | {s['precision_1']:.2f} | {s['precision_5']:.2f} of {s['best_5']:.2f} | "
                      f"{s['mean_average_precision']:.2f} | {s['chance']:.2f} |")


main()
