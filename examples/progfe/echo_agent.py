#!/usr/bin/env python3
"""An external service agent that returns every frame to its sender, with swapped MAC addresses.

    planimeter progfe --program examples/progfe/own-agent.fe.xml --agent-socket-dir /run/agents --port ...
    examples/progfe/echo_agent.py /run/agents/mine.sock

docs/progfe.md describes the protocol between element and agent.
"""

import socket
import struct
import sys

HELLO, FRAME, SEND = 0, 1, 2
PHY_PORT = 1  # the metadatum with the port that a frame came in on


def messages(stream):
    """Whole messages, until the element closes the stream."""
    while head := stream.read(4):
        yield stream.read(struct.unpack(">I", head)[0])


def main(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    outputs = {}
    for message in messages(connection.makefile("rb")):
        kind, version, count = struct.unpack_from(">BBH", message)
        if kind == HELLO:
            # Outputs of Inject are in the order of the ports.
            for place in range(count):
                (number,) = struct.unpack_from(">I", message, 4 + 10 * place)
                outputs[number] = place
            print(f"connected: version {version}, ports {sorted(outputs)}", flush=True)
        elif kind == FRAME:
            metadata = {}
            for place in range(count):
                at = 12 + 20 * place
                (name,) = struct.unpack_from(">I", message, at)
                metadata[name] = int.from_bytes(message[at + 4 : at + 20], "big")
            frame = message[12 + 20 * count :]
            back = frame[6:12] + frame[:6] + frame[12:]
            answer = struct.pack(">BBHI", SEND, 0, 0, outputs[metadata[PHY_PORT]]) + back
            connection.sendall(struct.pack(">I", len(answer)) + answer)


if __name__ == "__main__":
    main(sys.argv[1])
