"""Whether a summary is in the language of its conversation (F24): by script, and within the Latin one by small words.
Pure.

What always holds: only what clearly is another language is refused. Where it cannot be told (too few words, names and
code only, a language unknown here), it is taken to be the same: a wrong refusal costs a good summary.
"""

from __future__ import annotations

import re
from collections import Counter

from assistant.core.text import lazy_regex
from sleep.compaction.summary import Material

_SCRIPTS = (
    ("cyrillic", lazy_regex(r"[\u0400-\u04ff]")),
    ("arabic", lazy_regex(r"[\u0600-\u06ff]")),
    ("hebrew", lazy_regex(r"[\u0590-\u05ff]")),
    ("greek", lazy_regex(r"[\u0370-\u03ff]")),
    ("kana", lazy_regex(r"[\u3040-\u30ff]")),
    ("hangul", lazy_regex(r"[\uac00-\ud7af]")),
    ("han", lazy_regex(r"[\u3400-\u9fff]")),
    ("devanagari", lazy_regex(r"[\u0900-\u097f]")),
    ("thai", lazy_regex(r"[\u0e00-\u0e7f]")),
    ("latin", lazy_regex(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")),
)
# One character of these says about as much as three Latin letters.
_DENSE = frozenset({"kana", "hangul", "han"})
# Code, addresses, paths and identifiers are the same in every language.
_NOT_WORDS = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]*`|(?<![!-~])[!-~]*[\d/\\@_<>{}=][!-~]*", re.DOTALL)
_STOP_WORDS = {
    "en": "the and of to in is was that for with on it as are be this have from they you he she were had not but",
    "de": "der die das und ist nicht ein eine ich zu mit sich auf für war den von im dem auch es hat sie wird sind",
    "fr": "le la les et est une un des du que pour dans pas sur avec il elle ce cette qui au été sont nous vous plus",
    "es": "el la los las y es una un que por para con no se su del en lo como más está fue son pero muy sus al",
    "it": "il la che di e è un una per non con del della sono gli i le si da nel anche ha più alla come questo",
    "pt": "o a os as e é um uma que de para com não se do da em por mais foi são ao na no sua como está muito",
    "nl": "de het een en van is dat niet in op te zijn met voor was aan er ook als maar bij naar heeft hij zij",
    "no": "og er det i på en til som av med for ikke jeg har den vi å var et hun han skal kan fra også ble",
    "sv": "och är det i på en till som av med för inte jag har den vi att var ett hon han ska kan från också blev",
    "da": "og er det i på en til som af med for ikke jeg har den vi at var et hun han skal kan fra også blev",
    "fi": "ja on ei se että oli hän mutta kun ovat myös jos tai niin kuin minä ole hänen joka sen olen vielä",
    "pl": "i w na się nie jest z do to że a o jak ale po co tak za od czy już tylko jego jej są był była",
    "cs": "a v na se je že to s z do o ale jak po tak za od by si pro jsem jsou byl byla jeho které",
    "hu": "a az és hogy nem is egy van meg de ez volt csak már mint ha vagy majd még azt ki lesz nagyon",
    "ro": "și în de la cu nu este o un pe că a din pentru mai care sunt ce fi au dar sau am fost",
    "tr": "ve bir bu da de için ile çok ne ben o var mi gibi daha değil ama sonra kadar olarak olan",
    "id": "yang dan di ini itu dengan untuk tidak dari dalam akan pada ke saya ada juga sudah bisa kami adalah",
    "vi": "và là của có không được cho một này với trong đã các người tôi những khi để ở thì cũng",
}
_STOPS = {language: frozenset(words.split()) for language, words in _STOP_WORDS.items()}
# Languages that share most of their small words are taken for one.
_ALIKE = (frozenset({"no", "da", "sv"}), frozenset({"es", "pt", "it"}), frozenset({"pl", "cs"}))
_ROLES = ("user", "assistant")
_LOOKED_AT = 20_000
_OF_A_ROW = 2_000
_ENOUGH_CHARACTERS = 20
_MOST_OF_IT = 0.5
# A summary with at least this share of the conversation's script in it is no summary in another script.
_SOME_OF_IT = 0.15
_ENOUGH_STOPS = 6
_CLEARLY = 1.5


def same_language(text: str, material: Material) -> bool:
    """Whether the summary is in the language of the person or, where they write in two, of the assistant."""
    mine = _prose(text)
    spoken = [_prose(_said(material, role)) for role in _ROLES]
    shares = _shares(mine)
    scripts = {script for one in spoken if (script := _main(_shares(one)))}
    if not shares or not scripts:
        return True
    if all(shares.get(script, 0.0) < _SOME_OF_IT for script in scripts):
        return False
    if _main(shares) != "latin" or "latin" not in scripts:
        return True
    ours = _language(mine)
    known = {language for one in spoken if (language := _language(one))}
    return ours is None or not known or any(_alike(ours, language) for language in known)


def _said(material: Material, role: str) -> str:
    """Words of one side, some of each message, the newest messages first."""
    return " ".join(row.content[:_OF_A_ROW] for row in reversed(material.rows) if row.role == role)[:_LOOKED_AT]


def _prose(text: str) -> str:
    return _NOT_WORDS.sub(" ", text[:_LOOKED_AT])


def _shares(text: str) -> dict[str, float]:
    """The share of each script in a text; nothing where there are too few letters to tell."""
    counts = {name: len(form.findall(text)) * (3 if name in _DENSE else 1) for name, form in _SCRIPTS}
    if counts["kana"] > 0.1 * (counts["kana"] + counts["han"]):
        # Japanese is written with both; Chinese with one of them only.
        counts["kana"] += counts["han"]
        counts["han"] = 0
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} if total >= _ENOUGH_CHARACTERS else {}


def _main(shares: dict[str, float]) -> str | None:
    return next((name for name, share in shares.items() if share > _MOST_OF_IT), None)


def _language(text: str) -> str | None:
    """The language whose small words the text has by far the most of; None where that is not clear."""
    words = Counter(re.findall(r"[^\W\d_]+", text.casefold()))
    counts = sorted(((sum(words[w] for w in stops), language) for language, stops in _STOPS.items()), reverse=True)
    best, language = counts[0]
    rival = next((count for count, other in counts[1:] if not _alike(language, other)), 0)
    return language if best >= _ENOUGH_STOPS and best >= _CLEARLY * max(1, rival) else None


def _alike(one: str, other: str) -> bool:
    return one == other or any({one, other} <= group for group in _ALIKE)
