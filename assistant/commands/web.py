"""`assistant web link`, `sessions`, `revoke`: who may use the page in a browser. A shell also shows the address and the
token (`assistant/cli/serve.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, tzinfo

import click

from assistant.commands.context import CommandContext
from assistant.commands.table import CommandGroup, numbers_argument
from assistant.core.calendar import format_local_time
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.core.text import pluralize
from assistant.store.home.browser_sessions import LINK_MINUTES, BrowserSession

_NOT_LISTENING = (
    "The page is not served now: `assistant run` serves it, and `assistant web` says what keeps it from that. "
    "No link was made."
)


@click.group(cls=CommandGroup)
def web() -> None:
    """The page in a browser, and the web API for other programs. See the pages window and web-api of `assistant docs`.

    > assistant open
    > assistant web sessions
    > assistant web revoke 2
    """


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link that logs one browser in, once."""

    url: str
    minutes: int  # for which it is good


def _render_link(link: PageLink, _: tzinfo) -> str:
    return f"{link.url}\n\nIt is good once, for {link.minutes} minutes. Anyone who opens it can act as you."


@web.command("link", render=_render_link, with_session=False)
def link(context: CommandContext) -> PageLink:
    """Make a link that logs a browser in to the page. It is good once, for five minutes.

    > assistant web link
    """
    if context.surface == "chat":
        raise UsageError("Links to the page are made in a shell (`assistant open`) or in the page. No link was made.")
    url = context.services.page_url()
    if not url:
        raise UsageError(_NOT_LISTENING)
    return PageLink(f"{url}/#login={context.services.browsers.create_link_code()}", LINK_MINUTES)


_BROWSERS = re.compile(r"Firefox|Edg|Chrome|Safari")
_SYSTEMS = re.compile(r"Android|iPhone|iPad|Windows|Mac OS X|Linux")


@dataclass(frozen=True, slots=True)
class LoggedInBrowser:
    """A browser that is logged in."""

    id: int
    name: str  # "Firefox on Linux"
    agent: str  # the browser's user agent
    created_at: datetime
    used_at: datetime


def _describe(session: BrowserSession) -> LoggedInBrowser:
    browser, system = _BROWSERS.search(session.agent), _SYSTEMS.search(session.agent)
    name = browser[0].replace("Edg", "Edge") if browser else "A browser"
    whole = f"{name} on {system[0]}" if system else name
    return LoggedInBrowser(session.id, whole, session.agent, session.created_at, session.used_at)


def _render_sessions(sessions: Sequence[LoggedInBrowser], zone: tzinfo) -> str:
    lines = [
        f"- {session.id}: {session.name}, since "
        f"{format_local_time(session.created_at, zone)}, last used {format_local_time(session.used_at, zone)}"
        for session in sessions
    ]
    return "\n".join(lines) or "No browser is logged in. `assistant open` opens the page in one."


@web.command("sessions", render=_render_sessions, with_session=False)
def list_sessions(context: CommandContext) -> list[LoggedInBrowser]:
    """List the browsers that are logged in to the page.

    > assistant web sessions
    """
    return [_describe(session) for session in context.services.browsers.list_sessions()]


def _render_revoked(revoked: Sequence[BrowserSession], _: tzinfo) -> str:
    return f"Logged out {pluralize(len(revoked), 'browser')}. What they had open has ended."


@web.command("revoke", render=_render_revoked, with_session=False)
@click.option("--all", "everything", is_flag=True, help="Log out every browser.")
@numbers_argument("ids", required=False)
def revoke(context: CommandContext, ids: Sequence[int], everything: bool) -> list[BrowserSession]:
    """Log browsers out of the page, at once. `assistant web sessions` shows their numbers.

    > assistant web revoke 2
    > assistant web revoke --all
    """
    browsers = context.services.browsers
    known = {session.id for session in browsers.list_sessions()}
    if bool(ids) == everything:
        raise UsageError("Give the numbers of browsers, or --all. Nothing was changed.")
    if unknown := sorted(set(ids) - known):
        raise UsageError(
            f"No browser has the number {unknown[0]}; `assistant web sessions` lists them. Nothing was changed."
        )
    return browsers.revoke(known if everything else set(ids))
