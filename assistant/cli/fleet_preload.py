"""Imports what a home needs until it is ready. The process from which a host forks its homes loads this module once, so
they start sooner, and share the memory of it.
"""

from __future__ import annotations

import contextlib
import gc

import psycopg

from assistant import daemon
from assistant.cli import handover, replica, serve
from assistant.mem0 import embedders
from assistant.replica import capture, restore, service
from assistant.search import engine
from assistant.wire import idle, poll
from assistant.wire import replica as wire_replica

# A home that has stopped loads these once a minute otherwise, to ask its networks. Each may lack its package.
with contextlib.suppress(ImportError):
    import assistant.bridges.telegram.bridge
with contextlib.suppress(ImportError):
    import assistant.bridges.matrix.bridge
with contextlib.suppress(ImportError):
    import assistant.bridges.mail.bridge  # noqa: F401

__all__ = [
    "capture",
    "daemon",
    "embedders",
    "engine",
    "handover",
    "idle",
    "poll",
    "psycopg",
    "replica",
    "restore",
    "serve",
    "service",
    "wire_replica",
]

daemon.compile_patterns()
# What the collector does not look at, it does not copy in each child.
gc.collect()
gc.freeze()
