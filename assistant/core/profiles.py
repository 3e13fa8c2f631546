"""Operations on profiles: name comparison, and how new attribute values close older ones. Pure.

Nothing is dropped: a newer value closes the older one, which keeps both dates; a known value gets another source.
Attributes are ordered by `since`.
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
    """Normalise a name for comparison: no case, accents or extra white space."""
    folded = " ".join(name.split()).casefold()
    if folded.isascii():
        return folded
    plain = unicodedata.normalize("NFKD", folded)
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", plain))


def has_name(profile: Profile, name: str) -> bool:
    """Return whether `name` is the profile's name or an alias."""
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
    """Add an attribute that is true since then. With `allow_multiple` several values may be current at once; otherwise
    it closes the previous value, and is closed itself if a later one is known; the same value is known since the
    earlier of two times."""
    new = ProfileAttribute(name, value, since, None, tuple(sources))
    alike = [each for each in profile.attributes if _is_of(each, name)]
    current = [each for each in alike if _is_current_at(each, since)]
    same = next((each for each in current if fold_name(each.value) == fold_name(value)), None)
    if same is not None:
        return _changed(profile, {same: replace(same, sources=_together(same.sources, new.sources))})
    if allow_multiple:
        return _changed(profile, {}, new)
    following = min((each for each in alike if each.since > since), key=lambda each: each.since, default=None)
    closing = {each: replace(each, until=since) for each in current}
    if following is not None and fold_name(following.value) == fold_name(value):
        together = _together(following.sources, new.sources)
        return _changed(profile, {**closing, following: replace(following, since=since, sources=together)})
    return _changed(profile, closing, replace(new, until=None if following is None else following.since))


def end_attribute(profile: Profile, name: str, value: str, until: datetime) -> Profile:
    """Close an attribute at `until` if it is current then; `value` "" matches any value."""
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
    """Return the profile with one more alias."""
    return profile if has_name(profile, alias) else replace(profile, aliases=(*profile.aliases, alias))


def remove_alias(profile: Profile, alias: str) -> Profile:
    """Return the profile without an alias."""
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
    """A known fact about the subject of a profile."""

    name: str
    value: str
    since: datetime
    until: datetime | None = None
    sources: tuple[int, ...] = ()  # ids of journal entries


@dataclass(frozen=True, slots=True)
class Profile:
    """A person, place, project or thing that conversations return to."""

    scope: str
    kind: Literal["person", "place", "project", "thing"]
    name: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    attributes: tuple[ProfileAttribute, ...] = ()  # oldest first, including closed ones
    updated_at: datetime | None = None
    id: int | None = None
