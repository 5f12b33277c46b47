"""Writes messages that neither Open vSwitch nor os-ken sends, from the specifications.

    python3 byhand.py
"""

import struct

import samples

ORIGIN = "written by hand after the structures of the specification"
VENDOR = struct.pack("!HHII", 0xffff, 12, 0xabcdef, 7) + bytes(4)


def message(version, kind, body, statistics=None):
    if statistics is not None:
        body = struct.pack("!HH4x", samples.MULTIPART.index(statistics), 0) + body
    number = samples.OF11.index(kind)
    return struct.pack("!BBHI", version + 1, number, 8 + len(body), 0x77) + body


def time(seconds):
    return struct.pack("!QI4x", seconds, 5)


def controller(short_id, role, reason, channel):
    uri = b"tcp:192.0.2.1:6653?x=1"
    where = struct.pack("!HH", 0, 4 + len(uri)) + uri
    where += bytes(-len(where) % 8)
    return struct.pack("!HHIBB6x", 16 + len(where) + len(VENDOR), short_id, role, reason,
                       channel) + where + VENDOR


def all_messages():
    for version in (1, 2, 3, 4, 5):
        for kind in ("multipart_request", "multipart_reply"):
            body = struct.pack("!HH4xII", 0xffff, 0, 0xabcdef, 9 if version > 1 else 0)
            yield message(version, kind, body + b"anything")
    yield message(1, "experimenter", struct.pack("!II", 0xabcdef, 7) + b"anything")
    for version in (4, 5):
        yield message(version, "role_status", struct.pack("!IB3xQ", 3, 0, 99) + VENDOR)
        eviction, vacancy = struct.pack("!HHI", 2, 8, 5), struct.pack("!HHBBBx", 3, 8, 20, 80, 19)
        table = struct.pack("!HBxI", 8 + 16, 7, 0xc) + eviction + vacancy
        yield message(version, "table_status", struct.pack("!B7x", 3) + table)
        group = message(version, "group_mod", struct.pack("!HBBI", 2, 0, 0, 9) + (
            struct.pack("!HHI", 0, 0, 0xffffffff) if version == 5 else b""))
        yield message(version, "requestforward", group)
    yield message(5, "controller_status", controller(1, 2, 2, 0))
    rows = controller(1, 2, 0, 0) + controller(2, 3, 0, 1)
    yield message(5, "multipart_reply", rows, "controller_status")
    limits = struct.pack("!HH4x", 1, 72) + b"".join(map(time, (1, 2, 3, 4)))
    yield message(5, "multipart_reply", struct.pack("!H6x", 7) + limits + VENDOR, "bundle_features")
    statistics = struct.pack("!HH", 0, 24) + bytes.fromhex(
        "8002 0008 00000003 00000004" "8002 0604 00000009")
    match = bytes.fromhex("0001 000a 8000 0a02 0800") + bytes(6)
    row = struct.pack("!H2xBBH", 8 + len(match) + len(statistics), 3, 1, 100) + match + statistics
    header = struct.pack("!HH4x", 17, 0)
    yield message(5, "multipart_reply", header + row)


def main():
    print(samples.save_all(ORIGIN, [(ORIGIN, octets) for octets in all_messages()]))


if __name__ == "__main__":
    main()
