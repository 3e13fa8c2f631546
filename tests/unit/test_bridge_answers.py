"""What `assistant bridge add` makes of the tokens that a script hands it for Slack and Discord. Nothing is asked, and
nothing is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.cli.bridge.settings import BridgeOptions, ask_bridge_answers
from assistant.core.errors import UsageError
from assistant.settings.home import Home
from assistant.settings.settings import load_settings

DISCORD = "MTIz.Gabcde.one-token_1"


def answers(home: Path, name: str, token: str, current: str = "") -> tuple[str, bool]:
    """The token that is to be kept, and whether it is another account's."""
    set_up = {f"ASSISTANT_{name.upper()}__TOKEN": current} if current else {}
    settings = load_settings(Home(home), set_up, ring=None)
    settings.origins[f"{name}.token"] = "default.toml"
    read = ask_bridge_answers(Home(home), name, settings, BridgeOptions(token=token))
    return read.token, read.anew


def test_both_tokens_of_a_slack_app_are_one_secret(tmp_path: Path) -> None:
    assert answers(tmp_path, "slack", "xoxb-1-a   xapp-1-b") == ("xoxb-1-a xapp-1-b", False)


@pytest.mark.parametrize(
    "given", ["xoxb-1-a", "xapp-1-b xoxb-1-a", "xoxp-1-a xapp-1-b", "xoxb-1-a xapp-1-b xapp-2-c", "xoxb-1-ä xapp-1-b"]
)
def test_what_is_no_pair_of_tokens_is_refused_with_where_they_are(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="the app's page has it under"):
        answers(tmp_path, "slack", given)


@pytest.mark.parametrize("given", ["123456:telegram", "a.b", "a.b.c d", ""])
def test_what_is_no_token_of_discord_is_refused(tmp_path: Path, given: str) -> None:
    with pytest.raises(UsageError, match="three parts with dots"):
        answers(tmp_path, "discord", given or "-")


def test_a_new_token_of_the_same_account_continues_and_one_of_another_begins_anew(tmp_path: Path) -> None:
    assert answers(tmp_path, "discord", "MTIz.H.2", DISCORD) == ("MTIz.H.2", False)
    assert answers(tmp_path, "discord", "NDU2.H.2", DISCORD) == ("NDU2.H.2", True)
    assert answers(tmp_path, "slack", "xoxb-1-new xapp-2-x", "xoxb-1-old xapp-1-b") == ("xoxb-1-new xapp-2-x", False)
    assert answers(tmp_path, "slack", "xoxb-9-new xapp-2-x", "xoxb-1-old xapp-1-b") == ("xoxb-9-new xapp-2-x", True)
