"""`assistant open` and `assistant web`: the page in a browser, its address, and the token for other programs."""

from __future__ import annotations

import html
import webbrowser

import click

from assistant.cli.home_stores import load_effective_settings
from assistant.cli.lazy import DefaultGroup
from assistant.cli.open_link import run_once
from assistant.cli.output import json_result, print_remark, print_text
from assistant.commands import web as web_commands
from assistant.core.dataclass import dataclass
from assistant.core.errors import UsageError
from assistant.service.home_lock import is_home_served, lock_role
from assistant.settings.home import Home, home_from_environment
from assistant.settings.secrets import IN_FILE
from assistant.settings.sections import WEB_TOKEN_KEY
from assistant.settings.settings import Settings
from assistant.store.files import write_file
from assistant.store.home.config_file import create_web_token

_WEB_IS_OFF = "The page and the web API are off. `assistant config unset web.port` turns them on at the next start."
_REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>Nocturne</title>'


@click.command("open")
@click.option("--print", "only_print", is_flag=True, help="Print the link, and open nothing.")
@json_result(web_commands.PageLink)
def open_page(only_print: bool) -> web_commands.PageLink:
    """Open the page in your browser, logged in.

    The link logs one browser in, once, within five minutes. For a browser on another machine, print it. `assistant web
    sessions` lists the browsers that are logged in, and `assistant web revoke` logs them out.

    > assistant open
    > assistant open --print
    """
    settings = load_effective_settings()
    if not _listens(settings):
        _, problem = find_address(settings)
        raise UsageError(problem or f"There is no page to open. {_WEB_IS_OFF}")
    answer = run_once(settings, ["web", "link"])
    link = web_commands.PageLink(**answer.value)
    if only_print or not _open_in_browser(settings.home, link.url):
        print_text(link.url)
        print_remark(f"It logs in one browser, once, within {link.minutes} minutes. Anyone with it can act as you.")
    else:
        print_remark("The page opens in your browser. If it does not: `assistant open --print`.")
    return link


def _open_in_browser(home: Home, url: str) -> bool:
    """By a file that only the owner can read: everybody on a machine sees the command lines of its programs."""
    try:
        browser = webbrowser.get()
        file = home.run / "open.html"
        write_file(file, _REDIRECT.format(html.escape(url)).encode())
        return browser.open(file.as_uri())
    except (webbrowser.Error, OSError):
        return False


@click.group(cls=DefaultGroup, default="address")
def web() -> None:
    """The page, and the web API for other programs: address, logins, token. Without a command it shows the address.

    `assistant docs window` and `assistant docs web-api` tell more.

    > assistant web
    > assistant web sessions
    > assistant web token
    """


@dataclass(frozen=True, slots=True)
class WebAddress:
    """Where the page and the web API are, and what there is to know of that."""

    ok: bool  # false while the assistant runs and nothing listens there
    address: str | None  # null where web.port is 0
    problem: str


@web.command("address")
@json_result(WebAddress, ok=lambda found: found.ok)
def show_address() -> WebAddress:
    """Show where the page and the web API are.

    Exits with 1 while the assistant runs and nothing listens there.

    > assistant web address
    """
    settings = load_effective_settings()
    address, problem = find_address(settings)
    print_text(address or _WEB_IS_OFF)
    if problem:
        print_remark(problem)
    is_missed = bool(problem) and is_home_served(settings.home.path) and not _listens(settings)
    return WebAddress(not is_missed, address or None, problem)


for _command in (web_commands.link, web_commands.list_sessions, web_commands.revoke):
    web.add_command(_command)


def find_address(settings: Settings) -> tuple[str, str]:
    """Where the page is, "" where it is off; and what there is to know of that, "" for nothing."""
    web = settings.values.web
    set_address = f"{'https' if web.certificate else 'http'}://{web.host}:{web.port}" if web.port else ""
    report = read_web_report(settings.home)
    if report is None or not set_address:
        return set_address, _why_nothing_listens(settings.home) if set_address else ""
    if taken := report["taken_port"]:
        return report["address"], f"Port {taken} is taken, so a free one is used until the next start."
    return report["address"] or set_address, _why_nothing_listens(settings.home) if not report["address"] else ""


def _listens(settings: Settings) -> bool:
    report = read_web_report(settings.home)
    return bool(report and report["address"])


def read_web_report(home: Home) -> dict[str, str] | None:
    """What the running assistant says of its web API; None where none runs, or it is off there."""
    if not is_home_served(home.path):
        return None
    from assistant.cli.status import read_status_report  # and all that it looks at

    report: dict[str, str] | None = read_status_report(home).get("web")
    return report


def _why_nothing_listens(home: Home) -> str:
    """Why nobody is answered at the web API's address, and what to do; "" where it listens."""
    if not is_home_served(home.path):
        return "There is no page now: the assistant is not running. `assistant run` starts it."
    web = read_web_report(home)
    if web is None and lock_role(home.path) != "daemon":
        return "There is no page now: only a chat runs the assistant. `assistant run` takes it over, with the page."
    if web is None:
        return "There is no page yet: web.port takes effect when the assistant is started again."
    return "" if web["address"] else f"Nothing listens there: {' '.join(web['problems'])}"


@dataclass(frozen=True, slots=True)
class WebToken:
    """The token of the web API, and where it comes from."""

    token: str
    origin: str


@web.command()
@click.option("--new", is_flag=True, help="Make a new one; the old one is no longer accepted.")
@json_result(WebToken)
def token(new: bool) -> WebToken:
    """Print the token of the web API. Anyone who has it can act as you.

    It is made at the first start with a port, and stored in secrets.toml of your data folder.

    > assistant web token
    > TOKEN=$(assistant web token)
    > curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8484/v1/status
    """
    if new:
        create_web_token(home_from_environment().secrets)
    settings = load_effective_settings()
    current, origin = settings.values.web.token.get_secret_value(), settings.origins[WEB_TOKEN_KEY]
    if new and origin != IN_FILE:
        print_remark(f"{origin} has another web.token, which overrides the new one.")
    if not current:
        raise UsageError("There is no token yet. The first `assistant run` with web.port makes one, and so does --new.")
    print_text(current)
    if not settings.values.web.port:
        print_remark(_WEB_IS_OFF)
    elif new and origin == IN_FILE and is_home_served(settings.home.path):
        print_remark("The running assistant accepts the new token from now on, and not the old one.")
    return WebToken(current, origin)
