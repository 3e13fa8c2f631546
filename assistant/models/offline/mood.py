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
# A French participle ends in "é" where the imperative has "e"; folding would remove the accent.
_FRENCH_TOLD = lazy_regex(r"^(?:[^\W\d_]+, )?[^\W\d_]{2,}é(?:e|s|es)?\b")
# "Paul a changé": a subject and its French verb.
_FRENCH_PERFECT = lazy_regex(
    r"^(?:[^\W\d_]+, )?[^\W\d_]+ (?:m'|l'|t')?(?:a|ont) [^\W\d_]+(?:é|u|i|it|is)e?s?\b", re.IGNORECASE
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
    if "?" in text or tells_what_was_done(text) or _tells_in_french(text.strip()):
        return False
    ordered = any(forms[name].match(folded) for name in ("joined", "let_us", "verb_first"))
    return ordered and not forms["tells"].match(folded)


def _tells_in_french(text: str) -> bool:
    return _FRENCH_TOLD.match(text) is not None or _FRENCH_PERFECT.match(text) is not None


def tells_what_was_done(text: str) -> bool:
    """Return whether a sentence without a subject is about the past: "put my keys in the drawer this morning"."""
    forms, folded = _patterns(), fold(text).strip()
    if forms["lists"].search(folded):
        return False
    return forms["same_when_told"].match(folded) is not None and forms["over"].search(folded) is not None
