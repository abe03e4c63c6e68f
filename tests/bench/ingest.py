#!/usr/bin/env python3
"""Measures speed and memory of receiving files by network, compared with well-known servers.

    ingest.py [--bin DIR] [--files N] [--rounds N] [--folder DIR] [SERVER...]

Sends N CT files of 512x512 over loopback by 1 and by 4 associations to Noctule (which syncs each file and adds it to the
database before it acknowledges it), to DCMTK's storescp --fork --bit-preserving (which does not sync) and to
Orthanc with Debian's configuration. The last two have TCP_NODELAY=1 in their environment, without which they
take 44 ms per file. The sender has its files in memory and writes each with one call, so that it does not dominate
the time. Then measures the memory of each server for a multi-frame object of 315 MB. Prints one JSON line per figure.
The servers take turns in every round, on the same file system.

Each file takes a dozen waits for the disk and for other processes. If other work keeps the CPUs busy, each of them
also waits for a CPU, which falsifies the result. nice(1) does not help, because the kernel weighs sessions against
each other (sched_autogroup_enabled), but chrt(1) does: chrt -r 5 ingest.py ...
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
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
    """Returns a process and all its descendants."""
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
    peer = conftest.Orthanc(folder, base=conftest.debian_orthanc())
    return Peer(peer, peer.command)


def data_set(path):
    """Returns the bytes of the data set of a Part 10 file, its SOP Class and SOP Instance UID."""
    meta = pydicom.filereader.read_file_meta_info(path)
    data = path.read_bytes()[144 + meta.FileMetaInformationGroupLength:]
    return data, meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID


def message(file, piece):
    """Returns all PDUs of one C-STORE-RQ, as one string of bytes."""
    data, sop_class, instance = file
    command = upper_layer.data_pdu(1, 3, upper_layer.store_command(sop_class, instance))
    return b"".join([command, *upper_layer.data_pdus(1, data, piece)])


def send(port, files, sop_class, called, ready):
    with upper_layer.associated(port, called=called, contexts=((sop_class, upper_layer.EXPLICIT),)) as peer:
        piece = min(peer.largest_pdu, 131072) - 6
        messages = [message(file, piece) for file in files]
        ready.wait()
        start = time.monotonic()
        for each in messages:
            peer.send(each)
            status = peer.status()
            assert status == 0, hex(status)
        end = time.monotonic()
        peer.release()
        return start, end


def timed(port, files, associations, called, sop_class=upper_layer.CT):
    """Returns the seconds from the first byte to the last answer."""
    ready = threading.Barrier(associations)
    with concurrent.futures.ThreadPoolExecutor(associations) as pool:
        sent = [pool.submit(send, port, files[i::associations], sop_class, called, ready)
                for i in range(associations)]
        times = [each.result() for each in sent]
    return max(end for _, end in times) - min(start for start, _ in times)


def settle(scratch, size):
    """Makes the same start for each server: a disk without pending writes, and real memory for the page cache to be used.
    On a virtual machine, such memory costs more than the write itself."""
    os.sync()
    with tempfile.TemporaryFile(dir=scratch) as file:
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))


@contextlib.contextmanager
def running(name, scratch, size):
    """Runs a server in a new folder that will receive `size` bytes. Its files stay until the end of all measurements, because
    a disk that frees thousands of files is busy while the next server is measured."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    subject = server(name, folder)
    subject.start()
    settle(scratch, size)
    try:
        yield subject
    finally:
        subject.stop()


@contextlib.contextmanager
def elsewhere():
    """Returns a folder that can be removed without an effect on the measured disk. For five minutes, ext4 without a journal checks each
    freed inode before it creates a file, which took a fifth of an association's time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield pathlib.Path(folder)


def watch_peak(subject, peaks, done):
    while not done.wait(0.005):
        peaks.append(resident_mb(subject.pids()))


def memory(name, scratch, path):
    """Returns the additional megabytes while one large object is received."""
    files = [data_set(path)]
    with running(name, scratch, sum(len(file[0]) for file in files)) as subject:
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
        with elsewhere() as folder:
            files = [data_set(path) for path in
                     conftest.phantom(folder / "ct", "--size", f"512x512x{options.files}")]
        rates = {}
        for _ in range(options.rounds):
            for name in options.servers:
                for associations in (1, 4):
                    with running(name, scratch, sum(len(file[0]) for file in files)) as subject:
                        seconds = timed(subject.port, files, associations, "NOCTULE")
                    rates.setdefault((name, associations), []).append(len(files) / seconds)
        for (name, associations), values in rates.items():
            print(json.dumps({"case": "ingest", "server": name, "associations": associations,
                              "files_per_second": round(statistics.median(values)),
                              "lowest": round(min(values)), "highest": round(max(values))}), flush=True)
        del files
        (large,) = conftest.phantom(scratch / "large", "--size", "512x512x600", "--multi-frame", "--bits", "16")
        for name in options.servers:
            print(json.dumps(memory(name, scratch, large)), flush=True)


if __name__ == "__main__":
    main()
