"""Profiles as values: what counts as the same name, and how something learned closes what it replaces. Pure.

Nothing that was known is dropped. A newer value closes the older one, which keeps both its dates; a value that is
known gets one more source. Attributes are ordered by the time from which they held.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Literal

from assistant.core.dataclass import dataclass
from assistant.core.text import lazy_regex

# Accents, Hebrew points, Arabic vowel signs. In other scripts a mark is part of the letter (か, が).
_ACCENTS = lazy_regex("[\u0300-\u036f\u0591-\u05c7\u064b-\u065f]")


def fold_name(name: str) -> str:
    """`name` without case, accents and needless space, by which names are compared."""
    plain = unicodedata.normalize("NFKD", " ".join(name.split()).casefold())
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def has_name(profile: Profile, name: str) -> bool:
    """Whether `name` is the profile's name or one of its aliases."""
    folded = fold_name(name)
    return any(fold_name(name_or_alias) == folded for name_or_alias in (profile.name, *profile.aliases))


def add_attribute(
    profile: Profile,
    name: str,
    value: str,
    since: datetime,
    sources: Iterable[int] = (),
    *,
    allow_multiple: bool = False,
) -> Profile:
    """The profile with an attribute that is true since then. With `allow_multiple` several values may be true at once;
    else the new one ends the one before it, and ends itself where a later one is known already."""
    new = ProfileAttribute(name, value, since, None, tuple(sources))
    alike = [each for each in profile.attributes if _is_of(each, name)]
    current = [each for each in alike if _is_current_at(each, since)]
    same = next((each for each in current if fold_name(each.value) == fold_name(value)), None)
    if same is not None:
        return _changed(profile, {same: replace(same, sources=_together(same.sources, new.sources))})
    if allow_multiple:
        return _changed(profile, {}, new)
    later = [each.since for each in alike if each.since > since]
    closing = {each: replace(each, until=since) for each in current}
    return _changed(profile, closing, replace(new, until=min(later, default=None)))


def end_attribute(profile: Profile, name: str, value: str, until: datetime) -> Profile:
    """The profile where the attribute no longer holds from then on, if it did; `value` "" means any value."""
    folded = fold_name(value)
    closing = {
        attribute: replace(attribute, until=until)
        for attribute in profile.attributes
        if _is_of(attribute, name)
        and (not folded or fold_name(attribute.value) == folded)
        and _is_current_at(attribute, until)
    }
    return _changed(profile, closing)


def add_alias(profile: Profile, alias: str) -> Profile:
    """The profile with one more alias."""
    return profile if has_name(profile, alias) else replace(profile, aliases=(*profile.aliases, alias))


def remove_alias(profile: Profile, alias: str) -> Profile:
    """The profile without an alias."""
    folded = fold_name(alias)
    return replace(profile, aliases=tuple(other for other in profile.aliases if fold_name(other) != folded))


def _is_of(attribute: ProfileAttribute, name: str) -> bool:
    return fold_name(attribute.name) == fold_name(name)


def _is_current_at(attribute: ProfileAttribute, at: datetime) -> bool:
    return attribute.since <= at and (attribute.until is None or attribute.until > at)


def _together(some: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys((*some, *more)))


def _changed(profile: Profile, instead: dict[ProfileAttribute, ProfileAttribute], *new: ProfileAttribute) -> Profile:
    attributes = [instead.get(attribute, attribute) for attribute in profile.attributes]
    return replace(profile, attributes=tuple(sorted((*attributes, *new), key=lambda attribute: attribute.since)))


@dataclass(frozen=True, slots=True)
class ProfileAttribute:
    """Something that is known of somebody or something."""

    name: str
    value: str
    since: datetime
    until: datetime | None = None
    sources: tuple[int, ...] = ()  # ids of journal entries


@dataclass(frozen=True, slots=True)
class Profile:
    """A person, a place, a project or another thing that conversations come back to."""

    scope: str
    kind: Literal["person", "place", "project", "thing"]
    name: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    attributes: tuple[ProfileAttribute, ...] = ()  # oldest first, those that ended included
    updated_at: datetime | None = None
    id: int | None = None
