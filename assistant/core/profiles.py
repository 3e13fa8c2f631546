"""Profiles as values: what counts as the same name, and how something learned closes what it replaces. Pure.

Nothing that was known is dropped. A newer value closes the older one, which keeps both its dates; a value that is
known gets one more source. Attributes are ordered by the time from which they held.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from assistant.core.text import lazy_regex

# Accents, Hebrew points, Arabic vowel signs. In other scripts a mark is part of the letter (か, が).
_ACCENTS = lazy_regex("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")


def fold_name(name: str) -> str:
    """`name` without case, accents and needless space, by which names are compared."""
    plain = unicodedata.normalize("NFKD", " ".join(name.split()).casefold())
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def has_name(profile: Profile, name: str) -> bool:
    """Whether `name` is the profile's name or one of its aliases."""
    wanted = fold_name(name)
    return any(fold_name(one) == wanted for one in (profile.name, *profile.aliases))


def add_attribute(
    profile: Profile,
    name: str,
    value: str,
    since: datetime,
    sources: Iterable[int] = (),
    *,
    allow_multiple: bool = False,
) -> Profile:
    """The profile with an attribute that holds since then. `several` values may hold at once; of any other attribute
    one does: it ends the one before it, and ends itself where one that came later is known already."""
    new = ProfileAttribute(name, value, since, None, tuple(sources))
    alike = [one for one in profile.attributes if _is_of(one, name)]
    known = next(
        (one for one in alike if fold_name(one.value) == fold_name(value) and _is_current_at(one, since)), None
    )
    if known is not None:
        return _changed(profile, {known: replace(known, sources=_together(known.sources, new.sources))})
    if allow_multiple:
        return _changed(profile, {}, new)
    later = [one.since for one in alike if one.since > since]
    closing = {one: replace(one, until=since) for one in alike if one.since <= since and _is_current_at(one, since)}
    return _changed(profile, closing, replace(new, until=min(later, default=None)))


def end_attribute(profile: Profile, name: str, value: str, until: datetime) -> Profile:
    """The profile where the attribute no longer holds from then on, if it did; `value` "" means any value."""
    wanted = fold_name(value)
    closing = {
        one: replace(one, until=until)
        for one in profile.attributes
        if _is_of(one, name) and (not wanted or fold_name(one.value) == wanted) and _is_current_at(one, until)
    }
    return _changed(profile, closing)


def add_alias(profile: Profile, alias: str) -> Profile:
    """The profile with one more alias."""
    return profile if has_name(profile, alias) else replace(profile, aliases=(*profile.aliases, alias))


def remove_alias(profile: Profile, alias: str) -> Profile:
    """The profile without an alias."""
    wanted = fold_name(alias)
    return replace(profile, aliases=tuple(one for one in profile.aliases if fold_name(one) != wanted))


def _is_of(attribute: ProfileAttribute, name: str) -> bool:
    return fold_name(attribute.name) == fold_name(name)


def _is_current_at(attribute: ProfileAttribute, at: datetime) -> bool:
    return attribute.since <= at and (attribute.until is None or attribute.until > at)


def _together(some: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _changed(profile: Profile, instead: dict[ProfileAttribute, ProfileAttribute], *new: ProfileAttribute) -> Profile:
    kept = [instead.get(one, one) for one in profile.attributes]
    return replace(profile, attributes=tuple(sorted((*kept, *new), key=lambda one: one.since)))


@dataclass(frozen=True, slots=True)
class ProfileAttribute:
    """Something that is known of somebody or something, since when and until when; `sources` are journal entries."""

    name: str
    value: str
    since: datetime
    until: datetime | None = None
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A person, a place, a project or another thing that conversations come back to. `attributes` oldest first, former
    ones included."""

    scope: str
    kind: Literal["person", "place", "project", "thing"]
    name: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    attributes: tuple[ProfileAttribute, ...] = ()
    updated_at: datetime | None = None
    id: int | None = None
