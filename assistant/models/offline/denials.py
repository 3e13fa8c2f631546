"""Whether a statement only says what is not so: "I never lived in Bonn", "mein Zahnarzt ist nicht Braun". Pure.

What always holds: what was so and is no longer, and what says beside the denial what is so instead, is no denial.
"""

from __future__ import annotations

from assistant.core.text import fold_text, lazy_regex

_DENIES = lazy_regex(
    r"\b(?:never|not|nie|niemals|nicht|keine?[nrms]?|jamais|nunca|(?:do|does|did|is|are|was|were|have|has|had|wo|ca)n'?t"
    r"|n(?:e |')\w+(?: \w+)? pas|(?:je|j'|tu|il|elle|on|c'est) ?\w* pas"
    r"|no (?:es|era|fue|son|esta|vivo|vive|vivi\w*|trabaj\w+|tengo|tiene|soy|fui|he|ha|hemos|han|me|se|le|bebo|bebe"
    r"|como|come|uso|usa|habl\w+))\b"
)
_NO_DENIAL = lazy_regex(
    r"\b(?:any ?more|any longer|no longer|not only|nicht mehr|nicht nur|plus|pas seulement|ya no|no solo|but|sondern"
    r"|mais|sino|until|unless|bis|except|ausser|sauf|salvo)\b|[,;:]|[.!?] \w"
)
_ASKS_WHICH = lazy_regex(
    r"\b(?:who|whom|whose|what|where|when|which|how|wer|wen|wem|was|wo|wohin|woher|wann|welche\w*|wie|qui|que|quoi|ou"
    r"|quand|quel\w*|combien|comment|quien\w*|donde|cuando|cual\w*|cuant\w+|como)\b"
)


def denies(text: str) -> bool:
    """Whether a statement, or a question, only says what is not so."""
    folded = fold_text(text).replace("’", "'").strip(" .!?")
    return _DENIES.search(folded) is not None and not _NO_DENIAL.search(folded)


def asks_which(question: str) -> bool:
    """Whether a question asks who, what, where or when, rather than whether."""
    return _ASKS_WHICH.search(fold_text(question)) is not None
