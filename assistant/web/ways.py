"""What the web API is served from, and to whom; light, so that nothing is loaded before somebody connects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.bridges.terminal.bridge import TerminalBridge
from assistant.core.ports import ControlPort
from assistant.health.gauges import VitalsPort
from assistant.web.read_values import ReadApiPort


@dataclass(frozen=True, slots=True)
class Behind:
    """One running daemon."""

    control: ControlPort
    looking: ReadApiPort
    terminal: TerminalBridge
    vitals: VitalsPort


@dataclass(frozen=True, slots=True)
class Rules:
    """Who is let in over TCP: `token` gives what a caller shows at this moment, "" lets nobody in; `hosts` are names of
    this assistant beside the loopback ones. `behind_proxy`: who asks is told by the last X-Forwarded-For, which the
    proxy wrote."""

    token: Callable[[], str]
    hosts: frozenset[str] = frozenset()
    behind_proxy: bool = False
