"""The schemas of the four databases, as numbered migrations."""

from __future__ import annotations
