"""Sounds that a browser plays."""

from __future__ import annotations

import struct

_SERIAL = 7
_SILENCE = b"\xf8\xff\xfe"  # 20 ms of it, as Opus
_SAMPLES = 960


def ogg_opus(packets: int = 50) -> bytes:
    """Silence of so many times 20 ms, as Ogg Opus (RFC 7845)."""
    head = b"OpusHead" + struct.pack("<BBHIhB", 1, 1, 0, 48_000, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 4) + b"test" + struct.pack("<I", 0)
    sound = _page([_SILENCE] * packets, 2, packets * _SAMPLES, 4)
    return _page([head], 0, 0, 2) + _page([tags], 1, 0, 0) + sound


def _page(packets: list[bytes], number: int, position: int, flags: int) -> bytes:
    lengths = bytes(len(packet) for packet in packets)
    start = b"OggS" + struct.pack("<BBqII", 0, flags, position, _SERIAL, number)
    end = bytes([len(lengths)]) + lengths + b"".join(packets)
    return start + struct.pack("<I", _checksum(start + bytes(4) + end)) + end


def _checksum(data: bytes) -> int:
    """The CRC of Ogg: not reflected, and begun with 0."""
    value = 0
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = ((value << 1) ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value
