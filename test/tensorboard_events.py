"""What is in TensorBoard's event files."""

import struct


def records(path):
    """The payloads of a TFRecord file; their sums are tested in fedep/store/log/tensorboard_test.cpp."""
    data = path.read_bytes()
    while data:
        (size,) = struct.unpack_from("<Q", data)
        yield data[12 : 12 + size]
        data = data[16 + size :]


def steps(path):
    """Steps of the events that carry a summary (field 5); wall_time comes first, 9 bytes, then the step."""
    found = []
    for payload in records(path):
        if payload[9] != 0x10:
            continue  # no step: the file's version
        step, at, shift = 0, 10, 0
        while True:
            byte, at = payload[at], at + 1
            step, shift = step | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        if payload[at] == 5 << 3 | 2:
            found.append(step)
    return found
