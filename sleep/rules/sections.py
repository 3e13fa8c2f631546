"""Under which heading of MEMORY.md a journal entry belongs, by its kind and its words. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.core.text import lazy_regex

PEOPLE, HOME, HEALTH, WORK = "People", "Home", "Health", "Work"
PREFERENCES, DECISIONS, STANDING = "Preferences", "Decisions", "Standing facts"
SECTIONS = (PEOPLE, HOME, HEALTH, WORK, PREFERENCES, DECISIONS, STANDING)

_HEALTH = lazy_regex(
    r"\b(?:allerg|asthma|diabet|medic(?:ine|ation)|doctors?\b|dentist|hospital\b(?! as)|surgery|diagnos|prescri|blood"
    r"|vaccin|pregnan|therap|arzt|ärzt|krank|médecin|médico|lege\b|fastlege|sykdom)|过敏|医生|病|アレルギー|医者|薬",
    re.IGNORECASE,
)
_PEOPLE = lazy_regex(
    r"\b(?:sisters?|brothers?|mother|father|mum|mom|dad|parents?|wife|husband|partner|sons?|daughters?|child(?:ren)?|kids?"
    r"|uncle|aunt|cousins?|nieces?|nephews?|grand(?:mother|father|ma|pa|son|daughter)|friends?|neighbou?rs?|landlord"
    r"|landlady|girlfriend|boyfriend|fiancée?|schwester|bruder|mutter|vater|frau|mann|sohn|tochter|freund(?:in)?"
    r"|s[oø]ster(?:en)?|bror(?:en)?|mor(?:en)?|far(?:en)?|kone|sønn(?:en)?|datter(?:en)?|sœur|frère|mère|père|fille|fils"
    r"|hermanas?|hermanos?|madre|padre|hij[oa]s?)\b|姐|妹|哥|弟|妈|爸|妻|夫|儿子|女儿|父|母|兄|姉|娘|息子|友",
    re.IGNORECASE,
)
_WORK = lazy_regex(
    r"\b(?:work(?:s|ed|ing)?|job|office|boss|colleagues?|employer|company|project|client|customer|salary|contract"
    r"|arbeite?n?|büro|chef(?:in)?|firma|jobbe?r?|kontor(?:et)?|travaill\w+|bureau|trabaj\w+|oficina)\b"
    r"|工作|公司|同事|仕事|会社|上司",
    re.IGNORECASE,
)
_HOME = lazy_regex(
    r"\b(?:live[sd]?|living|moved|house|flat|apartment|cabin|rent|mortgage|address|street|garden|kitchen|boiler|wi-?fi"
    r"|neighbou?rhood|keys?|gate|door|wohne?n?|wohnung|haus|adresse|bor|leilighet(?:en)?|hytte[n]?|habite|maison|vivo"
    r"|vive|casa|piso)\b|住|家|地址|住所",
    re.IGNORECASE,
)
_BY_WORDS = ((HEALTH, _HEALTH), (PEOPLE, _PEOPLE), (WORK, _WORK), (HOME, _HOME))
_READ = 400


def section_of(content: str, tags: Sequence[str]) -> str:
    """Health goes before everything; a preference or a decision stays one whatever it is about."""
    read = content[:_READ]
    if _HEALTH.search(read):
        return HEALTH
    if "preference" in tags:
        return PREFERENCES
    if "decision" in tags:
        return DECISIONS
    return next((name for name, words in _BY_WORDS if words.search(read)), STANDING)
