"""Profiles as values: what counts as the same name, and how something learned closes what it replaces. Pure.

What always holds: nothing that was known is dropped. A newer value closes the older one, which keeps both its dates; a
value that is known gets one more source. Attributes stand in the order in which they came to hold.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from assistant.core.expressions import expression
from assistant.core.remembered import Attribute, Profile

# Accents, Hebrew points, Arabic vowel signs. In other scripts a mark is part of the letter (か, が).
_ACCENTS = expression("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")


def folded(name: str) -> str:
    """`name` without case, accents and needless space, by which names are compared."""
    plain = unicodedata.normalize("NFKD", " ".join(name.split()).casefold())
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def is_called(profile: Profile, name: str) -> bool:
    """Whether `name` is the profile's name or one of its aliases."""
    wanted = folded(name)
    return any(folded(one) == wanted for one in (profile.name, *profile.aliases))


def learned(
    profile: Profile, name: str, value: str, since: datetime, sources: Iterable[int] = (), *, several: bool = False
) -> Profile:
    """The profile with an attribute that holds since then. `several` values may hold at once; of any other attribute
    one does: it ends the one before it, and ends itself where one that came later is known already."""
    new = Attribute(name, value, since, None, tuple(sources))
    alike = [one for one in profile.attributes if _is_of(one, name)]
    known = next((one for one in alike if folded(one.value) == folded(value) and _holds(one, since)), None)
    if known is not None:
        return _changed(profile, {known: replace(known, sources=_together(known.sources, new.sources))})
    if several:
        return _changed(profile, {}, new)
    later = [one.since for one in alike if one.since > since]
    closing = {
        one: replace(one, until=since)
        for one in alike
        if one.since <= since and _holds(one, since)
    }  # fmt: skip
    return _changed(profile, closing, replace(new, until=min(later, default=None)))


def ended(profile: Profile, name: str, value: str, until: datetime) -> Profile:
    """The profile where the attribute no longer holds from then on, if it did; `value` "" means any value."""
    wanted = folded(value)
    closing = {
        one: replace(one, until=until)
        for one in profile.attributes
        if _is_of(one, name) and (not wanted or folded(one.value) == wanted) and _holds(one, until)
    }
    return _changed(profile, closing)


def called(profile: Profile, alias: str) -> Profile:
    """The profile with one more alias."""
    return profile if is_called(profile, alias) else replace(profile, aliases=(*profile.aliases, alias))


def not_called(profile: Profile, alias: str) -> Profile:
    """The profile without an alias."""
    wanted = folded(alias)
    return replace(profile, aliases=tuple(one for one in profile.aliases if folded(one) != wanted))


def _is_of(attribute: Attribute, name: str) -> bool:
    return folded(attribute.name) == folded(name)


def _holds(attribute: Attribute, at: datetime) -> bool:
    return attribute.since <= at and (attribute.until is None or attribute.until > at)


def _together(some: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _changed(profile: Profile, instead: dict[Attribute, Attribute], *new: Attribute) -> Profile:
    kept = [instead.get(one, one) for one in profile.attributes]
    return replace(profile, attributes=tuple(sorted((*kept, *new), key=lambda one: one.since)))
