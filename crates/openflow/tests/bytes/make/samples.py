"""Writes samples into the file of their version and kind.

Callers pass messages with their origin. These replace the file's samples of the same origin; all
others stay. `UPDATE=1 cargo test` adds the text that each message prints as.
"""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).parent.parent

COMMON = ["hello", "error", "echo_request", "echo_reply", "experimenter", "features_request",
          "features_reply", "get_config_request", "get_config_reply", "set_config", "packet_in",
          "flow_removed", "port_status", "packet_out", "flow_mod"]
OF10 = COMMON + ["port_mod", "multipart_request", "multipart_reply", "barrier_request",
                 "barrier_reply", "queue_get_config_request", "queue_get_config_reply"]
OF11 = COMMON + ["group_mod", "port_mod", "table_mod", "multipart_request", "multipart_reply",
                 "barrier_request", "barrier_reply", "queue_get_config_request",
                 "queue_get_config_reply", "role_request", "role_reply", "get_async_request",
                 "get_async_reply", "set_async", "meter_mod", "role_status", "table_status",
                 "requestforward", "bundle_control", "bundle_add", "controller_status"]
MULTIPART = ["desc", "flow", "aggregate", "table", "port", "queue", "group", "group_desc",
             "group_features", "meter", "meter_config", "meter_features", "table_features",
             "port_desc", "table_desc", "queue_desc", "flow_monitor", "flow_stats", "controller_status",
             "bundle_features"]


def kind(message):
    """The name of a message's type. The type of statistics follows a dot."""
    version, number = message[0], message[1]
    name = (OF10 if version == 1 else OF11)[number]
    if not name.startswith("multipart"):
        return name
    (statistics,) = struct.unpack_from("!H", message, 8)
    if statistics == 0xffff:
        return name + ".experimenter"
    return f"{name}.{dict(enumerate(MULTIPART)).get(statistics, 'unknown')}"


def split(stream):
    """The complete messages at the start of a stream, and the remaining bytes."""
    messages = []
    while len(stream) >= 8:
        (length,) = struct.unpack_from("!H", stream, 2)
        if length < 8 or len(stream) < length:
            break
        messages.append(stream[:length])
        stream = stream[length:]
    return messages, stream


def without_xid(message):
    return message[:4] + bytes(4) + message[8:]


def hexadecimal(message):
    lines = (message[at:at + 32] for at in range(0, len(message), 32))
    return "".join(f"  {line.hex(' ', -4)}\n" for line in lines)


def save(version, name, maker, samples):
    """Replaces the samples of `maker` by `samples`. Each has an origin, a message and, if the
    message was rejected, the error in reply."""
    path = FOLDER / version / f"{name}.txt"
    path.parent.mkdir(exist_ok=True)
    old = path.read_text().split("---\n") if path.exists() else []
    kept = [sample for sample in old if sample and not sample.startswith(f"origin: {maker}")]
    new = []
    for origin, message, *answer in samples:
        answer = "".join(f"answer:\n{hexadecimal(octets)}" for octets in answer)
        new.append(f"origin: {origin}\nhex:\n{hexadecimal(message)}{answer}text:\n")
    if kept + new:
        path.write_text("---\n".join(kept + new))


def save_all(maker, samples, seen=None):
    """Writes `samples` into their files, without messages that differ only in transaction id."""
    files, seen = {}, seen if seen is not None else set()
    for origin, message in samples:
        if without_xid(message) not in seen:
            seen.add(without_xid(message))
            version = f"1.{message[0] - 1}"
            files.setdefault((version, kind(message)), []).append((origin, message))
    for (version, name), rows in files.items():
        save(version, name, maker, rows)
    return {key: len(rows) for key, rows in files.items()}
