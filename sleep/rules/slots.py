"""Matters of which there is one at a time: where somebody lives, whom they work for, what a code is. Pure.

What always holds: a slot is the matter of one subject; two statements fill the same slot only where subject and matter
are the same, so that the codes of two doors, the homes of two sisters are never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.relations import SINGLE_RELATIONS

SELF_SUBJECT = "self"
PLACE_ATTRIBUTE = "place"
_SELF_WORDS = """
今 现在 我 我们 私 僕 俺 i we i'm we're ive i've we've me us user ich wir je j nous yo jeg vi
"""
_SELF = frozenset(_SELF_WORDS.split())
_IGNORED_WORDS = """
new the a an my our her his their it's now actually so well yes no ok just also still currently and but that this user
user's users has have
"""
_IGNORED = frozenset(_IGNORED_WORDS.split())

_END = (
    r"(?=[,.;:!?(](?!\w)|$| (?:since|because|and|but|now|for|in \d+|in (?:the )?(?:spring|summer|autumn|fall|winter)"
    r"|until|as of|from now|with|these|any ?more|again|not|instead|last|this|next|so|after|seit|depuis|desde|siden)\b)"
)
_VALUE = rf"(?P<value>\S(?:[^,.;!?]|[.,](?=\w)){{0,60}}?){_END}"
_HOME = (
    rf"\b(?:lives?|living|am based|are based|is based|resides?|stays?|staying) (?:in|at|on) {_VALUE}",
    rf"\b(?:moved|moving|relocated|relocating|move)(?: house| home| back)? (?:from [^,.;]{{1,40}}? )?to {_VALUE}",
    rf"\b(?:wohnen?|wohnt|lebe|leben|lebt) (?:jetzt |nun )?(?:in|bei) {_VALUE}",
    r"\b(?:ziehen?|zog|gezogen|sind|bin) (?:von \w+ )?nach (?P<value>\w+)(?: (?:um)?gezogen)?",
    rf"(?:\bj'|\b)(?:habite|habitons|vis) (?:maintenant )?(?:a|en|au) {_VALUE}",
    rf"\bdemenage a {_VALUE}",
    rf"\b(?:vivo|vive|vivimos) (?:ahora )?en {_VALUE}",
    rf"\bme mude a {_VALUE}",
    rf"\bbor (?:na )?(?:i|pa) {_VALUE}",
    rf"\bflytt(?:et|er) (?:fra \w+ )?til {_VALUE}",
    r"(?:^|(?<=[，。,]))(?P<who>[^，。,住搬现]{0,6})(?:现在)?(?:住在|搬到了?)(?P<value>[^，。,了不]{1,12})",
    r"(?:(?P<who>[^、。]{1,6})は)?(?:今は)?(?P<value>[^、。はが]{1,12})に(?:住ん|引っ越)",
)
_WORK = (
    rf"\b(?:works?|working|worked) (?:at|for) {_VALUE}",
    rf"\b(?:joined|started (?:a new job )?(?:at|with)|got (?:a|the) (?:new )?job (?:at|with)"
    rf"|(?:have )?a new job at) {_VALUE}",
    rf"\b(?:arbeite|arbeiten|arbeitet) (?:jetzt )?bei {_VALUE}",
    rf"\btravaille (?:maintenant )?(?:chez|pour) {_VALUE}",
    rf"\b(?:trabajo|trabaja) (?:ahora )?(?:en|para) {_VALUE}",
    rf"\bjobber (?:na )?(?:i|pa|hos|for) {_VALUE}",
    r"(?:^|(?<=[，。,]))(?P<who>[^，。,在现]{0,6})(?:现在)?在(?P<value>[^，。,]{1,12})(?:工作|上班)",
)
_FORMS = tuple(
    (matter, lazy_regex(form))
    for matter, forms in {
        "home": _HOME,
        "work": _WORK,
        "job": (rf"\b(?:works?|working) as (?:an? )?{_VALUE}",),
        "drives": (rf"\b(?:drives?|driving) (?:an?|the|my|our) {_VALUE}",),
        "age": (
            rf"\b(?:is|am|are|turned|turns|just turned|has turned|'s"
            rf"|'m) (?:now )?(?P<value>\d{{1,3}})(?: years? old)?{_END}",
        ),
    }.items()
    for form in forms
)
_MATTER_WORDS = """
number phone mobile address code pin password passcode price rent salary budget deadline birthday email name
nickname combination fee cost limit dose dosage size weight height plate deposit mortgage interest wifi
manager builder plumber electrician cleaner vet gp solicitor teacher tutor coach headteacher childminder nanny
owner captain colour color slot start capacity target goal pickup pick-up best-friend friend's broker host
surgery nummer adresse miete gehalt passwort preis loyer prix mot salaire alquiler precio direccion contrasena
husleie lonn pris passord kode
"""
_SINGLE_MATTERS = SINGLE_RELATIONS | frozenset(_MATTER_WORDS.split())
_NOUN = "|".join(re.escape(noun) for noun in sorted(_SINGLE_MATTERS))
_IS = (
    r"(?:is now|are now|is|are|was changed to|has changed to|changed to|went up to|has gone up to|goes up to"
    r"|went down to"
    r"|has gone down to|costs|will be|has to be|has been set to|was set to|ist jetzt|ist|est maintenant|est|es ahora|es"
    r"|er na|er|heisst|se llama|s'appelle|heter|called)"
)
_MATTER = lazy_regex(
    rf"(?:^|(?<=[,.;:!?] )|(?<=and )|(?<=but )|(?<=so )|(?<=now )|(?<=actually )|(?<=scrap that )|(?<=, ))"
    rf"(?P<head>(?:(?:my|our|the|his|her|their|mein|meine|unser|unsere|die|der|das|mon|ma|le|la|el|mi|min|mitt)\b ?)?"
    rf"(?:[\w'-]+ ){{0,4}}?(?P<noun>{_NOUN}))(?:'s name)?(?: {_IS}|'s) (?:called |now |named )?{_VALUE}"
)
_PLACED = lazy_regex(
    rf"(?: (?:is|are|will be|has moved to|takes? place)|'s) (?:now )?(?:at|in) (?!\d|the (?:morning"
    rf"|evening)){_VALUE}"
)
_FAVOURITE = lazy_regex(rf"\bfavou?rite (?P<what>[\w -]{{1,30}}?) (?:is|are|has to be) (?:now )?{_VALUE}")
_PREFERS = lazy_regex(
    rf"\bprefers? (?P<more>[^,.;!?]{{1,40}}?) (?:to|over|rather than) (?P<less>[^,.;!?]{{1,40}}?){_END}"
)
_CLAUSE = lazy_regex(r"[,.;:!?。，] ?")
# "Jonas, my best friend from school, lives ...": who they are stands between the name and the verb.
_WHO_THEY_ARE = lazy_regex(
    r"^([A-Z][\w'-]+(?: [A-Z][\w'-]+)?), (?:my|our|his|her|their|the|an?) [^,.;!?]{1,60}, (?=\w+s\b)"
)
_LONGEST_SUBJECT = 40
_NO_NAME = lazy_regex(
    r"(?:on|in|at|off|out|up|down|back|not|no|so|very|too|gone|coming|going|being|getting|having|taking|seeing|from"
    r"|with|over"
    r"|under|well|ill|sick|fine|better|worse|tired|old|dead|room|house|\w+ing|\w+ed|all|always|never|still|just"
    r"|really|a|an|the"
    r"|my|our|his|her)\b(?! (?:mr|mrs|ms|dr|guy|man|woman)\b)|.*\b(?:is|isn't|are|was|wasn't|has|hasn't|will|won't)\b"
)
_FRONT = lazy_regex(r"^(?:the|a|an|now|in|at|on|to|about|around) ")
_OF_TIME = lazy_regex(
    r"^(?:on |at |the )*(?:\d|mon|tue|wed|thu|fri|sat|sun|next|the \d|another|half|noon|jan|feb|mar|apr|may|jun|jul"
    r"|aug|sep|oct|nov|dec)"
)


@dataclass(frozen=True, slots=True)
class AttributeSlot:
    """`value` is what is said of the `matter` of `subject`, folded."""

    attribute: str
    subject: str
    value: str


def find_slots(text: str) -> list[AttributeSlot]:
    """What a statement fills, main clause by main clause."""
    text = _WHO_THEY_ARE.sub(r"\1 ", text)
    folded = " ".join(fold_text(text[:1_000]).replace("’", "'").split())
    return [one for one in dict.fromkeys(_slots(folded)) if not _is_no_name(one, text)]


def _is_no_name(slot: AttributeSlot, text: str) -> bool:
    """Whether it says of somebody how they are, not who they are: "Dad's on the mend" names no father."""
    if slot.attribute.removeprefix("of ") not in SINGLE_RELATIONS:
        return False
    first = slot.value.split(" ")[0]
    named = re.search(rf"(?<!\w){re.escape(first)}(?!\w)", text, re.IGNORECASE)
    return _NO_NAME.match(slot.value) is not None or (named is not None and named[0].islower() and not text.islower())


def _slots(folded: str) -> Iterator[AttributeSlot]:
    for matter, form in _FORMS:
        for found in form.finditer(folded):
            value = _bare(found["value"])
            if not value or (matter in ("home", "work") and _OF_TIME.match(value)):
                continue
            who = found.groupdict().get("who") or _before(folded, found.start())
            subject = _subject(who)
            if matter == "home" and "mov" in found[0] and subject != SELF_SUBJECT and not _is_somebody(who):
                continue
            yield AttributeSlot(matter, subject, value)
    for found in _PLACED.finditer(folded):
        words = [word for word in _before(folded, found.start()).split() if word not in _IGNORED]
        yield AttributeSlot(
            PLACE_ATTRIBUTE,
            " ".join(word.removesuffix("'s") for word in words[-3:]) or SELF_SUBJECT,
            _bare(found["value"]),
        )
    for found in _FAVOURITE.finditer(folded):
        yield AttributeSlot(
            f"favourite {found['what'].strip()}", _subject(_before(folded, found.start())), _bare(found["value"])
        )
    for found in _PREFERS.finditer(folded):
        both = "|".join(sorted((found["more"], found["less"])))
        yield AttributeSlot(f"prefers {both}", _subject(_before(folded, found.start())), found["more"])
    for found in _MATTER.finditer(folded):
        owner = " ".join(word for word in found["head"].split() if word not in _IGNORED)
        yield AttributeSlot(f"of {found['noun']}", owner, _bare(found["value"]))


def _before(folded: str, place: int) -> str:
    """What stands before a verb in its clause."""
    return _CLAUSE.split(folded[max(0, place - _LONGEST_SUBJECT) : place])[-1]


def _subject(who: str) -> str:
    words = [word for word in re.findall(r"[\w'-]+", who) if word not in _IGNORED]
    if not words or words[-1] in _SELF or words[0] in _SELF:
        return SELF_SUBJECT
    return str(words[-1]).removesuffix("'s")


def _is_somebody(who: str) -> bool:
    """Not a meeting that was moved to another room."""
    words = [word for word in re.findall(r"[\w'-]+", who) if word not in _IGNORED]
    return (len(words) == 1 and not re.search(r"\b(?:the|my|our)\b", who)) or bool(
        re.search(
            r"\b(?:sister|brother|mum|mom|mother|dad|father|son|daughter|friend|aunt|uncle|cousin|grand\w+|boss"
            r"|parents)\b",
            who,
        )
    )


def _bare(value: str) -> str:
    return _FRONT.sub("", value.strip().strip("\"'“”")).strip()
