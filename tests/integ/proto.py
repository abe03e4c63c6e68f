"""Frames between the daemon and its children (service/common/proto.h), and one end of such a pipe."""

import select
import socket
import struct
import time

# Name -> (number, fields): i = int64, f = double, s = string, (...) = a count and so many of these.
TYPES = {
    "HELLO": (1, "ss"),
    "ALIVE": (2, ""),
    "RUN": (16, "is"),
    "STOP_JOB": (17, "i"),
    "PROGRESS": (18, "isf"),
    "DONE": (19, ["i", "i", "s", "s", "s", "s", "i", "f", "f", "f", "f", "f", "i", "i", "i", "s", "s",
                  ("s", "s", "s", "s", "s", "i", "i")]),
    "DEVICE_LOST": (20, "s"),
    "DEVICES": (21, [("i", "s", "s", "i")]),
    "FEATURES": (22, ["i", tuple("isssssfsssssifiiiffs")]),
    "HISTOGRAM": (23, ["i", "i", "s", "s", "s", ("i",)]),
    "ARRIVED": (32, "issssssssssssiii"),
    "QUARANTINED": (33, "isssss"),
    "STORED": (34, "i"),
    "INSPECT": (35, ["i", "i", "f", ("s",)]),
    "INSPECTED": (36, ["i", "i", ("s", "i", "i", "i", "i", "f", "s", "s", "s", "s")]),
    "PAUSE": (37, "s"),
    "RESUME": (38, ""),
    "RELOAD": (39, "s"),
    "DRAIN": (40, ""),
    "COMMITTED": (41, ["i", "s", ("s", "i", "i")]),
    "DELIVER": (48, "issss"),
    "DELIVERED": (49, "iiissis"),
    "RETRY": (64, "i"),
    "CANCEL": (65, "i"),
    "COMPLETE": (66, "s"),
    "PING": (67, ""),
    "ANSWER": (68, "is"),
    "RESEND": (69, "iisi"),
}
NAMES = {number: name for name, (number, _) in TYPES.items()}

# Names of the fields that tests look at.
KEYS = {
    "ARRIVED": ["token", "sop_instance", "sop_class", "transfer_syntax", "series", "study", "modality",
                "body_part", "series_description", "path", "source", "called_ae", "sender",
                "size", "frames", "expected"],
    "QUARANTINED": ["token", "path", "original", "series", "code", "sentence"],
    "HELLO": ["role", "build_id"],
    "DELIVER": ["delivery", "destination", "file", "sop_class", "sop_instance"],
    "DELIVERED": ["delivery", "outcome", "dimse_status", "code", "sentence", "commitment", "transaction_uid"],
    "INSPECTED": ["series_id", "revision", "stacks"],
    "FEATURES": ["job", "features"],
    "HISTOGRAM": ["job", "segment", "label", "pattern", "settings", "counts"],
}
FEATURE = ["segment", "label", "family", "name", "meaning", "ibsi_code", "value", "reason", "unit", "aggregation",
           "aggregation_ibsi_code", "discretisation", "levels", "bin_width", "distance", "symmetric", "has_range",
           "range_low", "range_high", "directions"]
STACK = ["name", "accepted", "planes", "columns", "rows", "spacing", "code", "sentence", "file_a", "file_b"]


def _pack(kind, value):
    if kind == "i":
        return struct.pack("<q", value)
    if kind == "f":
        return struct.pack("<d", value)
    if kind == "s":
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        return struct.pack("<I", len(data)) + data
    rows = b"".join(_pack(k, v) for row in value for k, v in zip(kind, row, strict=True))
    return struct.pack("<q", len(value)) + rows


def encode(name, *values):
    number, kinds = TYPES[name]
    body = struct.pack("<H", number)
    body += b"".join(_pack(k, v) for k, v in zip(kinds, values, strict=True))
    return struct.pack("<I", len(body)) + body


def _unpack(kind, data, at):
    if kind == "i":
        return struct.unpack_from("<q", data, at)[0], at + 8
    if kind == "f":
        return struct.unpack_from("<d", data, at)[0], at + 8
    if kind == "s":
        (size,) = struct.unpack_from("<I", data, at)
        end = at + 4 + size
        assert end <= len(data), "a string beyond its frame"
        return data[at + 4 : end].decode("utf-8", "surrogateescape"), end
    (count,), at = struct.unpack_from("<q", data, at), at + 8
    rows = []
    for _ in range(count):
        row = []
        for each in kind:
            value, at = _unpack(each, data, at)
            row.append(value)
        rows.append(row)
    return rows, at


class Frame(dict):
    """A frame's fields by name, or by number where KEYS has no names; .name is its type."""


def decode(body):
    """Decodes what follows the length."""
    (number,) = struct.unpack_from("<H", body)
    name, at, values = NAMES[number], 2, []
    for kind in TYPES[name][1]:
        value, at = _unpack(kind, body, at)
        values.append(value)
    assert at == len(body), f"{len(body) - at} bytes left over in {name}"
    frame = Frame(zip(KEYS.get(name, range(len(values))), values, strict=True))
    frame.name = name
    if name == "INSPECTED":
        frame["stacks"] = [dict(zip(STACK, row, strict=True)) for row in frame["stacks"]]
    if name == "FEATURES":
        frame["features"] = [dict(zip(FEATURE, row, strict=True)) for row in frame["features"]]
    return frame


class Peer:
    """The daemon's end of a child's pipe. Frames are kept in self.frames with their times."""

    def __init__(self):
        self.socket, self.child = socket.socketpair()
        self.buffer = b""
        self.frames = []
        self.times = []
        self.ended = False

    def send(self, name, *values):
        self.socket.sendall(encode(name, *values))

    def read(self, seconds):
        """Reads what comes within the time; returns at once after something came, and that."""
        readable, _, _ = select.select([self.socket], [], [], max(0, seconds))
        if not readable or self.ended:
            return []
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self.buffer += data
        new = []
        while len(self.buffer) >= 4:
            (size,) = struct.unpack_from("<I", self.buffer)
            if len(self.buffer) < 4 + size:
                break
            new.append(decode(self.buffer[4 : 4 + size]))
            self.buffer = self.buffer[4 + size :]
        self.frames += new
        self.times += [time.monotonic()] * len(new)
        return new

    def close(self):
        self.socket.close()
