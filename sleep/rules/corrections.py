"""Whether a sentence takes back or changes what was said before, and which earlier statement it puts right where no
single form of words tells. Pure.

What always holds: a statement puts right what it says is over, or else at most one other, the one it shares most
with; it has to say that something changed, and to share what it is about. To be about the same person is not enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from assistant.core.text import fold_text, lazy_regex
from sleep.rules.sentences import blank_foreign_text, expand_shorthand, split_sentences
from sleep.rules.statements import Statement, is_same_stem, parse_statement, stem_word
from sleep.rules.word_classes import classify_word

_LOOKED_AT = 2_000

_TAKES_BACK = lazy_regex(
    r"\b(?:scrap that|scratch (?:that|what|the)|strike that|(?:had|got) .{2,30} wrong|put you right|correction"
    r"|change of plans?|i was wrong|(?:i|we) got (?:\w+ ){1,4}wrong|i"
    r" misspoke|i meant|i mis(?:read|remembered)|forget what i (?:said|told)"
    r"|(?:scrap|ignore|forget) (?:that|what i (?:said|told))|i said .{2,40} but|i (?:told|said) you .{2,60} but"
    r"|that was wrong|that's wrong|not (?:true|right) any ?more|changed (?:my|our|his|her|their) minds?|turns? out"
    r"|turned out|no longer|any ?more|after all|instead|rather than|not .{1,30} (?:but|any ?more)|update on|has"
    r" changed|have changed|'s changed|changed (?:to|from)|(?:been|was|were|is|are|got|has|have|'s) (?:moved|pushed"
    r"|brought forward|put back|shifted|rescheduled|cancelled|canceled|postponed|swapped|replaced|renamed|called"
    r" off)|moved (?:to|from|back|forward|up)|put (?:up|down)|went (?:up|down)"
    r"|gone (?:up|down)|used to (?:be|have|live|work)|previously|until now|is now|are now|'s now|now (?:on|at|in"
    r"|with|it's|its|called|lives?|works?)|(?:is|are|'s|'re) (?:changing|moving|switching|swapping)|going (?:up|down)"
    r"|will now"
    r"|starting (?:from )?(?:next|this|\w+day)|(?:'s|has|have|is|are) gone\b|as of (?:today|now|next|this|\w+day)"
    r"|from now on"
    r"|nicht mehr|sondern|doch nicht|ne .{1,30} plus|plutôt|ya no|en vez de|ikke lenger|i stedet|不再|改成|改为"
    r"|もう.{1,15}(?:ない|ません)|変わ)"
    r"|^(?:(?:oh|no|wait|sorry|oops|ah|hang on|ok|and|so|but)[\s,.!:–-]+)*(?:(?:actually|oops|whoops|wait|sorry)"
    r"[\s,.!:–-]+|no[,.!:–-]+\s)\S+(?: \S+){2,}"
    r"|[,–-] not (?:the |an? |in |on |at |with |from |until |till )?[\w£$€.,:'-]+(?: [\w.,:'-]+){0,3}[.!]?$|,? not"
    r" (?:the |a |on the )?[£$€]?\d[\w.,:]*\b"
    r"|\b(?:isn't|aren't|wasn't|is not|are not|wasn't) .{2,50}(?:,| -|;| but) ?(?:it's|it is|he's|she's|they're|but"
    r"|its|we)\b|\b(?:it's|they're|he's|she's|is|are|on|at|in|with|we|i|he|she|they) .{1,40} now(?:[.!,;]|$|"
    r" instead| and\b)",
    re.IGNORECASE,
)
_ANNOUNCES = lazy_regex(
    r"^\W*(?:(?:oh|no|wait|sorry|oops|ah|hang on|ok|actually|well|right|change)[\s,.!:–-]*)*(?:scrap that"
    r"|scratch that|strike"
    r" that|correction|(?:change|changes) of plans?(?: (?:about|for|on|with) \w+(?: \w+){0,4})?"
    r"|i was wrong(?: about \w+(?: \w+){0,4})?"
    r"|forget what i said(?: about \w+(?: \w+){0,4})?|i (?:got|told you) (?:that|it|you) wrong|that was wrong"
    r"|that's wrong|not any ?more|i changed my mind|update)\W*$",
    re.IGNORECASE,
)


# Something takes the place of something, or ends.
_REPLACES = lazy_regex(
    r"\b(?:instead|any ?more|any longer|no longer|not .{1,40}(?:,| but) |rather than|taking over|takes? over"
    r"|took .{0,15}over"
    r"|(?:handed|gone|sent|given|went|taken|put) back|off the (?!phone|bus|top)|(?:taken|took|come|came|gone"
    r"|went) off|switch\w*"
    r"|swapp\w+|cancell?ed|replac\w+|ditch\w+|drop(?:s|ped|ping)|traded|went (?:for|with)|gone (?:for|over to|with)"
    r"|quit\w*"
    r"|leaving|has left|have left|stopp?\w*|finish\w*|gave up|given up|gave .{1,20} away|sold|moved?|moving|pushed"
    r"|changed?"
    r"|changing|scratch|scrap|is over|'s over"
    r"|(?:shan't|won't|not|aren't|isn't|stop) (?:be )?\w+ing|goodbye|turns? out|turned out|said .{1,40} but|wrong"
    r"|correction|actually|put you"
    r" right|new)\b",
    re.IGNORECASE,
)
_CHANGES = lazy_regex(
    r"\b(?:i (?:had|got) .{2,40} wrong|put you right|put that right|for the record|(?:handed|gone|sent) back"
    r"|taking over"
    r"|takes over|took (?:\w+ ){0,2}over|in future|in the future|from (?:tonight|today|tomorrow|now|april|next \w+|the"
    r" \d+\w*)\b|traded|swapped|switched|ditched|cancelled|canceled|gone (?:for|over to|with|up|down|back)"
    r"|went (?:for|with"
    r"|over to|back to)|quitting|leaving us|off the (?:table|list|menu)|taken (?:me|us|him|her|them) off|stopped the"
    r"|(?:shan't|won't|aren't|isn't|not) (?:be )?(?:doing|going|taking|having|coming|playing|working|seeing|using"
    r"|wearing"
    r"|moving|getting)|fell through|fallen through|moved (?:(?:me|us|him|her|them|my|our|his|the)\b"
    r"|(?:[\w']+ ){1,4}(?:to|from|into)\b)|changed (?:it|them"
    r"|my|our"
    r"|his|her|the)|have changed|(?:'s|is|are|'re|at|on|am|'m) (?:\S+ ){1,5}now\b|now (?:that|btw|by)|are changing|is"
    r" changing|scratch|goodbye|they've (?:put|moved|taken|changed|stopped)|(?:they|she|he|we) (?:put|moved|changed"
    r"|stopped|switched) (?:it|me|us|him|her|the|my|our|over)|date moved|said .{1,40} but|had .{1,30} wrong)",
    re.IGNORECASE,
)


# Whoever says so in so many words wants it kept.
_PLAINLY = lazy_regex(
    r"\b(?:scrap (?:that|what|the)|scratch (?:that|what|the)|strike that|correction|change of plans?|i was wrong"
    r"|(?:had|got) .{2,30} wrong|put you right|forget what i (?:said|told)|i (?:said|told you) .{2,40} but)\b"
    r"|^(?:no,? )?not (?!yet|now|really|sure|bad|today|tonight|that|this|me|so|too|much|again|quite|only|just|even"
    r"|always"
    r"|all|at all|in the|to)(?:the |in |on |at |with )?[\w'-]+(?: [\w'-]+)?(?:, |[.!]?$)",
    re.IGNORECASE,
)


def is_explicit_correction(own: str) -> bool:
    """Whether it says itself that it puts something right."""
    return bool(_PLAINLY.search(expand_shorthand(own)))


def is_correction(own: str) -> bool:
    """Whether a sentence says that something is not, or is no longer, what was said."""
    plain = expand_shorthand(own)
    return bool(_TAKES_BACK.search(plain) or _PLAINLY.search(plain))


def describes_change(said: str) -> bool:
    """Whether something has changed, or is to, by what is said: more than those that take back what was said."""
    plain = expand_shorthand(said)
    return any(form.search(plain) for form in (_TAKES_BACK, _PLAINLY, _CHANGES))


def describes_replacement(said: str) -> bool:
    """Whether something ends, or takes the place of something."""
    return bool(_REPLACES.search(expand_shorthand(said)))


def is_retraction(message: str) -> bool:
    """Whether a whole message is about what has changed: most of its sentences say so."""
    said = split_sentences(blank_foreign_text(message[:_LOOKED_AT]))
    return bool(said) and 2 * sum(
        is_correction(one.own_text) or announces_correction(one.own_text) for one in said
    ) >= len(said)


def announces_correction(own: str) -> bool:
    """Whether it says nothing but that what follows is a correction."""
    return bool(_ANNOUNCES.match(own))


_OWNED = lazy_regex(
    r"\b(\w+)'s (?!not\b|now\b|on\b|at\b|in\b|an?\b|the\b|my\b|no\b|just\b|(?:go|com|be|hav"
    r"|gett)ing\b|\w+ed\b)(\w+)"
)
# A thing of a thing, as what is told of or as what was changed: the boiler code is, replaced the boiler filter.
_COMPOUNDS = tuple(
    map(
        lazy_regex,
        (
            r"(?:^|\b(?:the|my|our|his|her|their) )(\w+) (?!\w+ed\b)(\w+) (?:is|are|was|were|has|have|had)\b",
            r"\b(?:chang|replac|swapp|switch|renew|mov)(?:e|ed|ing) (?:the|my|our|his|her|their) (\w+) (?!\w+ed\b)(\w+)"
            r"(?=[.,;!?]|$| (?:on|in|at|to|by|for|with|from|last|this|and)\b)",
        ),
    )
)
# What is named after these is over with.
_DONE_WITH = lazy_regex(
    r"\b(?:(?:stopped|finished|done) (?:with|seeing|using|taking|the|my|our)|quit|cancell?ed|ditched"
    r"|gave up|given up"
    r"|sold|off the|no more|goodbye(?: to)?) (?:the |my |our |his "
    r"|her )?(?P<what>[\w'’.-]+(?: [\w'’-]+){0,2}?)(?=[,.;!]| and\b| in\b"
    r"| on\b| last\b| for\b|$)"
)
# Somebody who moves, or moves something: what else is known of them stays, and so does what is known of the place.
_MOVER = lazy_regex(
    r"(?:^|[.!?,;:] |\b(?:that|because|since|and|but|so) )(?:(?:[Mm]y|[Oo]ur) (?P<whose>[\w-]+) )?"
    r"(?P<who>[A-ZÀ-Þ][\w-]+)(?: and [A-ZÀ-Þ][\w-]+)?(?: has| have| had| is| are|'s)?(?: just| now| finally| recently)?"
    r" (?:moved|moving|moves|changed|switched|replaced|swapped)\b(?:[^.!?]*? to (?P<where>[A-ZÀ-Þ][\w-]+))?"
)
CORRECTION_THRESHOLD = 2.05
# A word that one of those known shares, or two, or more: what many share tells nothing of which is meant.
_WEIGHT_OF = (1.3, 0.8, 0.4)
_ANOTHER_VALUE = 0.7
_IN_PLACE_OF = 0.8
_LONGEST = 10_000
# Who says so much speaks of too many things.
_RAMBLING = 20
_KINDS = ("number", "time", "day", "month")
# Words that are said of anything: to share them is to share nothing.
_OF_ANYTHING_WORDS = """
want need come take make bring put see keep find seem look feel turn start begin end stay leave hold pound dollar euro
quid hour minute second half morning evening afternoon night weekend weekday place bit lot way kind sort side own
whole same other next last first good bad new old big small long short great little nice people everybody today
tonight better best worse more less slot tomorrow yesterday soon later early late please thank reply ask tell talk
speak hear say cost pay price number man woman boy girl guy lady kid child never again always ever time year month
week day date plan home house room door street town city back away round down over under every instead
"""
_OF_ANYTHING = frozenset(map(stem_word, _OF_ANYTHING_WORDS.split()))


def find_corrected(new: Statement, known: Sequence[tuple[str, Statement]], *, only_ended: bool = False) -> list[str]:
    """The ids of the statements, of those that are `known` in the order they were said, that are no longer so: all that
    say what the new one says is over, or else, unless `only_over`, the one it shares most with."""
    if not describes_change(new.text):
        return []
    over = [one for one, old in known if _is_over(new, old)]
    if over or only_ended or new.says_additional or len(new.content_stems) > _RAMBLING:
        return over
    movers = _movers(new)
    shared = {one: _shared(new.content_stems, old) - _of_other_things(new, old) - movers for one, old in known}
    often = Counter(word for words in shared.values() for word in words)
    found, most = "", (CORRECTION_THRESHOLD, -_LONGEST)
    for one, old in known:
        told = sum(_WEIGHT_OF[min(often[word], len(_WEIGHT_OF)) - 1] for word in shared[one])
        differing = any(_differ(new.values_of_kind(kind), old.values_of_kind(kind)) for kind in _KINDS)
        score = told + _ANOTHER_VALUE * differing + _IN_PLACE_OF * describes_replacement(new.text)
        if shared[one] and (score, -len(old.content_stems)) >= most:
            found, most = one, (score, -len(old.content_stems))
    return [found] if found else []


def _shared(words: frozenset[str], old: Statement) -> set[str]:
    return {word for word in old.content_stems - _OF_ANYTHING if any(is_same_stem(word, other) for other in words)}


def _of_other_things(new: Statement, old: Statement) -> set[str]:
    """Those of whom another thing is said in each: Ada's party, Ada's swimming; the boiler code, the boiler filter."""
    mine, theirs = _things(new), _things(old)
    return {
        stem_word(who)
        for who in mine.keys() & theirs.keys()
        if not is_same_stem(stem_word(mine[who]), stem_word(theirs[who]))
    }


def _things(one: Statement) -> dict[str, str]:
    """Of whom, or of what, what is named."""
    text, telling = fold_text(one.text), one.content_stems - _OF_ANYTHING
    parts = [part for form in _COMPOUNDS for part in form.findall(text) if {*map(stem_word, part)} <= telling]
    return dict([*parts, *_OWNED.findall(text)])


def _movers(new: Statement) -> set[str]:
    """Those who move, and where to, as far as they are names. A word of which something is known is a thing: choir."""
    names = set()
    for found in _MOVER.finditer(new.text):
        who, where = found["who"].lower(), found["where"]
        if found["whose"] or not classify_word(who):
            names |= {stem_word(fold_text(word)) for word in (who, where) if word}
    return names


def _is_over(new: Statement, old: Statement) -> bool:
    """Whether it says what the new one says is no longer so, of the same."""
    for gone in (*new.replaced, *map(parse_statement, _DONE_WITH.findall(fold_text(new.text)))):
        if (gone.content_stems & old.content_stems or gone.values & old.values) and (
            gone.content_stems <= old.content_stems and gone.values <= old.values
        ):
            return bool(_shared(new.content_stems | gone.content_stems, old) or new.values & (old.values - gone.values))
    return False


def _differ(new: frozenset[str], old: frozenset[str]) -> bool:
    return bool(new and old) and not new <= old
