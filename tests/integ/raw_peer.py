"""A DICOM peer that sends given bytes (PS3.7, PS3.8), including violations that no library sends."""

import socket
import ssl
import struct

VERIFICATION = "1.2.840.10008.1.1"
COMMITMENT = "1.2.840.10008.1.20.1"
COMMITMENT_INSTANCE = "1.2.840.10008.1.20.1.1"
CT = "1.2.840.10008.5.1.4.1.1.2"
MR = "1.2.840.10008.5.1.4.1.1.4"
SEG = "1.2.840.10008.5.1.4.1.1.66.4"
IMPLICIT = "1.2.840.10008.1.2"
EXPLICIT = "1.2.840.10008.1.2.1"

ASSOCIATE_RQ, ASSOCIATE_AC, ASSOCIATE_RJ, DATA, RELEASE_RQ, RELEASE_RP, ABORT = range(1, 8)


def pdu(kind, body):
    return struct.pack(">BBI", kind, 0, len(body)) + body


def item(kind, body):
    return struct.pack(">BBH", kind, 0, len(body)) + body


def associate_rq(contexts, calling="RAW", called="NOCTULE", application="1.2.840.10008.3.1.1.1", roles=(),
                 max_pdu=16384):
    """Returns an A-ASSOCIATE-RQ. contexts: (abstract syntax, [transfer syntaxes]). Context IDs are 1, 3, 5, ..."""
    body = struct.pack(">HH16s16s32x", 1, 0, called.ljust(16).encode(), calling.ljust(16).encode())
    body += item(0x10, application.encode())
    for i, (abstract, transfers) in enumerate(contexts):
        syntaxes = item(0x30, abstract.encode()) + b"".join(item(0x40, uid.encode()) for uid in transfers)
        body += item(0x20, bytes([2 * i + 1, 0, 0, 0]) + syntaxes)
    user = item(0x51, struct.pack(">I", max_pdu)) + item(0x52, b"1.2.3.4") + item(0x55, b"RAW_1")
    for abstract, scu, scp in roles:
        user += item(0x54, struct.pack(">H", len(abstract)) + abstract.encode() + bytes([scu, scp]))
    return pdu(ASSOCIATE_RQ, body + item(0x50, user))


def pdv(context, flags, data):
    """Returns a PDV. flags: 1 for a command, 2 for the last fragment."""
    return struct.pack(">IBB", len(data) + 2, context, flags) + data


def element(number, value):
    if isinstance(value, int):
        value = struct.pack("<H", value)
    elif isinstance(value, str):
        value = value.encode() + b"\0" * (len(value) % 2)
    return struct.pack("<HHI", 0, number, len(value)) + value


def nested(depth):
    """Returns nested sequences in implicit VR with undefined length, 16 bytes each."""
    return (struct.pack("<HHI", 0x0008, 0x1199, 0xFFFFFFFF) + struct.pack("<HHI", 0xFFFE, 0xE000, 0xFFFFFFFF)) * depth


def associate_ac(request):
    """Returns the A-ASSOCIATE-AC that accepts each presentation context of the A-ASSOCIATE-RQ with its first transfer
    syntax."""
    answers, data = b"", request[68:]
    while data:
        kind, length = data[0], struct.unpack_from(">H", data, 2)[0]
        if kind == 0x20:
            syntax = 12 + struct.unpack_from(">H", data, 10)[0]
            end = syntax + 4 + struct.unpack_from(">H", data, syntax + 2)[0]
            answers += item(0x21, bytes([data[4], 0, 0, 0]) + data[syntax:end])
        data = data[4 + length:]
    user = item(0x51, struct.pack(">I", 16384)) + item(0x52, b"1.2.3.4")
    return pdu(ASSOCIATE_AC, request[:68] + item(0x10, b"1.2.840.10008.3.1.1.1") + answers + item(0x50, user))


def command(field, message=1, sop_class=None, instance=None, data_set=True, **more):
    """Returns a command set. Further elements are passed as x1002=..."""
    elements = {0x0100: field, 0x0110: message, 0x0800: 1 if data_set else 0x0101}
    if sop_class is not None:
        elements[0x0002] = sop_class
    if instance is not None:
        elements[0x1000] = instance
    elements.update({int(key[1:], 16): value for key, value in more.items()})
    body = b"".join(element(number, elements[number]) for number in sorted(elements))
    return element(0, struct.pack("<I", len(body))) + body


def elements_of(data):
    """Returns a command set as {element: bytes}."""
    found = {}
    while data:
        group, number, length = struct.unpack_from("<HHI", data)
        assert group == 0
        found[number] = data[8:8 + length]
        data = data[8 + length:]
    return found


class Raw:
    """One connection."""

    def __init__(self, port, tls=None, timeout=60):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise EOFError
            data += more
        return data

    def pdu(self):
        """Returns the type and body of the next PDU."""
        kind, _, length = struct.unpack(">BBI", self.receive(6))
        return kind, self.receive(length)

    def ends(self):
        """Reads until the peer closes. Returns the type of the last PDU, or None."""
        last = None
        try:
            while True:
                last, _ = self.pdu()
        except (EOFError, ConnectionResetError, ssl.SSLError):
            return last

    def associate(self, contexts, **options):
        """Requests an association. Returns {context ID: (result, transfer syntax)} and keeps the user information."""
        self.send(associate_rq(contexts, **options))
        kind, body = self.pdu()
        assert kind == ASSOCIATE_AC, (kind, body)
        return self.read_items(body[68:])

    def read_items(self, data):
        answers = {}
        self.roles = {}
        while data:
            kind, length = data[0], struct.unpack_from(">H", data, 2)[0]
            body = data[4:4 + length]
            if kind == 0x21:
                answers[body[0]] = body[2], body[8:].rstrip(b"\0").decode()
            elif kind == 0x50:
                self.read_user(body)
            data = data[4 + length:]
        return answers

    def read_user(self, data):
        while data:
            kind, length = data[0], struct.unpack_from(">H", data, 2)[0]
            body = data[4:4 + length]
            if kind == 0x51:
                self.max_pdu = struct.unpack(">I", body)[0]
            elif kind == 0x52:
                self.implementation_uid = body.decode()
            elif kind == 0x54:
                self.roles[body[2:-2].decode()] = body[-2], body[-1]
            data = data[4 + length:]

    def command(self, context, data):
        self.send(pdu(DATA, pdv(context, 3, data)))

    def data_set(self, context, data, last=True, fragment=16000):
        for start in range(0, max(len(data), 1), fragment):
            end = start + fragment >= len(data)
            self.send(pdu(DATA, pdv(context, 2 if end and last else 0, data[start:start + fragment])))

    def response(self):
        """Returns the elements of the next response."""
        data, flags = b"", 0
        while flags != 3:
            kind, body = self.pdu()
            assert kind == DATA, (kind, body)
            length, _, flags = struct.unpack_from(">IBB", body)
            assert flags in (1, 3) and length + 4 == len(body)
            data += body[6:]
        return elements_of(data)

    def status(self):
        return struct.unpack("<H", self.response()[0x0900])[0]

    def store(self, context, sop_class, instance, data, message=1):
        """Sends a C-STORE. Returns its status."""
        self.command(context, command(0x0001, message, sop_class, instance, x0700=0))
        self.data_set(context, data)
        return self.status()

    def release(self):
        self.send(pdu(RELEASE_RQ, bytes(4)))
        kind, _ = self.pdu()
        assert kind == RELEASE_RP
        assert self.ends() is None
