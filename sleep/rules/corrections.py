"""Whether a sentence takes back or changes what was said before. Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from sleep.rules.sentences import sentences
from sleep.rules.shorthand import spelled_out
from sleep.rules.voice import own_voice

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


def corrects_plainly(own: str) -> bool:
    """Whether it says itself that it puts something right."""
    return bool(_PLAINLY.search(spelled_out(own)))


def corrects(own: str) -> bool:
    """Whether a sentence says that something is not, or is no longer, what was said."""
    plain = spelled_out(own)
    return bool(_TAKES_BACK.search(plain) or _PLAINLY.search(plain))


def tells_of_change(said: str) -> bool:
    """Whether something has changed, or is to, by what is said: more than those that take back what was said."""
    plain = spelled_out(said)
    return any(form.search(plain) for form in (_TAKES_BACK, _PLAINLY, _CHANGES))


def replaces(said: str) -> bool:
    """Whether something ends, or takes the place of something."""
    return bool(_REPLACES.search(spelled_out(said)))


def takes_back(message: str) -> bool:
    """Whether a whole message is about what has changed: most of its sentences say so."""
    said = sentences(own_voice(message[:_LOOKED_AT]))
    return bool(said) and 2 * sum(corrects(one.own) or announces(one.own) for one in said) >= len(said)


def announces(own: str) -> bool:
    """Whether it says nothing but that what follows is a correction."""
    return bool(_ANNOUNCES.match(own))
