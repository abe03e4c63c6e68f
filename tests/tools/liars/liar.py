#!/usr/bin/python3
"""Programs of a site that misbehave, for the integration tests: liar.py FORM IN OUT [ARGUMENT...].

Each form is a function. `honest` and the forms named *_control write a valid mask: label 1 in each seventh voxel, in the
order of the input file. Forms that could harm the machine are bounded, in case that no limit of the sandbox works.
"""

import contextlib
import gzip
import os
import signal
import socket
import struct
import sys
import time
import zlib

FORM, IN, OUT, *MORE = sys.argv[1:]
UINT8, FLOAT32 = (2, 8), (16, 32)
MIB = 1 << 20


def load(source, target):
    """Reads the header of the input. The functions below change it and write it in front of a mask."""
    global SOURCE, TARGET, HEAD, SIZE, NX, NY, NZ
    SOURCE, TARGET = f"{source}/case.nii.gz", f"{target}/case.nii.gz"
    with gzip.open(SOURCE) as file:
        HEAD = bytearray(file.read(352))
    NX, NY, NZ = SIZE = struct.unpack_from("<3h", HEAD, 42)


def put(form, at, *values):
    struct.pack_into("<" + form, HEAD, at, *values)


def affine():
    """Returns the rows of the sform."""
    return [list(struct.unpack_from("<4f", HEAD, 280 + 16 * row)) for row in range(3)]


def place(rows):
    """Sets the sform, as the only affine."""
    put("hh", 252, 0, 1)
    for row in range(3):
        put("4f", 280 + 16 * row, *rows[row])


def values_of(kind):
    """Declares the type of a voxel, with slope 1."""
    put("hh", 70, *kind)
    put("ff", 112, 1.0, 0.0)


def labels(value=1, where=lambda x, y, z: (x + NX * (y + NY * z)) % 7 == 0, size=None):
    """Returns the voxels of a mask: `value` where the function is true."""
    values_of(UINT8)
    nx, ny, nz = size or SIZE
    return bytes(value * where(x, y, z) for z in range(nz) for y in range(ny) for x in range(nx))


def write(data, name=None):
    with open(name or TARGET, "wb") as file:
        file.write(gzip.compress(bytes(HEAD) + data, 1))


def honest():
    write(labels())


# Geometry


def shift():
    """The mask lies half a voxel beside the image."""
    rows = affine()
    for row in rows:
        row[3] += row[0] / 2
    data = labels()
    place(rows)
    write(data)


def flip():
    """The direction of the columns is reversed, the origin is not."""
    rows = affine()
    for row in rows:
        row[0] = -row[0]
    data = labels()
    place(rows)
    write(data)


def flip_control():
    rows = affine()
    for row in rows:
        row[3] += row[0] * (NX - 1)
        row[0] = -row[0]
    data = labels(where=lambda x, y, z: (NX - 1 - x + NX * (y + NY * z)) % 7 == 0)
    place(rows)
    write(data)


def swap():
    """The columns and rows of the file are exchanged, those of the affine are not."""
    data = labels()
    put("hh", 42, NY, NX)
    write(data)


def swap_control():
    data = labels(where=lambda y, x, z: (x + NX * (y + NY * z)) % 7 == 0, size=(NY, NX, NZ))
    put("hh", 42, NY, NX)
    place([[row[1], row[0], *row[2:]] for row in affine()])
    write(data)


def coarse():
    """Each second column only, with the affine of the image."""
    data = labels(size=(NX // 2, NY, NZ))
    put("h", 42, NX // 2)
    write(data)


def shifted_nearest():
    """A grid one column farther on: the mask is an honest one if the nearest voxels are taken."""
    rows = affine()
    for row in rows:
        row[3] += row[0]
    data = labels(where=lambda x, y, z: (x + 1 + NX * (y + NY * z)) % 7 == 0)
    place(rows)
    write(data)


def four_axes():
    data = labels()
    put("h", 40, 4)
    put("h", 48, 2)
    write(data * 2)


def four_axes_control():
    data = labels()
    put("h", 40, 4)
    put("h", 48, 1)
    write(data)


# Values


def label():
    write(labels(7))


def not_a_number():
    values_of(FLOAT32)
    write(struct.pack("<f", float("nan")) * (NX * NY * NZ))


def fractions():
    data = labels()
    values_of(FLOAT32)
    write(b"".join(struct.pack("<f", value / 2) for value in data))


# Files


def truncated():
    write(labels())
    os.truncate(TARGET, os.path.getsize(TARGET) - 40)


def bomb():
    """64 MiB of zeros follow the last voxel."""
    data = labels()
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    with open(TARGET, "wb") as file:
        file.write(packer.compress(bytes(HEAD) + data))
        for _ in range(64):
            file.write(packer.compress(bytes(MIB)))
        file.write(packer.flush())


def huge_header():
    put("3h", 42, 32767, 32767, 32767)
    write(b"")


def link_outside():
    os.symlink("/etc/passwd", TARGET)


def link_input():
    os.symlink(SOURCE, TARGET)


def pipe():
    os.mkfifo(TARGET)


def large():
    """10 GiB of zeros."""
    with open(TARGET, "wb") as file:
        for _ in range(10240):
            file.write(bytes(MIB))


def large_in_parts():
    for number in range(512):
        with open(f"{OUT}/part{number % 8}", "ab") as file:
            file.write(bytes(20 * MIB))


def sparse():
    with open(TARGET, "wb") as file:
        file.truncate(10 << 30)


def fill():
    """512 MiB in the folder ARGUMENT, in parts."""
    for number in range(16):
        with open(os.path.expandvars(f"{MORE[0]}/liar{number}"), "wb") as file:
            for _ in range(32):
                file.write(bytes(MIB))
    time.sleep(20)


def many_files():
    for number in range(10000):
        open(f"{OUT}/{number}", "wb").close()


def nothing():
    pass


def two_files():
    write(labels(), f"{OUT}/a.nii.gz")
    write(labels(), f"{OUT}/b.nii.gz")


def late():
    """A process of another session writes the mask after the end of the program."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(1)
        write(labels())


# Ends


def exit_3():
    print("why: the model file is damaged")
    sys.exit(3)


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def loop():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def silence():
    time.sleep(60)


def stubborn():
    """A program that ignores SIGTERM, with a child that does the same."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.fork()
    loop()


def fork_bomb():
    """2048 processes."""
    for _ in range(11):
        try:
            os.fork()
        except OSError:
            pass
    time.sleep(20)


def memory():
    """2 GiB, each page of which is written."""
    hog = []
    for _ in range(128):
        hog.append(bytearray(os.urandom(MIB) * 16))
    time.sleep(20)


def memory_of_children():
    """8 processes of 100 MiB each."""
    for _ in range(3):
        os.fork()
    hog = bytearray(os.urandom(MIB) * 100)
    time.sleep(20)
    del hog


def double_fork():
    """A process of another session outlives the program, with the pipes of the program open."""
    write(labels())
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)


def standard_error():
    """1 GiB of output."""
    for _ in range(1024):
        os.write(2, b"x" * MIB)
    os.write(2, b"\nend of the output\n")
    write(labels())


# Access


def write_outside():
    """Ends with status 1 if ARGUMENT cannot be written, and with a mask otherwise."""
    with open(MORE[0], "w") as file:
        file.write("liar")
    write(labels())


def write_input():
    with open(SOURCE, "r+b") as file:
        file.write(b"liar")
    write(labels())


def connect():
    """Connects to the port ARGUMENT of this machine and to the socket ARGUMENT 2. Status 4 if nothing answered."""
    def tcp():
        socket.create_connection(("127.0.0.1", int(MORE[0])), 2)

    def udp():
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"liar", ("127.0.0.1", int(MORE[0])))

    def unix():
        socket.socket(socket.AF_UNIX).connect(MORE[1])

    def netlink():
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).bind((0, 0))

    reached = []
    for way in (tcp, udp, unix, netlink):
        try:
            way()
            reached.append(way.__name__)
        except OSError:
            pass
    print("reached:", *reached)
    if not reached:
        sys.exit(4)
    write(labels())


def read_others():
    """Reads the ARGUMENTs, and the environments of all processes. Status 5 if it learns of nothing."""
    found = []
    for path in MORE:
        try:
            found += os.listdir(path) if os.path.isdir(path) else [open(path, "rb").read(100)]
        except OSError:
            pass
    for process in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                found += [process] if b"NOCTULE_SECRET" in file.read() else []
        except OSError:
            pass
    print("found:", *found)
    if not found:
        sys.exit(5)
    write(labels())


# Warm programs get one line "IN OUT" per case on standard input. The case whose number, or number of slices, is ARGUMENT
# goes wrong.


def cases():
    """Loads each case in turn. Returns whether it is the one."""
    for number, line in enumerate(sys.stdin, 1):
        load(*line.split())
        yield int(MORE[0]) in (number, NZ)


def warm(wrong=None):
    for chosen in cases():
        if chosen and wrong:
            wrong()
        else:
            write(labels())
            print("OK", flush=True)


def warm_crash():
    warm(segfault)


def warm_silence():
    warm(silence)


def warm_error():
    warm(lambda: print("ERROR the scan has no brain", flush=True))


def warm_nonsense():
    warm(lambda: print("maybe", flush=True))


def warm_late():
    """Answers before the file is there."""
    def answer():
        print("OK", flush=True)
        time.sleep(1)
        with contextlib.suppress(OSError):
            write(labels())

    warm(answer)


if not FORM.startswith("warm"):
    load(IN, OUT)
globals()[FORM]()
