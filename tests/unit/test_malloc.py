"""A process that gives back what it does not need, as a process of its own would show."""

from __future__ import annotations

import platform
import subprocess
import sys

_PROGRAM = """
import re, sys
from pathlib import Path
from assistant.service.malloc import trim_heap, limit_heap

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

known = limit_heap()
for _ in range(2):
    # The largest block that is freed raises the size from which the C library maps blocks one by one.
    blocks = [bytearray(4_000_000) for _ in range(3)]
    del blocks
blocks = [bytearray(b"x" * 200_000) for _ in range(300)]
kept = blocks[-1]
before = resident()
del blocks
print(known, before - resident() > 40_000)

# Smaller ones lie in a pool, under one that is still used.
blocks = [bytearray(b"x" * 100_000) for _ in range(600)]
kept = blocks[-1]
before = resident()
del blocks
trim_heap()
print(known, before - resident() > 40_000)
"""


def test_a_peak_is_given_back_to_the_system_on_gnu() -> None:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    for line in ran.stdout.splitlines():
        known, given_back = line.split()
        assert known == str(platform.libc_ver()[0] == "glibc")
        assert given_back == "True" or known == "False"
