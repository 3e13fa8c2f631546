"""What people are told of the budget: notices to the owner, once each, and the line under an answer that the budget
kept the chosen model from giving. Pure.

What always holds: a notice has a key of its own, so that it goes out once, whoever finds the same; whoever is not the
owner reads no sums, no settings and no names of what was asked.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from assistant.core.caps import CapUse, Level, Standing, Stopped
from assistant.core.records import Outgoing
from assistant.core.sessions import MAIN, OWNER_SCOPE


def mark(level: Level, cap: CapUse, *, background: bool = False) -> str:
    """The name under which it is kept that this was told: once a period, and anew for a cap that was changed."""
    part = "background:" if background else ""
    return f"{part}{level}:{cap.setting}:{cap.period}:{cap.most:g}"


def cap_notice(level: Level, cap: CapUse) -> Outgoing:
    if level == "near":
        body = (
            f"{cap.share:.0%} of the {cap.name} budget is used: {cap.describe()}. At 100% the built-in model answers "
            f"until the next {cap.unit}. `budget.{cap.setting}` is how much it is; `/usage` tells what took it."
        )
    else:
        body = (
            f"The {cap.name} budget is used up: {cap.describe()}. Nothing is lost; the built-in model answers until "
            f"the next {cap.unit}. {how_to_raise(cap)} `/usage` tells what took it."
        )
    return _notice(mark(level, cap), body)


def background_notice(cap: CapUse) -> Outgoing:
    body = (
        f"The part of the {cap.name} budget that work in the background may use is used up: {cap.describe()}. Sleep "
        f"goes on by rules, without a model, until the next {cap.unit}; you are answered as before. "
        "`budget.background_share` is how large that part is."
    )
    return _notice(mark("reached", cap, background=True), body)


def runaway_notice(stopped: Stopped, zone: ZoneInfo, now: datetime) -> Outgoing:
    day = now.astimezone(zone).date().isoformat()
    return _notice(f"runaway:{stopped.purpose}:{day}", told_stopped(stopped, zone))


def told_stopped(stopped: Stopped, zone: ZoneInfo) -> str:
    """A request that is not sent any more, in a line that ends with what to do."""
    until = f"{stopped.until.astimezone(zone):%Y-%m-%d %H:%M}"
    return (
        f"The same request ({stopped.purpose}) was sent {stopped.times} times within an hour and brought nothing. It "
        f"is not sent again before {until}, and its work is done by rules; `/sleep --last` tells what went wrong."
    )


def standing_problems(standing: Standing, zone: ZoneInfo) -> list[str]:
    """What of the budget needs the owner, each in a line that ends with what to do."""
    spent = [
        f"The {cap.name} budget is used up: {cap.describe()}. The built-in model answers until the next {cap.unit}. "
        f"{how_to_raise(cap)}"
        for cap in standing.caps
        if cap.is_used_up
    ]
    return [*spent, *(told_stopped(one, zone) for one in standing.stopped)]


def standing_notes(standing: Standing) -> list[str]:
    """What is good to know of it, and needs nobody."""
    near = [
        f"{cap.share:.0%} of the {cap.name} budget is used: {cap.describe()}"
        for cap in standing.caps
        if cap.is_near and not cap.is_used_up
    ]
    quiet = [
        f"sleep goes on without a model until the next {cap.unit}: of the {cap.name} budget its part is used up "
        f"({cap.describe()}; budget.background_share)"
        for cap in standing.background
        if cap.most and cap.is_used_up
    ]
    return [*near, *quiet]


def how_to_raise(cap: CapUse) -> str:
    return f"Raise it with `assistant config set budget.{cap.setting} NUMBER`, which takes effect at once."


def footnote(why: str, *, owner: bool, under_way: bool) -> str:
    """Under an answer of another model than the one that was chosen, because of the budget. `why` is what happened, as
    whoever asked may read it; `under_way`: the turn had begun with the chosen one."""
    if not owner:
        more = " What was found until then stands above." if under_way else ""
        return f"\n\n*({why} A simpler model answered.{more} Ask again later.)*"
    ran_out = (
        " That was in the middle of this answer: what was found until then is kept in the conversation, and the "
        "built-in model finished. Say `go on` once there is budget again."
        if under_way
        else " So the built-in model answered; `/retry` asks again once there is budget."
    )
    more = "A raised `[budget]` holds at once, and `/usage` tells what took it; this is said once a day."
    return f"\n\n*({why}{ran_out} {more})*"


def _notice(key: str, body: str) -> Outgoing:
    return Outgoing(f"budget:{key}", MAIN, OWNER_SCOPE, "terminal", MAIN, body, "notice")
