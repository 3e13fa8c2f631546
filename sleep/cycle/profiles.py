"""Updates profiles of people, places and projects from journal entries, by rules. Pure.

Attributes cite their entries (I6) and start dates; a newer value closes the older one, keeping both dates. Guests'
statements about the owner, tasks, summaries and questions are ignored. Idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from assistant.context.question import find_past_period
from assistant.core.dataclass import dataclass
from assistant.core.memories import JournalEntry
from assistant.core.profiles import Profile, add_alias, add_attribute, end_attribute, fold_name, remove_alias
from assistant.core.sessions import OWNER_SCOPE
from assistant.core.text import lazy_regex
from sleep.rules.claim_times import begin_since
from sleep.rules.clauses import strip_opening_words
from sleep.rules.relations import AttributeClaim, Mention, find_attributes, find_mention, is_single_relation
from sleep.rules.sentences import split_sentences
from sleep.rules.translate import find_original, to_english

RELATION = "relation"
_NOT_FACTS = frozenset({"summary", "task"})
_MOST_NEW = 200
_MOST_ATTRIBUTES = 120
_LONGEST_ENTRY = 20_000
_LONGEST_SENTENCE = 400
_TO_COME = lazy_regex(r"^(?:from|next|tomorrow)\b|\bnext\b|\btomorrow\b", re.IGNORECASE)
_FOR = lazy_regex(r"^for ", re.IGNORECASE)
_SINCE = lazy_regex(r"^since (?=\d{4}\b)", re.IGNORECASE)
_SINCE_DAY = lazy_regex(r"^since (?=\w+day\b(?<!yesterday))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ProfileChange:
    """A profile to save, with an idempotency key."""

    profile: Profile
    key: str


def find_profile_changes(entries: Sequence[JournalEntry], profiles: Sequence[Profile]) -> list[ProfileChange]:
    """Return the changes that entries of one scope make to its `profiles`, by name. Creates at most 200 profiles at
    once, with at most 120 attributes each."""
    before = {fold_name(profile.name): profile for profile in profiles}
    builder = _ProfileBuilder(dict(before))
    for entry in sorted(entries, key=lambda entry: (entry.timestamp, entry.id or 0, entry.key)):
        if _tells(entry):
            for sentence in split_sentences(entry.content[:_LONGEST_ENTRY]):
                if not sentence.is_question and len(sentence.own_text) <= _LONGEST_SENTENCE:
                    builder.read(sentence.own_text, entry)
    changed = [(name, profile) for name, profile in sorted(builder.profiles.items()) if profile != before.get(name)]
    return [ProfileChange(profile, f"profile:{name}:{builder.last[name]}") for name, profile in changed]


def _tells(entry: JournalEntry) -> bool:
    guest = entry.scope == OWNER_SCOPE and "guest" in entry.tags
    return entry.source_type != "context_synthesis" and not guest and not _NOT_FACTS.intersection(entry.tags)


class _ProfileBuilder:
    """Profiles by folded name while entries are applied; `last` has the key of the entry that last changed each."""

    def __init__(self, profiles: dict[str, Profile]) -> None:
        self.profiles = profiles
        self.last: dict[str, str] = {}
        self._aliases = {fold_name(alias): name for name, profile in profiles.items() for alias in profile.aliases}
        self._new = 0

    def read(self, sentence: str, entry: JournalEntry) -> None:
        english = begin_since(to_english(sentence), sentence)
        about = find_mention(sentence if english == sentence else strip_opening_words(english))
        if about is None:
            return
        # Values are kept as they were said, not in English.
        originals = ((claim, find_original(claim.value, sentence)) for claim in find_attributes(about))
        claims = [replace(claim, value=value) for claim, value in originals if value]
        profile = self._profile(about, entry)
        if profile is None or not (claims or about.relation or about.kind == "project"):
            return
        if about.relation:
            profile = self._related(profile, about, entry)
        sources = () if entry.id is None else (entry.id,)
        for claim in claims:
            if claim.is_ended:
                profile = end_attribute(profile, claim.name, claim.value, entry.timestamp)
            elif len(profile.attributes) < _MOST_ATTRIBUTES and (since := _since(profile, claim, entry)) is not None:
                profile = add_attribute(
                    profile, claim.name, claim.value, since, sources, allow_multiple=claim.is_multi_valued
                )
        self._put(profile, entry)

    def _profile(self, about: Mention, entry: JournalEntry) -> Profile | None:
        """Return the profile that is meant, creating one if the sentence says what it is; else None."""
        name = fold_name(about.name or about.alias)
        profile = self.profiles.get(name) or self.profiles.get(self._aliases.get(name, ""))
        if profile is not None:
            return profile
        if not about.name or about.kind is None or self._new >= _MOST_NEW:
            return None
        self._new += 1
        return Profile(entry.scope, about.kind, about.name)

    def _related(self, profile: Profile, about: Mention, entry: JournalEntry) -> Profile:
        """Add a relation. An alias belongs to one person: for an exclusive relation the newest takes it over, otherwise
        an ambiguous alias is removed."""
        sources = () if entry.id is None else (entry.id,)
        profile = add_attribute(profile, RELATION, about.relation, entry.timestamp, sources)
        if not _is_related(profile, about.relation):
            return profile
        single = is_single_relation(about.relation.split()[-1])
        alone = True
        named = self._aliases.get(fold_name(about.alias))
        for name, other in list(self.profiles.items()):
            related = _is_related(other, about.relation)
            if name == fold_name(profile.name) or not (related or name == named):
                continue
            alone = alone and not related
            left = remove_alias(other, about.alias)
            self._put(end_attribute(left, RELATION, about.relation, entry.timestamp) if single else left, entry)
        return add_alias(profile, about.alias) if single or alone else remove_alias(profile, about.alias)

    def _put(self, profile: Profile, entry: JournalEntry) -> None:
        name = fold_name(profile.name)
        stood = self.profiles.get(name)
        if stood == profile:
            return
        self.profiles[name] = profile
        self.last[name] = entry.key
        if stood is None or stood.aliases != profile.aliases:
            self._aliases = {alias: owner for alias, owner in self._aliases.items() if owner != name}
            self._aliases |= {fold_name(alias): name for alias in profile.aliases}


def _find_beginning(when: str, said_at: datetime) -> datetime | None:
    """Return when something began of which `when` was said, or `said_at` if that does not say; None if it is still to
    come."""
    if not when:
        return said_at
    if _TO_COME.search(when):
        return None
    words = f"{_FOR.sub('', when)} ago" if _FOR.match(when) else _SINCE_DAY.sub("on ", _SINCE.sub("in ", when))
    period = find_past_period(f"was {words}", said_at, UTC)
    if period is None:
        return said_at
    # "Two months ago" is about that time: the period reaches as far before it as after it.
    about = (period.before - period.after) / 2 if words.endswith("ago") else timedelta()
    return min(period.after + about, said_at)


def _since(profile: Profile, claim: AttributeClaim, entry: JournalEntry) -> datetime | None:
    """Return since when a claim holds; None if that is still to come. What was said last holds now, also if it began
    before what was said earlier."""
    since = _find_beginning(claim.when, entry.timestamp)
    if since is None:
        return None
    others = (
        one
        for one in profile.attributes
        if one.name.casefold() == claim.name.casefold() and fold_name(one.value) != fold_name(claim.value)
    )
    return entry.timestamp if any(since < one.since <= entry.timestamp for one in others) else since


def _is_related(profile: Profile, relation: str) -> bool:
    wanted = relation.casefold()
    return any(
        attribute.until is None and (attribute.value.casefold(), attribute.name.casefold()) == (wanted, RELATION)
        for attribute in profile.attributes
    )
