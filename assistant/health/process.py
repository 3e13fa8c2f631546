"""Whoever serves the home, and what earlier ones left behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from assistant.health.values import Finding, mended, note, ok, problem


@dataclass(frozen=True, slots=True)
class Serving:
    """`holder` is the process that holds the home's lock, None where nobody does or nobody knows; `answers`: somebody
    listens at the control socket; `has_socket`: it is there at all. `remove_socket` takes it away."""

    served: bool
    holder: int | None
    answers: bool
    has_socket: bool
    remove_socket: Callable[[], None]


def daemon(serving: Serving) -> Finding:
    who = f"process {serving.holder}" if serving.holder else "a process"
    if not serving.served:
        return note("daemon", "nobody serves the home now", "`assistant run`, or `assistant service install`.")
    if serving.answers:
        return ok("daemon", f"{who} serves the home")
    return problem(
        "daemon", f"{who.capitalize()} holds the home and does not listen.",
        "If it is not just starting: `assistant stop`, then start it again.",
    )  # fmt: skip


def stale_socket(serving: Serving, *, fix: bool) -> Finding | None:
    """A socket that nobody listens at, and nobody will: it is taken away at the next start as well."""
    if not serving.has_socket or serving.answers or serving.served:
        return None
    told = "A control socket was left behind by a process that died."
    if not fix:
        return note("socket", told, "The next start takes it away, and so does `assistant doctor --fix`.")
    serving.remove_socket()
    return mended("socket", told, "Took it away.")
