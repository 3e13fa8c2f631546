"""Whether a sentence takes back or changes what was said before. Pure."""

from __future__ import annotations

import re

from sleep.sentences import sentences
from sleep.voice import own_voice

_LOOKED_AT = 2_000

_TAKES_BACK = re.compile(
    r"\b(?:scrap that|strike that|correction|change of plans?|i was wrong|(?:i|we) got (?:\w+ ){1,4}wrong|i"
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
    r"|^(?:(?:oh|no|wait|sorry|oops|ah|hang on|ok|and|so|but)[\s,.!:–-]+)*(?:actually|oops|whoops|wait|sorry"
    r"|no)[\s,.!:–-]+\S+(?: \S+){2,}"
    r"|[,–-] not (?:the |an? |in |on |at |with |from |until |till )?[\w£$€.,:'-]+(?: [\w.,:'-]+){0,3}[.!]?$|,? not"
    r" (?:the |a |on the )?[£$€]?\d[\w.,:]*\b"
    r"|\b(?:isn't|aren't|wasn't|is not|are not|wasn't) .{2,50}(?:,| -|;| but) ?(?:it's|it is|he's|she's|they're|but"
    r"|its|we)\b|\b(?:it's|they're|he's|she's|is|are|on|at|in|with|we|i|he|she|they) .{1,40} now(?:[.!,;]|$|"
    r" instead| and\b)",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"^\W*(?:(?:oh|no|wait|sorry|oops|ah|hang on|ok|actually)[\s,.!:–-]*)*(?:scrap that|strike that|correction"
    r"|change of plans?|i was wrong(?: about \w+(?: \w+){0,4})?"
    r"|forget what i said(?: about \w+(?: \w+){0,4})?|i (?:got|told you) (?:that|it|you) wrong|that was wrong"
    r"|that's wrong|not any ?more|i changed my mind|update)\W*$",
    re.IGNORECASE,
)


def corrects(own: str) -> bool:
    return bool(_TAKES_BACK.search(own))


def takes_back(message: str) -> bool:
    """Whether a whole message is about what has changed: most of its sentences say so."""
    said = sentences(own_voice(message[:_LOOKED_AT]))
    return bool(said) and 2 * sum(corrects(one.own) or announces(one.own) for one in said) >= len(said)


def announces(own: str) -> bool:
    """Whether it says nothing but that what follows is a correction."""
    return bool(_ANNOUNCES.match(own))
