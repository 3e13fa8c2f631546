"""What is said around an order to put something on a list, and is none of the things: "add milk to shopping, the kids
drank it all", "put batteries on the list before I forget". Pure.

What always holds: the words of a person are stored whole whatever is left out here, and what is left names a thing.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold, says
from assistant.models.offline.lists import names_list

# Why, at the end.
_WHY = lazy_regex(
    r",? (?:cos |cuz |coz |because |since (?=we|i|the)|as (?=we|i|it|they|there)|before (?:i|we) forget"
    r"|otherwise |or else |so (?:that )?(?:we|i) (?:don'?t|can|have)|weil |bevor ich|ehe ich|bevor wir"
    r"|da wir|damit (?:ich|wir)|sonst |avant qu|parce qu|car (?=on |je |j'|il |elle |nous |les |y )|puisqu|vu qu|sinon "
    r"|porque |antes de que|que (?=se |no |ya |nos |me )|ya que|si no ).*$"
)
_THANKS = lazy_regex(
    r",? (?:(?:please|pls|bitte|stp|svp|porfa|por favor),? )?(?:(?:many |vielen |mille |muchas )?"
    r"(?:thanks|thank you|thx|cheers|merci|danke|gracias))\b[^,:;]*$"
)
# "I was thinking we should get a new kettle, put it on the list"
_THOUGHT = lazy_regex(
    r"^(?:(?:hey|hi|so|ok|well|oh|also|alors|bon|bueno|oye|du)[, ]+)*(?:"
    r"(?:i was (?:just )?thinking|i think|i guess|i reckon|maybe|perhaps)(?: that)?,? (?:we|i) (?:should|could|ought to"
    r"|need to|might)(?: (?:get|buy|have|order))?"
    r"|(?:je me disais|je pense|je crois|faudrait|il faudrait) qu(?:e |')(?:on|nous|je|j') ?"
    r"(?:devrait |devrions |pourrait )?(?:achet\w+|prenne|prendre|prenions)"
    r"|(?:estaba pensando|creo|pienso) que (?:deberiamos|podriamos|tendriamos que|habria que) (?:comprar|coger|traer)"
    r") (?=\w)"
)
# A clause with a subject and its verb tells something.
_TELLS = lazy_regex(
    r"^(?!il (?:me |nous |en )?(?:faut|manque|reste)\b)(?:(?:and |but |und |aber |et |mais |y |pero )?"
    r"(?:(?:i|we|he|she|they|you|it)(?:'(?:m|re|s|ve|ll|d))? \w+|(?:it|that|there)'s \w+|you'?re \w+"
    r"|(?:ich|wir|er|sie|es|man) \w+|(?:je |j'|on |nous |il |elle |ils |elles |c'est |ca |tu |t'es )\w+"
    r"|(?:ya|se|nos|me) (?:no )?(?:ha|han|he|hemos|nos|me|lo|la|le|acab\w+|queda\w*|falta\w*) ?\w*"
    r"|(?:the|my|our|der|die|das|mein\w*|unser\w*|le|la|les|mon|ma|mes|nos|el|los|las|mi|mis|nuestr\w+)"
    r" (?:[^\W\d_]+ ){1,2}(?:is|are|was|were|has|have|had|drank|ate|need\w*|want\w*|keep\w*|came|come|comes|love\w*"
    r"|like\w*|finished|used|broke|ran|ist|sind|war|waren|hat|haben|hatte\w*|braucht|brauchen|kommt|kommen|will|wollen|mag|mogen"
    r"|est|sont|etait|a|ont|vient|viennent|veut|veulent|adore\w*|aime\w*|es|son|esta|estan|era|ha|han|viene\w*"
    r"|quiere\w*|necesita\w*|bebio|bebieron|comio|comieron))\b)"
)
# Behind a thing also without its article: "milk, kids drank it all".
_NOUN_TELLS = lazy_regex(
    r"^[^\W\d_]+ (?:[^\W\d_]+ )?(?:is|are|was|were|has|have|had|drank|ate|needs|wants|came|broke|haben|hat|sind|ist"
    r"|braucht|brauchen|kommt|kommen|sont|ont|vient|viennent|han|bebieron|comieron|estan)\b"
)
# "It Follows" is a film.
_TITLE = lazy_regex(r"\s[A-ZÀ-Ý]")


def without_chatter(text: str) -> str:
    """An order to put something on a list, without why, thanks and how one came to think of it; any other text as it
    is."""
    folded = fold(text)
    if "?" in text or not says("puts", folded) or not names_list(text):
        return text
    for pattern in (_WHY, _THANKS):
        if (match := pattern.search(fold(text))) and names_list(text[: match.start()]):
            text = text[: match.start()]
    match = _THOUGHT.match(fold(text))
    return text[match.end() :] if match else text


def without_told(clauses: Sequence[str]) -> list[str]:
    """The clauses that name things, without those that only tell something; all of them where none would be left."""
    naming = [
        clause
        for place, clause in enumerate(clauses)
        if _TITLE.search(clause) or not (_TELLS.match(fold(clause)) or (place and _NOUN_TELLS.match(fold(clause))))
    ]
    return naming or list(clauses)
