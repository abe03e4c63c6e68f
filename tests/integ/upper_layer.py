"""DICOM's upper layer byte by byte, correct or deliberately wrong, for data that no library sends."""

import contextlib
import socket
import struct

APPLICATION = b"1.2.840.10008.3.1.1.1"
IMPLICIT = "1.2.840.10008.1.2"
EXPLICIT = "1.2.840.10008.1.2.1"
CT = "1.2.840.10008.5.1.4.1.1.2"
ENHANCED_XA = "1.2.840.10008.5.1.4.1.1.12.1.1"
ACCEPTED, REJECTED, DATA, RELEASED, ABORTED = 2, 3, 4, 6, 7


def item(kind, body):
    return struct.pack(">BBH", kind, 0, len(body)) + body


def pdu(kind, body):
    return struct.pack(">BBI", kind, 0, len(body)) + body


def associate_request(calling="PYNETDICOM", called="NOCTULE", contexts=((CT, EXPLICIT),)):
    body = struct.pack(">HH16s16s32x", 1, 0, called.encode().ljust(16), calling.encode().ljust(16))
    body += item(0x10, APPLICATION)
    for i, (abstract, syntax) in enumerate(contexts):
        body += item(0x20, struct.pack(">BBBB", 2 * i + 1, 0, 0, 0) + item(0x30, abstract.encode())
                     + item(0x40, syntax.encode()))
    body += item(0x50, item(0x51, struct.pack(">I", 65536)) + item(0x52, b"1.2.3.4"))
    return pdu(1, body)


def element(group, number, value):
    value += b"\0" * (len(value) % 2)
    return struct.pack("<HHI", group, number, len(value)) + value


def store_command(sop_class, instance, message=1):
    elements = (element(0, 0x0002, sop_class.encode()) + element(0, 0x0100, struct.pack("<H", 1))
                + element(0, 0x0110, struct.pack("<H", message)) + element(0, 0x0700, struct.pack("<H", 0))
                + element(0, 0x0800, struct.pack("<H", 1)) + element(0, 0x1000, instance.encode()))
    return element(0, 0, struct.pack("<I", len(elements))) + elements


def data_pdu(context, flags, data):
    return pdu(DATA, struct.pack(">IBB", len(data) + 2, context, flags) + data)


def status_in(body):
    """Returns the Status of the response in a P-DATA-TF, or None."""
    at = body.find(struct.pack("<HHI", 0, 0x0900, 2))
    return struct.unpack_from("<H", body, at + 8)[0] if at >= 0 else None


def data_pdus(context, data, piece):
    """Returns a whole data set in pieces of that many bytes."""
    for at in range(0, len(data), piece):
        yield data_pdu(context, 2 if at + piece >= len(data) else 0, data[at:at + piece])


def largest_pdu(body):
    """Returns the maximum PDU length of an A-ASSOCIATE-AC. Its user information is the last item."""
    at = 68
    while body[at] != 0x50:
        at += 4 + struct.unpack_from(">H", body, at + 2)[0]
    at += 4
    while body[at] != 0x51:
        at += 4 + struct.unpack_from(">H", body, at + 2)[0]
    return struct.unpack_from(">I", body, at + 4)[0]


class Peer:
    """One connection. Each wait ends after `seconds`."""

    def __init__(self, port, seconds=60, host="127.0.0.1"):
        """Connects from the loopback address `host`."""
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds, source_address=(host, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError(data)
            data += part
        return data

    def answer(self):
        """Returns the type of the next PDU and the bytes after its header."""
        kind, _, length = struct.unpack(">BBI", self.receive(6))
        return kind, self.receive(length)

    def ended(self):
        """Waits for the other side's end. Returns True, for FIN and for reset."""
        try:
            while self.socket.recv(4096):
                pass
        except ConnectionResetError:
            pass
        return True

    def associate(self, **options):
        self.send(associate_request(**options))
        return self.answer()

    def begin_store(self, instance, sop_class=CT, context=1):
        self.send(data_pdu(context, 3, store_command(sop_class, instance)))

    def status(self):
        """Returns the status of the next C-STORE-RSP."""
        kind, body = self.answer()
        assert kind == DATA, (kind, body)
        return status_in(body)

    def store(self, data, instance, sop_class=CT, context=1, piece=16000):
        """Sends a data set in pieces. Returns the status of the response."""
        self.begin_store(instance, sop_class, context)
        for part in data_pdus(context, data, piece):
            self.send(part)
        return self.status()

    def release(self):
        self.send(pdu(5, bytes(4)))
        return self.answer()[0]


@contextlib.contextmanager
def associated(port, **options):
    """Returns a Peer with an accepted association."""
    peer = Peer(port)
    try:
        kind, body = peer.associate(**options)
        assert kind == ACCEPTED, (kind, body)
        peer.largest_pdu = largest_pdu(body)
        yield peer
    finally:
        peer.close()
