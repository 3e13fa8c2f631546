"""Imports what a home needs until it is ready. The process from which a host forks its homes loads this module once, so
they start sooner, and share the memory of it.
"""

from __future__ import annotations

import gc

import psycopg

from assistant import daemon
from assistant.cli import handover, replica, serve
from assistant.mem0 import embedders
from assistant.replica import capture, restore, service
from assistant.search import engine
from assistant.wire import idle
from assistant.wire import replica as wire_replica

__all__ = [
    "capture",
    "daemon",
    "embedders",
    "engine",
    "handover",
    "idle",
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
