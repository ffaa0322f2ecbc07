"""A reader of the protobuf wire format, written from its specification and not from our writer."""

import struct


def fields(data):
    """(field number, value) of a message: ints, doubles as floats, everything else as bytes."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length, "a message is cut off"
        else:
            raise AssertionError(f"wire type {kind}")
        found.append((number, value))
    return found


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            assert shift <= 70
            return value, at


def one(data, number, default=None):
    return next((value for at, value in fields(data) if at == number), default)
