"""Whether a message asks for something to be done, rather than to be answered (F18). Pure.

A question, a remark or a chat is over with its answer. A task is not: "book the flight" is open after "I will", until
somebody says that it is done. By rules alone, on the sentences of a message, since it decides what stays word for word
in every compaction and has to be the same on every day:

- a sentence that orders ("please book", "remind me", "don't forget") or states what is still to do ("I need to",
  "we have to", "todo:"), in some languages;
- an order that begins with a verb of doing ("Write", "Fix", "Plan");
- not what is asked to be known or said at once ("tell me", "explain", "what is"), nor a question, nor a quotation.

A task that asks for a reminder and for nothing else is told apart: it is done when that is set.

Precision comes first: a task taken for a question is still in the log and in the summary; a question taken for a task
stays on the list until somebody takes it off.
"""

from __future__ import annotations

import re

from assistant.core.checkpoints import RequestKind
from assistant.core.text import lazy_regex
from sleep.rules.sentences import Sentence, split_sentences

# Of longer texts only the beginning and the end: there stands what is asked about what was pasted between.
_BEGINNING = 4_000
_END = 1_000
_SHORTEST = 4
# What may stand after a verb of doing that is an order: with most of these words nothing else begins like that.
_OBJECT = (
    r"(?:(?:me|us|up|out|down|off|in|back|over)\ )*(?:(?:an?|the|my|our|your|his|her|their|this|that|these|those|all"
    r"|some|two|three|four|another|every|each|both|to|for|with|at|on|it|them|him|me|us)\b|[\"“«„'])"
)
_DOING = (
    "add|arrange|ask|book|build|buy|call|cancel|change|check|clean|collect|compile|contact|convert|copy|create|delete"
    "|deploy|design|draft|email|file|finish|fix|get|implement|install|invite|make|message|migrate|mail|move|order"
    "|organi[sz]e|pack|pay|phone|pick up|plan|post|prepare|print|publish|put|record|refactor|register|remove|rename"
    "|renew|repair|replace|reply|report|research|reserve|return|review|rewrite|run|save|schedule|send|set|sell|sign"
    "|sort|start|submit|test|track|translate|update|upload|wash|water|write"
).replace(" ", r"\ ")
# These name things as often as they order: a name or a number after them is no sign of an order.
_BY_NAME = "add|arrange|ask|book|buy|call|cancel|contact|email|finish|fix|get|invite|message|pay|phone|send|tell"
_SAID_AT_ONCE = lazy_regex(
    r"(?:please |(?:could|can|would) you (?:please )?)?(?:tell|explain|show|say|describe|list|give me|summari[sz]e"
    r"|define|compare|guess|repeat|help me understand|let me know (?:what|how|why|if)"
    r"|(?:bitte )?(?:erklär|sag|zeig|nenn)|(?:s'il te plaît )?(?:explique|dis|montre)"
    r"|(?:por favor )?(?:dime|explica|muestra)|(?:fortell|forklar|vis))"
    r"(?:e|st|en|-moi|me|z)?\b",
    re.IGNORECASE,
)
_ORDER = lazy_regex(
    rf"""(?:(?:and|then|also|next|now|first|finally|ok(?:ay)?|so|oh|hey|hi|yes|great|thanks|und|et|y|og)[ ,:!]+)*(?:
      (?:todo|to-do|task|aufgabe|tâche|tarea|oppgave)\s*[:：-]
    | (?:please|pls|kindly)[ ,]+(?:also\ )?(?!note\b|wait\b|be\b|stop\b|excuse\b)\w+
    | (?:please\ )?(?:remind\ (?:me|us)|remember\ to|(?:do\ not|don'?t)\ (?:let\ me\ )?forget\ (?:to|about|the|my|that)
      |make\ sure|be\ sure\ to|keep\ an\ eye\ on)\b
    | (?:can|could|would|will)\ you\ (?:please\ |also\ )*(?:{_DOING}|remind)\b
    | (?:i|we)(?:'ve|'ll)?\ (?:still\ |also\ )?(?:need|have|must|ought|got)\ (?:you\ )?(?:to\ )?(?:{_DOING})\ {_OBJECT}
    | i(?:'d|\ would)\ like\ you\ to\b | let'?s\ (?:{_DOING})\ {_OBJECT}
    | (?:{_DOING})\ {_OBJECT}
    | (?:{_BY_NAME})\ (?:(?-i:[A-Z0-9])|\w+\ (?:and\ \w+\ )?(?:to|for|on|at|from|about|by)\b)
    | bitte\b | (?:erinner[e]?|denk)\ (?:bitte\ )?(?:mich|daran)\b | vergiss\ (?:bitte\ )?nicht\b
    | (?:ich|wir)\ (?:muss|müssen|soll|sollen)\ (?:noch|bis|unbedingt|den|die|das|einen?|mein\w*|morgen)\b
    | (?:buche|schreib[e]?|kauf[e]?|ruf|schick[e]?|bestell[e]?|plane|mach[e]?|reservier[e]?)\ (?:eine?[mnrs]?|den|die
      |das|mir|bitte|für|dem|der|mein\w*)\b
    | rappelle-moi\b | n'oublie\ pas\b | (?:réserve|écris|achète|appelle|envoie|prépare|commande)[ -](?:une?|le|la
      |les|mon|ma|mes|des|du|à|moi)\b
    | (?:je\ dois|il\ faut|nous\ devons)\ \w+ | s'il\ (?:te|vous)\ pla[iî]t\b
    | recuérdame\b | no\ (?:te\ )?olvides\b | por\ favor\b | (?:reserva|escribe|compra|llama|envía|prepara)\ (?:una?
      |el|la|los|las|mi|a|al)\b
    | (?:tengo|tenemos|hay)\ que\b
    | (?:husk|minn\ meg|ikke\ glem)\b | (?:bestill|skriv|kjøp|ring|send|lag|planlegg)\ (?:en|et|ei|til|meg|den|det
      |min|mitt|mine)\b
    | (?:jeg|vi)\ må\ (?:huske|bestille|kjøpe|skrive|ringe|sende|betale|lage|få)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ORDER_CJK = lazy_regex(
    r"提醒我|别忘|不要忘|記得|记得|帮我(?!看看|解释|说)|幫我|请(?:帮|预订|发|写|买|安排|准备)"
    r"|我(?:需要|要|得)(?:去|买|写|做|发|订|准备)"
    r"|忘れないで|思い出させて|リマインドして|予約して|書いて(?:ください|おいて)|買って|送って|準備して"
    r"|やって(?:ください|おいて)|しておいて|しなければ|する必要が"
    r"|해\s?줘|잊지\s?마|알려\s?줘|예약해",
)
_ORDER_CYRILLIC = lazy_regex(r"(?:пожалуйста[ ,]+)?(?:напомни|не забудь|закажи|купи|напиши|отправь|надо |нужно )", re.I)
# An order that is put as a question; what it asks for has to be done all the same.
_KINDLY = lazy_regex(
    rf"(?:can|could|would|will)\ you\ (?:please\ |also\ )*(?:{_DOING}|remind)\b", re.IGNORECASE | re.VERBOSE
)

_REMINDS = lazy_regex(
    r"(?:\W*[\w'’]+\W+){0,3}?(?:(?:remind (?:me|us)|set (?:me )?(?:an?|the|another) (?:\w+ )?reminder"
    r"|erinner[e]?(?: bitte)? (?:mich|uns)|rappelle-(?:moi|nous)|recuérda(?:me|nos)|minn (?:meg|oss)|напомни)\b"
    r"|提醒我)|.*(?:思い出させて|リマインド)",
    re.IGNORECASE,
)
# Where an order of its own may begin within a sentence.
_PART = lazy_regex(r"[,;:，；、]\s*| and (?=(?:please|also|then|can|could)\b)", re.IGNORECASE)


def classify_request(text: str) -> RequestKind:
    """What the message asks for: more than an answer where some sentence does; something to be done where one of them
    asks for more than a reminder."""
    if len(text) > _BEGINNING + _END:
        text = f"{text[:_BEGINNING]}\n{text[-_END:]}"
    tasks = [sentence for sentence in split_sentences(text) if asks_for_action(sentence)]
    if not tasks:
        return RequestKind.ANSWER
    return RequestKind.REMINDER if all(map(_only_reminds, tasks)) else RequestKind.TASK


def _only_reminds(sentence: Sentence) -> bool:
    parts = [part.strip() for part in _PART.split(sentence.own_text)]
    others = [part for part in parts if not _REMINDS.match(part)]
    return len(others) < len(parts) and not any(asks_for_action(Sentence(part, part)) for part in others)


def asks_for_action(sentence: Sentence) -> bool:
    own = sentence.own_text
    if len(own) < _SHORTEST or _SAID_AT_ONCE.match(own):
        return False
    if _KINDLY.match(own):
        return True
    if sentence.has_question_mark:
        return False
    return bool(_ORDER_CJK.search(own) or _ORDER.match(own) or _ORDER_CYRILLIC.match(own))
