"""Checks settings that are valid individually but contradict each other, or name something that does not exist: one
line each, with the values and their origin. Such settings prevent a start, and are refused when they are set."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial

from assistant.core.errors import SettingsError
from assistant.core.model_api import FULL_CONTEXT_TOKENS
from assistant.core.text import limit_lines, shorten
from assistant.settings.sections import SettingsValues

_MOST_NAMES = 10
_Describe = Callable[[tuple[str, ...], str], str]


def context_contradictions(values: SettingsValues, origins: Mapping[str, str]) -> Iterator[str]:
    """Return what in `[context]` and `[compaction]` makes compaction impossible."""
    describe = partial(_describe, origins)
    yield from _threshold_contradictions(values, describe)
    yield from _size_contradictions(values, describe)


def _describe(origins: Mapping[str, str], keys: tuple[str, ...], problem: str) -> str:
    """Return the problem after the first place that sets one of the keys."""
    places = [origins[key] for key in keys if origins[key] != "default.toml"]
    return f"{(places or ['default.toml'])[0]}: {problem}"


def _threshold_contradictions(values: SettingsValues, describe: _Describe) -> Iterator[str]:
    context, compaction = values.context, values.compaction
    full = max(FULL_CONTEXT_TOKENS, context.max_context_tokens)
    reserve, target, sleeps = context.reserve_tokens / full, context.target, compaction.sleep_threshold
    if target + reserve >= sleeps:
        yield describe(
            ("context.target", "context.reserve_tokens", "compaction.sleep_threshold"),
            f"`context.target` ({target:.1%}) and `context.reserve_tokens` ({context.reserve_tokens:,}, {reserve:.1%} "
            f"of the context) come to {target + reserve:.1%}; that has to be below `compaction.sleep_threshold` "
            f"({sleeps:.1%}), or one compaction would follow the other.",
        )
    if sleeps > context.emergency_threshold:
        yield describe(
            ("compaction.sleep_threshold", "context.emergency_threshold"),
            f"`compaction.sleep_threshold` ({sleeps:.0%}) is above `context.emergency_threshold` "
            f"({context.emergency_threshold:.0%}), so that you would always wait for a compaction; set it lower.",
        )


def _size_contradictions(values: SettingsValues, describe: _Describe) -> Iterator[str]:
    """Return what would not fit into the target, which is what a compaction leaves."""
    context, compaction = values.context, values.compaction
    full, target = max(FULL_CONTEXT_TOKENS, context.max_context_tokens), context.target
    if context.preserve_share > target:
        yield describe(
            ("context.preserve_share", "context.target"),
            f"`context.preserve_share` ({context.preserve_share:.0%}) is more than `context.target` ({target:.0%}), "
            "which it is a part of; set it lower, or the target higher.",
        )
    words = compaction.user_messages_max_tokens
    if words / full > target:
        yield describe(
            ("compaction.user_messages_max_tokens", "context.target"),
            f"`compaction.user_messages_max_tokens` ({words:,}, {words / full:.1%} of the context) is more than "
            f"`context.target` ({target:.0%}), which it is a part of; set it lower, or the target higher.",
        )
    summary = compaction.summary_max_tokens + compaction.restored_max_tokens
    if summary / full > target / 2:
        yield describe(
            ("compaction.summary_max_tokens", "compaction.restored_max_tokens", "context.target"),
            f"`compaction.summary_max_tokens` ({compaction.summary_max_tokens:,}) and "
            f"`compaction.restored_max_tokens` ({compaction.restored_max_tokens:,}) come to {summary / full:.1%} of "
            f"the context; summaries may take half of `context.target` ({target / 2:.1%}).",
        )
    if 0 < compaction.max_messages < context.preserve_messages:
        yield describe(
            ("compaction.max_messages", "context.preserve_messages"),
            f"`compaction.max_messages` ({compaction.max_messages:,}) is less than `context.preserve_messages` "
            f"({context.preserve_messages:,}), which every compaction leaves; set it to 0, or higher.",
        )


def web_search_contradictions(values: SettingsValues, origins: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences for people, each with where the setting was made (`origins`)."""
    search = values.web_search
    if search.provider == "searxng" and not search.url:
        origin = origins["web_search.provider"]
        yield f'{origin}: `web_search.provider` is "searxng", which needs its address in `web_search.url`.'


AllowedRoles = Mapping[str, Collection[str]]


def unknown_names(settings: SettingsValues, tools: AllowedRoles, commands: AllowedRoles | None) -> Iterator[str]:
    """`tools` and `commands` map names to the roles that may be granted them; None: commands are not looked at. Returns
    a line for each name in `[guest]`, `[room]` and `compaction.protected_tools` that does not exist, or is the owner's
    alone."""
    for role, section in (("guest", settings.guest), ("room", settings.room)):
        for key, named, allowed in (("tools", section.tools, tools), ("commands", section.commands, commands)):
            if allowed is None:
                continue
            possible = [name for name, roles in allowed.items() if role in roles]
            for name in dict.fromkeys(named):
                if name in possible:
                    continue
                if name in allowed:
                    yield f"`{role}.{key}` names {_show(name)}, which only the owner may use{_list_names(possible)}"
                else:
                    yield f"`{role}.{key}` names {_show(name)}, which does not exist{_suggestion(name, possible)}"
    for name in dict.fromkeys(settings.compaction.protected_tools):
        if name not in tools:
            yield f"`compaction.protected_tools` names {_show(name)}, which does not exist{_suggestion(name, tools)}"


def _show(name: str) -> str:
    return shorten(repr(name), 80)


def _suggestion(name: str, possible: Collection[str]) -> str:
    near = difflib.get_close_matches(name, possible, n=1)
    return f"; did you mean {near[0]!r}?" if near else _list_names(possible)


def _list_names(possible: Collection[str]) -> str:
    return f"; it may name: {', '.join(sorted(possible))}."


def check_names(settings: SettingsValues, tools: AllowedRoles, commands: AllowedRoles | None) -> None:
    """Raises `SettingsError` with the lines of `unknown_names`."""
    if problems := limit_lines(list(unknown_names(settings, tools, commands)), _MOST_NAMES):
        raise SettingsError(
            "\n".join([*problems, "Nothing was started; correct that and start again."]), problems=problems
        )
