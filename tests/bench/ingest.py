#!/usr/bin/env python3
"""How fast files are taken in by the network, and in how much memory, beside the servers that people know.

    ingest.py [--bin DIR] [--files N] [--rounds N] [--folder DIR] [SERVER...]

Sends N CT files of 512x512 over loopback by 1 and by 4 associations to Noctule (each file synced and in the
database before it is acknowledged), to DCMTK's storescp --fork --bit-preserving (which syncs nothing) and to
Orthanc with Debian's configuration; the last two with TCP_NODELAY=1 in their environment, without which they
take 44 ms a file. The sender has its files in memory and writes each with one call, so that it is not what
is measured. Then the memory that a multi-frame object of 315 MB costs each. One JSON line a figure; the
servers take turns in every round, on the same file system.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integ"))
import conftest  # noqa: E402
import pydicom  # noqa: E402
import upper_layer  # noqa: E402

ENHANCED_CT = "1.2.840.10008.5.1.4.1.1.2.1"
SERVERS = ["noctule", "storescp", "orthanc"]


def children_of(pid):
    """A process and all its descendants."""
    found = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += children_of(int(child))
    return found


def resident_mb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, StopIteration):
            with open(f"/proc/{pid}/status") as status:
                total += int(next(line for line in status if line.startswith("VmRSS")).split()[1])
    return total * 1024 / 1e6


class Noctule:
    def __init__(self, folder):
        self.daemon = conftest.Daemon(folder, quiet=3600.0, dicom=conftest.PEERS)
        self.daemon.config.write_text(self.daemon.config.read_text().replace('"debug"', '"info"'))

    def start(self):
        self.daemon.start()
        self.port = self.daemon.port

    def pids(self):
        return self.daemon.children("intake")

    def stop(self):
        self.daemon.stop()


class Peer:
    def __init__(self, peer, command):
        self.peer, self.peer.command = peer, command

    def start(self):
        self.peer.start()
        self.port = self.peer.port

    def pids(self):
        return children_of(self.peer.process.pid)

    def stop(self):
        self.peer.stop()


def storescp(folder):
    peer = conftest.StoreScp(folder)
    kept = pathlib.Path(folder) / "kept"
    kept.mkdir()
    return Peer(peer, lambda: ["storescp", "--fork", "--bit-preserving", "--max-pdu", "131072", "-od", kept,
                               str(peer.port)])


def server(name, folder):
    if name == "noctule":
        return Noctule(folder)
    if name == "storescp":
        return storescp(folder)
    peer = conftest.Orthanc(folder)
    return Peer(peer, peer.command)


def data_set(path):
    """The bytes of the data set of a Part 10 file, its SOP Class and SOP Instance UID."""
    meta = pydicom.filereader.read_file_meta_info(path)
    data = path.read_bytes()[144 + meta.FileMetaInformationGroupLength:]
    return data, meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID


def send(port, files, sop_class, called):
    with upper_layer.associated(port, called=called, contexts=((sop_class, upper_layer.EXPLICIT),)) as peer:
        piece = min(peer.largest_pdu, 131072) - 6
        for data, data_class, instance in files:
            command = upper_layer.data_pdu(1, 3, upper_layer.store_command(data_class, instance))
            peer.send(b"".join([command, *upper_layer.data_pdus(1, data, piece)]))
            status = peer.status()
            assert status == 0, hex(status)
        peer.release()


def timed(port, files, associations, called, sop_class=upper_layer.CT):
    with concurrent.futures.ThreadPoolExecutor(associations) as pool:
        start = time.monotonic()
        for sent in [pool.submit(send, port, files[i::associations], sop_class, called) for i in range(associations)]:
            sent.result()
        return time.monotonic() - start


@contextlib.contextmanager
def running(name, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    subject = server(name, folder)
    subject.start()
    try:
        yield subject
    finally:
        subject.stop()
        shutil.rmtree(folder)


def watch_peak(subject, peaks, done):
    while not done.wait(0.005):
        peaks.append(resident_mb(subject.pids()))


def memory(name, folder, path):
    """Megabytes more than before while one large object comes in."""
    files = [data_set(path)]
    with running(name, folder) as subject:
        warm = resident_mb(subject.pids())
        peaks, done = [warm], threading.Event()
        watcher = threading.Thread(target=watch_peak, args=(subject, peaks, done))
        watcher.start()
        seconds = timed(subject.port, files, 1, "NOCTULE", ENHANCED_CT)
        done.set()
        watcher.join()
    return {"case": "memory", "server": name, "megabytes_sent": round(len(files[0][0]) / 1e6),
            "seconds": round(seconds, 2), "megabytes_more": round(max(peaks) - warm, 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, default=conftest.BIN)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=pathlib.Path, help="on the disk to measure")
    parser.add_argument("servers", nargs="*", default=SERVERS)
    options = parser.parse_args()
    conftest.BIN = options.bin
    os.environ["TCP_NODELAY"] = "1"
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        scratch = pathlib.Path(scratch)
        files = [data_set(path) for path in
                 conftest.phantom(scratch / "ct", "--size", f"512x512x{options.files}")]
        shutil.rmtree(scratch / "ct")
        rates = {}
        for _ in range(options.rounds):
            for name in options.servers:
                for associations in (1, 4):
                    with running(name, scratch / "server") as subject:
                        seconds = timed(subject.port, files, associations, "NOCTULE")
                    rates.setdefault((name, associations), []).append(len(files) / seconds)
        for (name, associations), values in rates.items():
            print(json.dumps({"case": "ingest", "server": name, "associations": associations,
                              "files_per_second": round(statistics.median(values)),
                              "lowest": round(min(values)), "highest": round(max(values))}), flush=True)
        del files
        (large,) = conftest.phantom(scratch / "large", "--size", "512x512x600", "--multi-frame", "--bits", "16")
        for name in options.servers:
            print(json.dumps(memory(name, scratch / "server", large)), flush=True)


if __name__ == "__main__":
    main()
