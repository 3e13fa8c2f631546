"""What the figures were measured on: without it no figure means anything."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from pathlib import Path

from tests.bench.appends import durable_append


def description(folder: Path) -> str:
    """Machine, processor, memory, versions and the disk that `folder` is on, one fact a line."""
    load = "/".join(f"{value:.1f}" for value in os.getloadavg())
    facts = {
        "machine": f"{platform.platform()}, {os.cpu_count()} x {_processor()}, {_memory()}",
        "software": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        "disk": f"{_file_system(folder)}, {1000 * durable_append(folder):.2f} ms a durable append of 4 KB (median)",
        "load before": load + (" (busy: figures are worse than they are)" if os.getloadavg()[0] > 1 else ""),
    }
    return "\n".join(f"{name:12} {fact}" for name, fact in facts.items())


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GB"
    except (ValueError, OSError):
        return "memory unknown"


def _file_system(folder: Path) -> str:
    # -P keeps each file system on one line, however long its device's name.
    listed = subprocess.run(["df", "-PT", str(folder)], capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        device, kind = listed.stdout.splitlines()[-1].split()[:2]
        return f"{kind} on {device}"
    return "file system unknown"
