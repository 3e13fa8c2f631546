"""`assistant web`: what a caller of the web API needs."""

from __future__ import annotations

import click

from assistant.cli.effective_settings import load_effective_settings
from assistant.cli.output import print_remark, print_text
from assistant.core.errors import UsageError
from assistant.service.home_lock import is_home_served
from assistant.settings.home import home_from_environment
from assistant.settings.secrets import IN_FILE
from assistant.web.servers import WEB_TOKEN_KEY, create_web_token

_AT_ONCE = "The running assistant accepts the new token from now on, and not the old one."
_HOW = "The web API is off. `assistant config set web.port 8484` turns it on at the next start."


@click.group()
def web() -> None:
    """The web API, for other programs. docs/web-api.md describes it.

    \b
    Example:
      assistant config set web.port 8484
      assistant web token
    """


@web.command()
@click.option("--new", is_flag=True, help="Make a new one; the old one is no longer accepted.")
def token(new: bool) -> None:
    """Print the token of the web API. Anyone who has it can act as you.

    It is made at the first start with a port, and stored in secrets.toml of your data folder.

    \b
    Example:
      assistant web token
      curl -H "Authorization: Bearer $(assistant web token)" http://127.0.0.1:8484/v1/status
    """
    if new:
        create_web_token(home_from_environment())
    settings = load_effective_settings()
    current = settings.values.web.token.get_secret_value()
    if new and settings.origins[WEB_TOKEN_KEY] != IN_FILE:
        print_remark(f"{settings.origins[WEB_TOKEN_KEY]} has another web.token, which overrides the new one.")
    if not current:
        raise UsageError("There is no token yet. It is made at the first start with web.port set, or by --new.")
    print_text(current)
    if not settings.values.web.port:
        print_remark(_HOW)
    elif new and settings.origins[WEB_TOKEN_KEY] == IN_FILE and is_home_served(settings.home):
        print_remark(_AT_ONCE)
