"""Tells orders from statements by grammatical form, in English, German, French and Spanish. Pure.

An order begins with an imperative verb, or with a phrase before one ("can you", "make sure", "let's"). The meaning of
the verb does not matter, so orders that offline mode cannot carry out are recognised too. A verb with the same form in
the imperative and the past ("put", "set", "cut") is a statement if the sentence names a past time.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold
from sleep.rules.pattern_files import compile_patterns

_FILE = Path(__file__).with_name("mood.toml")
# What a sentence tells by a form that no order has, with its accents, which folding would remove.
_TOLD_FORMS = ("past_fr", "past_es", "past_de", "past_en", "habit_de", "present_es", "thinks_aloud", "of_a_device")
# A French participle ends in "é" where the imperative has "e"; folding would remove the accent.
_FRENCH_TOLD = lazy_regex(r"^(?:[^\W\d_]+, )?[^\W\d_]{2,}é(?:e|s|es)?\b")
_FRENCH_DONE = lazy_regex(r"^(?:(?:c'est bon|ok|voilà|hop),? )?[^\W\d_]{3,}é (?:le|la|les|l'|mon|ma|mes) ?\w")
# "Paul a changé": a subject and its French verb.
_FRENCH_PERFECT = lazy_regex(
    r"^(?:[^\W\d_]+, )?[^\W\d_]+ (?:m'|l'|t')?(?:a|ont) [^\W\d_]+(?:é|u|i|it|is)e?s?\b"
    # "Léo a horreur des brocolis", "Marie a des allergies", of which "a" is no English article
    r"|^[^\W\d_]+ (?:en |y )?(?:a|ont|avait|avaient) (?:horreur|peur|envie|besoin|mal|faim|soif|froid|chaud|honte|tort"
    r"|raison|toujours|déjà|jamais|trop|très|son|sa|ses|des|du|les|une|\d+ ans)\b",
    re.IGNORECASE,
)


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    return compile_patterns("mood", tomllib.loads(_FILE.read_text(encoding="utf-8")))


def is_order(text: str) -> bool:
    """Return whether a sentence has the form of an order, with or without a polite preface."""
    forms = _patterns()
    folded = forms["preface"].sub("", fold(text).strip(" ¿¡"), count=1)
    if forms["frame"].match(folded):
        return True
    if "?" in text or tells_what_was_done(text) or tells_without_subject(text) or tells_in_french(text.strip()):
        return False
    ordered = any(forms[name].match(folded) for name in ("joined", "let_us", "verb_first"))
    return ordered and not forms["tells"].match(folded)


def tells_in_french(text: str) -> bool:
    """Return whether a French sentence tells by its participle what was done: "acheté un vélo", "Paul a changé"."""
    return _FRENCH_TOLD.match(text) is not None or _FRENCH_PERFECT.match(text) is not None


def is_participle_first(text: str) -> bool:
    """Whether a French sentence begins with what was done: "acheté le lait", of which "achète le lait" is the order."""
    return "?" not in text and _FRENCH_DONE.match(" ".join(text.split()).lower()) is not None


def tells_what_was_done(text: str) -> bool:
    """Return whether a sentence without a subject is about the past: "put my keys in the drawer this morning"."""
    forms, folded = _patterns(), fold(text).strip()
    if forms["lists"].search(folded):
        return False
    return forms["same_when_told"].match(folded) is not None and forms["over"].search(folded) is not None


def tells_without_subject(text: str) -> bool:
    """Return whether a sentence has a form that tells and never orders, though it names nobody who did it: "acheté un
    vélo", "vendí la moto", "Brille verloren", "trinke abends immer Tee", "the timer on the oven is broken"."""
    forms, plain = _patterns(), " ".join(text.split()).replace("’", "'").strip(" .!").lower()
    if "?" in plain or (forms["lists"].search(fold(plain)) and not forms["of_a_device"].search(plain)):
        return False
    return not forms["wanted"].search(plain) and any(forms[name].search(plain) for name in _TOLD_FORMS)


def has_others_do(text: str) -> bool:
    """Return whether a sentence orders that something else does something: "lass es regnen"."""
    return "?" not in text and _patterns()["causative"].match(fold(text).strip(" .!")) is not None
