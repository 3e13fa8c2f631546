"""How people tell of themselves in languages other than English: few forms, each as sure as it can be. Pure."""

from __future__ import annotations

import re
from typing import Literal

from assistant.core.text import lazy_regex

_PREFERENCE = lazy_regex(
    r"\bich (?:mag|liebe|hasse|bevorzuge|esse kein|trinke kein|esse nie)|\b(?:j'aime|je préfère|je déteste|je ne"
    r" mange pas)\b"
    r"|\b(?:me gustan?|no me gusta|prefiero|odio|no como)\b|\bjeg (?:liker|elsker|foretrekker|hater|spiser ikke)\b"
    r"|我(?:喜欢|不喜欢|讨厌|爱|最爱|不吃|不喝)|(?:好き|嫌い|苦手)(?:です|だ|。|$)",
    re.IGNORECASE,
)
_DECISION = lazy_regex(
    r"\b(?:wir|ich) haben? (?:uns )?(?:beschlossen|entschieden)|\b(?:nous avons|j'ai) décidé\b"
    r"|\b(?:hemos|he) decidido\b|\b(?:vi|jeg) (?:har )?(?:bestemt|bestemte)\b|我们?决定|決めました|に決めた",
    re.IGNORECASE,
)
_FACT = lazy_regex(
    r"\b(?:ich|wir) (?:bin|sind|wohne[n]?|arbeite[n]?|habe[n]?|heiße|komme aus|lebe[n]?|ziehe[n]?)\b"
    r"|\b(?:mein|unser)e?[rsnm]? \w+ (?:ist|heißt|hat|wohnt|arbeitet|lebt|kommt|kostet|beginnt)\b"
    r"|\b(?:jeden|jede|jedes) \w+|\b(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)s\b"
    r"|\bje (?:suis|m'appelle|travaille|vis|viens de)\b|\bj'(?:habite|ai)\b"
    r"|\b(?:mon|ma|mes|notre|nos) \w+ (?:est|sont|s'appelle|a|habite|travaille|vit|coûte)\b|\btous les \w+s\b"
    r"|\b(?:soy|vivo|trabajo|tengo|me llamo|vivimos|tenemos)\b|\bmis? \w+ (?:es|está|se llama|tiene|vive|trabaja"
    r"|son|viven)\b"
    r"|\btodos los (?:lunes|martes|miércoles|jueves|viernes|sábados|domingos|días|años|meses)\b"
    r"|\b(?:jeg|vi) (?:er|bor|jobber|heter|har|flyttet|sluttet|begynte)\b|\bhver (?:uke|dag|\w+dag|måned)\b"
    r"|\b(?:(?:min|mitt|mine|vår|vårt) \w+|\w+ (?:min|mi|mitt|mine|vår|vårt)) (?:er|heter|har|bor|jobber|koster"
    r"|begynner)\b"
    r"|我(?:是|住|在|有|叫|的|每)|我们(?:是|住|有|的|每)|(?:每周|每天|每年|每个月)|私(?:は|の)|僕(?:は|の)|俺(?:は|の)|毎(?:日|週|月|年|朝|晩)",
    re.IGNORECASE,
)
_PASSING = lazy_regex(
    r"^(?:wenn|falls|vielleicht|si |peut-être|quizás|tal vez|hvis|kanskje)\b"
    r"|\b(?:gerade|heute|müde|hungrig|gleich|weiß nicht|hab(?:e)? (?:eine )?frage|keine ahnung|bin (?:da|zurück"
    r"|bereit|fertig|krank))\b"
    r"|\b(?:aujourd'hui|en train de|fatiguée?|j'ai (?:faim|soif|une question|froid|chaud|oublié|besoin)|je suis"
    r" (?:là|prête?|désolée?|perdue?))\b"
    r"|\b(?:hoy|ahora mismo|cansad[oa]|tengo (?:hambre|sed|sueño|una pregunta|frío|que)|estoy)\b"
    r"|\b(?:i dag|akkurat nå|trøtt|sulten|har (?:et spørsmål|lyst)|er (?:her|klar|ferdig|tilbake|lei))\b"
    r"|今天|现在正|好累|如果|不知道|我在(?:吃|看|想|等|做)|我的(?:意思|问题)|我有(?:一个|个)?问题|今日|今は|疲れ|もし|眠い|思います|わかりません|知りません",
    re.IGNORECASE,
)


def kind_elsewhere(own: str) -> Literal["fact", "preference", "decision"] | None:
    """Of a statement in German, French, Spanish, Norwegian, Chinese or Japanese; None where nothing lasting is told."""
    if _PASSING.search(own):
        return None
    if _DECISION.search(own):
        return "decision"
    if _PREFERENCE.search(own):
        return "preference"
    return "fact" if _FACT.search(own) else None
