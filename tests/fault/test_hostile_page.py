"""NOCTULE_PAGE_CONNECTIONS hostile connections to the web UI while a modality sends: every slice is stored, an honest client gets
every answer, and the web process keeps its descriptors and its memory. Afterwards all is as before. A client whose connection is
closed without an answer, because others take all places, asks again, as browsers do."""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error

import pydicom
import upper_layer
from conftest import PEERS, daemon, open_files, phantom, wait_for  # noqa: F401
from hospital import Slice
from test_page import Site

CONNECTIONS = int(os.environ.get("NOCTULE_PAGE_CONNECTIONS", "600"))
HELD = min(CONNECTIONS // 2, 2000)
ATTACK = pathlib.Path(__file__).with_name("page_attacks.py")
MAX_CONNECTIONS = 64 + 16  # LIMIT_PAGE_CONNECTIONS, and those being closed


def memory_kib(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def sockets(pid):
    return sum("socket" in name for name in open_files(pid))


def answers(site):
    """Returns whether both addresses answer; None if a connection was closed without one."""
    try:
        return site.get("healthz")[1] == b"ok\n" and b"Noctule" in site.get("work")[1]
    except (ConnectionError, urllib.error.URLError):
        return None


def test_hostile_connections(daemon, tmp_path):
    site = Site(daemon, dicom=PEERS, quiet=3600.0).start()
    d = site.daemon
    (page,) = d.children("page")
    files = phantom(tmp_path / "ct", "--size", "32x32x40")
    slices = [Slice(pydicom.dcmread(path)) for path in files]
    site.page("work")
    quiet, memory = len(open_files(page)), memory_kib(page)
    most, most_kib, sent, asked = 0, 0, 0, []
    attack = subprocess.Popen([sys.executable, ATTACK, str(site.port), str(CONNECTIONS), str(HELD)], stdout=subprocess.PIPE)
    while attack.poll() is None or not asked:
        one = slices[sent % len(slices)]
        with upper_layer.associated(d.port, calling="STORESCU") as peer:
            assert peer.store(one.data, one.instance) == 0
        sent += 1
        began = time.monotonic()
        assert wait_for(lambda: {None: None, True: "both", False: "wrong"}[answers(site)], 60, "an answer") == "both"
        asked.append(time.monotonic() - began)
        most, most_kib = max(most, len(open_files(page))), max(most_kib, memory_kib(page))
    told = json.loads(attack.stdout.read())
    print(json.dumps({**told, "stored": sent, "asked": len(asked), "slowest_s": round(max(asked), 2), "files": [quiet, most],
                      "kib": [memory, most_kib]}), flush=True)
    assert sum(told["opened"].values()) == CONNECTIONS and told["failed"] == 0
    assert d.children("page") == [page] and len(d.query("SELECT 1 FROM v_instances")) == min(sent, len(slices))
    assert most <= quiet + MAX_CONNECTIONS + 4
    assert most_kib <= memory + 32 * 1024
    wait_for(lambda: len(open_files(page)) <= quiet, 60, "the end of all connections")
    assert site.page("work").titled() == "Work" and memory_kib(page) <= memory + 32 * 1024
    assert d.stop() == 0
