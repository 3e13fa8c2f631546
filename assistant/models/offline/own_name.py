"""What somebody says they are called ("Hi, I am Lena", "nenn mich Tom", "je m'appelle Zoé", "me llamo Ana"), and the
question for it. Pure.

What always holds: "I am tired", "Ich bin müde" and "call me back" name nobody. Where only "I am" stands before it, a
name is written with a capital; in German, where every noun is, a greeting stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from assistant.core.quoting import QuotedMessage
from assistant.core.text import fold_text, lazy_regex
from assistant.core.time_pieces import find_times
from assistant.models.offline.targets import content_words
from sleep.rules.sentences import split_sentences

_WORD = r"[^\W\d_][^\W\d_'’-]*(?:['’-][^\W\d_]+)*"
_NAME = rf"(?P<name>{_WORD}(?: {_WORD}){{0,2}})"
_CAPITAL = (
    r"(?P<name>(?-i:[A-ZÀ-ÖØ-Þ])[^\W\d_]+(?:['’-][^\W\d_]+)*(?: (?-i:[A-ZÀ-ÖØ-Þ])[^\W\d_]+(?:['’-][^\W\d_]+)*){0,2})"
)
_GREETING = (
    r"(?:(?:hi|hello|hey|hallo|moin|servus|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|coucou|hola|buenas"
    r"|buenos d[ií]as|good (?:morning|evening|afternoon))(?: there| you)?[\s,.!]+)"
)
_BEHIND = (
    r"(?:,? (?:please|bitte|s'il (?:te|vous) pla[iî]t|por favor|nice to meet you|freut mich|enchantée?|mucho gusto))?"
)
# What says that a name follows, however that is written.
_NAMED = lazy_regex(
    rf"(?:{_GREETING})?(?:(?:and|und|et|y|please|bitte|just|so|by the way|übrigens|au fait|por cierto),? )?(?:"
    r"(?:my|the) name(?:'s| is)(?: actually)?|i(?:'m| am) (?:called|named)"
    r"|(?:you (?:can|may|could) |(?:people|everyone|friends|they) )?call me"
    r"|mein (?:vor)?name (?:ist|lautet)|ich hei(?:ß|ss)e|(?:nenn|nennt|nennen sie) mich|man nennt mich|alle nennen mich"
    r"|je m'appelle|mon (?:pré)?nom (?:est|c'est)|appelle[sz]?[- ]moi|(?:tu peux|vous pouvez) m'appeler"
    r"|on m'appelle|moi,? c'est"
    r"|me llamo|mi nombre es|ll[aá]m[ae]me|puedes? llamarme|me (?:llaman|dicen)"
    rf") {_NAME}{_BEHIND}",
    re.IGNORECASE,
)
_NAMED_AROUND = lazy_regex(
    rf"(?:{_GREETING})?(?:du kannst|ihr könnt|sie können) mich (?:gerne? |einfach )?{_NAME} nennen"
    rf"|(?:{_GREETING})?ich werde (?P<name2>{_WORD}) genannt",
    re.IGNORECASE,
)
_AM = lazy_regex(
    rf"(?:{_GREETING}(?:ich bin|ich bin(?:'s| es),?)(?: die| der)?"
    rf"|(?:{_GREETING})?(?:i am|i'm|it's me,|this is|je suis|soy)) {_CAPITAL}{_BEHIND}",
    re.IGNORECASE,
)
# What follows "call me", "my name is" and the like, and is no name.
_NO_NAME = lazy_regex(
    r"(?:an?|the|at|by|in|on|if|when|back|later|away|off|out|up|to|for|from|not|no|never|your|you|this|that|it|anything"
    r"|whatever|spelt|spelled|written|misspelled|mentioned|asap|again|maybe"
    r"|eine?n?|der|die|das|nicht|kein|bitte|wenn|später|spater|zurück|zuruck|mal|auf|im|falsch|so"
    r"|une?|la|le|les|quand|si|plus|pas|dans|demain|sur|ce|ça|una|uno|el|los|las|cuando|luego|más|mas|al|en|por|que)\b",
    re.IGNORECASE,
)
# Written with a capital, and where somebody is from, what they believe, what they do or how they feel.
_OTHER_CAPITALS = lazy_regex(
    r"\b(?:german|english|british|irish|scottish|welsh|french|spanish|italian|dutch|belgian|swiss|austrian|polish|czech"
    r"|danish|swedish|norwegian|finnish|greek|turkish|russian|ukrainian|american|canadian|mexican|brazilian|indian"
    r"|chinese|japanese|korean|australian|portuguese|european|african|asian|romanian|hungarian|bulgarian|croatian"
    r"|serbian|iranian|persian|arab|egyptian|israeli|muslim|jewish|christian|catholic|protestant|buddhist|hindu|vegan"
    r"|fran[cç]aise?|belge|suisse|allemande?|anglaise?|espagnole?|deutsche[r]?|österreicher\w*|schweizer\w*"
    r"|arzt|ärztin|lehrer\w*|mutter|vater|oma|opa|student\w*|vegetarier\w*|veganer\w*|krank|müde|hungrig|zurück|da"
    r"|sorry|ok|okay|back|home|late|here|fine|tired|hungry|happy|sad|busy|sick|ill)\b",
    re.IGNORECASE,
)
# "What am I called?", "wie heiße ich", "comment je m'appelle", "cómo me llamo"
_ASKS = lazy_regex(
    r"\bmy (?:own )?name\b(?! (?!again\b|please\b|now\b)\w)|\bam i called\b|\bmein name\b|\bhei(?:ß|ss)e? ich\b"
    r"|\bmon (?:nom|prenom)\b|m'appelle\b|\bmi nombre\b|\bme llamo\b"
)
NAME_WORDS = ("name", "called", "call", "heiße", "nenn", "nom", "appelle", "llamo", "nombre", "llámame")
"""What a search for the name of the person looks for."""


def told_name(sentence: str) -> str:
    """The name that somebody says to be theirs in a sentence that says nothing else; "" for none."""
    plain = " ".join(sentence.replace("’", "'").split()).strip(" .!")
    if "?" in plain or " " not in plain:
        return ""
    match = _NAMED.fullmatch(plain) or _NAMED_AROUND.fullmatch(plain)
    if match is None:
        match = _AM.fullmatch(plain)
        if match and _OTHER_CAPITALS.search(match["name"]):
            return ""
    if match is None:
        return ""
    name: str = match["name"] or match["name2"]
    is_none = _NO_NAME.match(name) or find_times(name).pieces
    return "" if is_none else _as_name(name)


def _as_name(name: str) -> str:
    """With capitals, where it is written in small letters alone."""
    return " ".join(word.capitalize() for word in name.split()) if name.islower() else name


def asks_own_name(text: str) -> bool:
    """Whether a question asks what the person is called, and nothing else."""
    folded = fold_text(text).replace("’", "'")
    return _ASKS.search(folded) is not None and not content_words(_ASKS.sub(" ", folded))


def newest_name(quotes: Iterable[QuotedMessage], speaker: str | None) -> tuple[str, QuotedMessage] | None:
    """The name that the speaker has told last, and where; None where none was told."""
    told = (
        (name, quote)
        for quote in sorted(quotes, key=lambda quote: -quote.message_id)
        if quote.name == speaker and quote.speaker != "assistant"
        for sentence in split_sentences(quote.text)
        if (name := told_name(sentence.text))
    )
    return next(told, None)
