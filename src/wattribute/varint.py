"""The variable-length integers of protobuf."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """An unsigned integer, seven bits a byte, the lowest first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
