"""Frames between the daemon and its children, as in service/common/wire/messages.def, and one end of their pipe."""

import pathlib
import re
import select
import socket
import struct
import time

MESSAGES_DEF = pathlib.Path(__file__).parents[2] / "service" / "common" / "wire" / "messages.def"


class Type:
    """A message type: its number, and its fields as (name, kind). Kinds are i = int64, f = double, s = string, or the
    fields of rows. The field of rows is named after the row, with an s."""

    def __init__(self, arguments):
        self.name, _, number, _, _, fields, *rows = arguments
        self.number = int(number)
        self.fields = _fields(fields)
        if rows:
            self.fields.append((rows[0] + "s", _fields(rows[1])))


def _fields(text):
    kinds = {"I64": "i", "F64": "f", "STR": "s", "CODE": "s"}
    return [(name, kinds[kind]) for kind, name in re.findall(r"(\w+)\((\w+)\)", text)]


def _types():
    text = re.sub(r"/\*.*?\*/", "", MESSAGES_DEF.read_text(), flags=re.DOTALL)
    calls = re.findall(r"^(?:MESSAGE|LIST)\(((?:[^()]|\(\w+\))*)\)$", text, flags=re.MULTILINE)
    return [Type([argument.strip() for argument in call.split(",")]) for call in calls]


TYPES = {each.name: each for each in _types()}
BY_NUMBER = {each.number: each for each in TYPES.values()}


def _pack(kind, value):
    if kind == "i":
        return struct.pack("<q", value)
    if kind == "f":
        return struct.pack("<d", value)
    if kind == "s":
        data = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
        return struct.pack("<I", len(data)) + data
    rows = b"".join(_pack(k, v) for row in value for (_, k), v in zip(kind, row, strict=True))
    return struct.pack("<q", len(value)) + rows


def encode(name, *values):
    body = struct.pack("<H", TYPES[name].number)
    body += b"".join(_pack(k, v) for (_, k), v in zip(TYPES[name].fields, values, strict=True))
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
        row, at = _unpack_fields(kind, data, at)
        rows.append(row)
    return rows, at


def _unpack_fields(fields, data, at):
    values = {}
    for name, kind in fields:
        values[name], at = _unpack(kind, data, at)
    return values, at


class Frame(dict):
    """A frame with its fields by name. .name is the name of its type."""


def decode(body):
    """Decodes the bytes after the length."""
    (number,) = struct.unpack_from("<H", body)
    values, at = _unpack_fields(BY_NUMBER[number].fields, body, 2)
    assert at == len(body), f"{len(body) - at} bytes left over in {BY_NUMBER[number].name}"
    frame = Frame(values)
    frame.name = BY_NUMBER[number].name
    return frame


def ask(path, name, *values, seconds=10):
    """Sends a command to the daemon's control socket, as noctule does, without the cost of a process. Returns the answer
    as a frame, or None if none came."""
    data = b""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(seconds)
            client.connect(str(path))
            client.sendall(encode(name, *values))
            while len(data) < 4 or len(data) < 4 + struct.unpack_from("<I", data)[0]:
                more = client.recv(1 << 16)
                if not more:
                    return None
                data += more
    except OSError:
        return None
    return decode(data[4:])


class Peer:
    """The daemon's end of a child's pipe. self.frames keeps the frames with their times."""

    def __init__(self):
        self.frames = []
        self.times = []
        self.open()

    def open(self):
        """Opens a pipe, for a first child or for its replacement."""
        self.socket, self.child = socket.socketpair()
        self.buffer = b""
        self.ended = False

    def send(self, name, *values):
        self.socket.sendall(encode(name, *values))

    def read(self, seconds):
        """Reads frames until the time is over. Returns early, with the first frames that arrive."""
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
