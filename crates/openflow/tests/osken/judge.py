"""Decodes consecutive OpenFlow messages with os-ken.

    python judge.py FILE

It prints one line for each message, which is one of:

- the name of the decoded class, followed by "same" or by the encoded bytes if os-ken can encode it;
- "none" if os-ken has no parser for it (most messages that only a controller sends);
- "fault" and the reason why os-ken cannot decode it.
"""

import importlib
import struct
import sys

from os_ken.ofproto import ofproto_parser
from os_ken.ofproto.ofproto_protocol import ProtocolDesc


def encodes(message):
    """Whether its class has an encoder. Most replies have none."""
    return type(message)._serialize_body is not ofproto_parser.MsgBase._serialize_body


def judge(octets):
    version, kind, length, xid = ofproto_parser.header(octets)
    datapath = ProtocolDesc(version=version)
    parsers = importlib.import_module(f"os_ken.ofproto.ofproto_v1_{version - 1}_parser")
    if parsers._MSG_PARSERS.get(kind) is None:
        return "none"
    message = ofproto_parser.msg(datapath, version, kind, length, xid, octets)
    if message is None:
        return "fault not understood"
    text = str(message.to_jsondict())
    if "Unknown" in text:
        return f"fault has parts that are unknown: {text}"
    name = type(message).__name__
    if not encodes(message):
        return name
    message.buf = None
    message.serialize()
    again = bytes(message.buf)
    return f"{name} same" if again == octets else f"{name} {again.hex()}"


def main(path):
    stream = open(path, "rb").read()
    while stream:
        (length,) = struct.unpack_from("!H", stream, 2)
        try:
            print(judge(stream[:length]))
        except Exception as error:
            print("fault", type(error).__name__, str(error).replace("\n", " "))
        stream = stream[length:]


main(sys.argv[1])
