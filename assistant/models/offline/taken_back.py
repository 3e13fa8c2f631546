"""Orders that are taken back in the sentence that gives them: "cancel the dentist, actually no, leave it". Pure.

What always holds: the last word counts, so nothing is changed by such a sentence.
"""

from __future__ import annotations

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold
from assistant.models.offline.intents import rank_without_items

UNCHANGED = "All right, nothing is changed."
# What is found by these is an order that would change something.
_CHANGING = frozenset(["complete", "drop", "move", "relist", "rename", "undated", "add", "remind"])
_DOUBTS = (
    r"(?:(?:no|nope|oh|actually|wait|hang on|hold on|hm+|ne|nee|nein|ach|doch|halt|moment|warte|quatsch|non|euh|attends"
    r"|finalement|en fait|enfin|mais|espera|mejor|bueno|ay|perdon|que va|but|aber|pero|sorry|pardon)\b[ ,.…–-]*)+"
)
_LEAVES = (
    r"(?:(?:just |please )*(?:leave|keep) (?:it|that|them|everything)(?: (?:in|on|there|as (?:it|they) (?:is|are|was"
    r"|were)|alone|be))*|(?:just )?(?:don'?t|do not)(?: (?:do (?:it|that)|bother))?"
    r"|(?:lass|lasst|behalt\w*) (?:es|ihn|sie|das|den|alles|mal)(?: (?:doch|bitte|mal|lieber|so|drin|stehen|sein|da"
    r"|wie (?:es|er|sie) (?:ist|war|sind)))*|doch nicht|lieber nicht"
    r"|(?:garde|laisse)[- ](?:le|la|les|ca|tout)(?: (?:comme (?:ca|c'est|il est)|tranquille))?|ne (?:fais|change) rien"
    r"|deja(?:lo|la|los|las)?(?: (?:como (?:esta|estaba)|asi|estar))?|no lo hagas|mejor no)"
)
_TAKEN_BACK = lazy_regex(
    rf"^(?P<order>.{{4,80}}?)\s*(?:[,;.…–-]+|\.\.\.)\s*{_DOUBTS}{_LEAVES}"
    r"(?:[ ,]+(?:please|pls|bitte|stp|s'il te plait|porfa|por favor|after all|doch|finalement))*[\s.!]*$"
)


def is_taken_back(text: str) -> bool:
    """Whether a sentence gives an order and then says that all is to stay as it is."""
    match = _TAKEN_BACK.match(fold(text))
    return match is not None and "?" not in text and rank_without_items(match["order"])[0][0] in _CHANGING
