"""What of a message may be looked up: its questions, or what it says. Pure."""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex

_LONGEST_QUESTION = 400
_END = 2_000

_ASKING = lazy_regex(
    r"[^.!?？؟。！\n]*[?？؟]"
    # Asked without the mark: by a word that asks, or told to find something.
    r"|(?:^|(?<=[.!\n]))\s*(?:(?:please|and|so|ok|hey)[, ]+)*(?:who|what|when|where|which|why|how|whose|find|show"
    r"|tell|remind|give|look up|wer|was|wann|wo|welche\w*|warum|wie|finde|zeig\w*|qui|quand|où|combien|quel\w*"
    r"|trouve|qué|quién|cuándo|dónde|cuál|cómo|hvem|hva|når|hvor|hvilke\w*|finn)\b[^.!?\n]*",
    re.IGNORECASE,
)
_PLEASANTRIES = lazy_regex(
    r"\b(?:hi|hello|hey|bye|goodbye|welcome|thanks?|thx|please|sorry|yes|yeah|yep|nope?|ok|okay|sure|fine|great|nice|cool"
    r"|wow|haha+|lol|well|right|good|morning|afternoon|evening|night"
    r"|hallo|guten|morgen|abend|tag|danke|bitte|ja|nein|sch[öo]n|gut"
    r"|bonjour|bonsoir|salut|merci|oui|non|bien|hola|buen[oa]s|d[ií]as|noches|gracias|s[ií]"
    r"|ciao|buongiorno|buonasera|grazie|prego|hei|takk|tack|hej"
    r"|привет|здравствуйте|добр(?:ый|ое)|утро|день|вечер|спасибо|пожалуйста|да|нет)\b"
    r"|こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます)?|はい|いいえ|你好|您好|谢谢|早上好|晚安|好的|再见"
    r"|안녕(?:하세요)?|감사합니다",
    re.IGNORECASE,
)


def asks(text: str) -> bool:
    """Whether it asks for something, with a question mark or without."""
    return bool(_ASKING.search(text))


def asked(question: str) -> str:
    """What of a message may be looked up: of a long one its questions (of its beginning and its end, where a question
    about what was said before would stand), of any nothing where pleasantries are all."""
    if len(question) > 2 * _END:
        question = f"{question[:_END]}\n{question[-_END:]}"
    text = question.strip()
    if len(text) > _LONGEST_QUESTION:
        asking = " ".join(match[0].strip() for match in _ASKING.finditer(text))
        text = (asking or text)[:_LONGEST_QUESTION]
    rest = _PLEASANTRIES.sub(" ", text)
    return text if re.search(r"\w\w", rest) else ""
