"""Whether a message asks for something to be done, rather than to be answered (F18). Pure.

A question, a remark or a chat is over with its answer. A task is not: "book the flight" is open after "I will", until
somebody says that it is done. By rules alone, on the sentences of a message, since it decides what stays word for word
in every compaction and has to be the same on every day:

- a sentence that orders ("please book", "remind me", "don't forget") or states what is still to do ("I need to",
  "we have to", "todo:"), in some languages;
- an order that begins with a verb of doing ("Write", "Fix", "Plan");
- not what is asked to be known or said at once ("tell me", "explain", "what is"), nor a question, nor a quotation.

Precision comes first: a task taken for a question is still in the log and in the summary; a question taken for a task
stays on the list until somebody takes it off.
"""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")
_LONGEST = 4_000

_DOING = (
    "add|arrange|ask|book|build|buy|call|cancel|change|check|clean|collect|compile|contact|convert|copy|create"
    "|delete|"
    "deploy|design|draft|email|file|finish|fix|get|implement|install|invite|make|message|migrate|mail|move"
    "|order|organi[sz]e|"
    "pack|pay|phone|pick up|plan|post|prepare|print|publish|put|record|refactor|register|remove|rename|renew|repair|"
    "replace|reply|report|research|reserve|return|review|rewrite|run|save|schedule|send|set|sell|sign|sort"
    "|start|submit|"
    "test|track|translate|update|upload|water|wash|write"
)
_TOLD_AT_ONCE = re.compile(
    r"^(?:please |could you |can you |would you )?(?:tell|explain|show|say|describe|list|give me|summari[sz]e"
    r"|define|compare|"
    r"translate this|guess|repeat|help me understand|let me know what|erklär|sag|zeig|explique|dis|montre|dime"
    r"|explica)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    rf"""^(?:(?:and|then|also|next|now|ok(?:ay)?|so|oh|und|et|y|og)[ ,]+)*(?:
      (?:todo|to-do|task|aufgabe|tâche|tarea|oppgave)\s*[:：-]
    | (?:please|pls|kindly)[ ,]+(?!tell|explain|say|show|describe|note\b)\w+
    | (?:remind\ me|remember\ to|don'?t\ (?:let\ me\ )?forget\ to|make\ sure|be\ sure\ to|keep\ an\ eye\ on)\b
    | (?:can|could|would|will)\ you\ (?:please\ )?(?:{_DOING})\b
    | (?:i|we)\ (?:still\ )?(?:need|have|want|must|ought)\ (?:you\ )?to\ (?:{_DOING})\b
    | i(?:'d|\ would)\ like\ you\ to\b
    | (?:{_DOING})\ (?:(?:me|us|up|out|down|off|in)\ )*(?:a|an|the|my|our|your|his|her|their|this|that|these
      |those|all|some|two|three
        |another|every|to|for|with|at|on|(?-i:[A-Z0-9]))
    | bitte\b | (?:erinner[e]?|denk)\ (?:mich|daran)\b | vergiss\ nicht\b | (?:ich|wir)\ (?:muss|müssen|soll|sollen)\b
    | (?:buche|schreib[e]?|kauf[e]?|ruf|schick[e]?|bestell[e]?|plane|mach[e]?)\ (?:ein|eine|einen|den|die|das
      |mir|bitte|für|dem|der)\b
    | rappelle-moi\b | n'oublie\ pas\b | (?:réserve|écris|achète|appelle|envoie|prépare|commande)\ (?:un|une|le
      |la|les|mon|ma|des|à)\b
    | (?:je\ dois|il\ faut|nous\ devons)\b | s'il\ (?:te|vous)\ pla[iî]t\b
    | recuérdame\b | no\ olvides\b | por\ favor\b | (?:reserva|escribe|compra|llama|envía|prepara)\ (?:un|una
      |el|la|los|mi|a)\b
    | (?:tengo|tenemos|hay)\ que\b
    | (?:husk|minn\ meg|ikke\ glem)\b | (?:bestill|skriv|kjøp|ring|send|lag|planlegg)\ (?:en|et|ei|til|meg|den
      |det|min|mitt)\b
    | (?:jeg|vi)\ (?:må|skal)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_ORDER_CJK = re.compile(
    r"提醒我|别忘|不要忘|記得|记得|帮我(?!看看|解释|说)|幫我|请(?:帮|预订|发|写|买|安排|准备)"
    r"|我(?:需要|要|得)(?:去|买|写|做|发|订|准备)"
    r"|忘れないで|思い出させて|リマインド|予約して|書いて(?:ください|おいて)?|買って|送って|準備して"
    r"|やって(?:ください|おいて)|しておいて"
    r"|しなければ|する必要が|해\s?줘|잊지\s?마|알려\s?줘|예약해"
    r"|напомни|не забудь|закажи|купи|напиши|отправь|надо |нужно ",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？]\s*[\"'”’)]*$")
_DOES_ASK = re.compile(r"^(?:can|could|would|will) you (?:please )?(?!tell|explain|show|say|describe)", re.IGNORECASE)
_QUOTED = re.compile(r"^\s*(?:[>\"“«„「]|```)")


def is_task(text: str) -> bool:
    """Whether some sentence of the message asks for something that is not over with an answer."""
    return any(_asks_for_doing(sentence.strip()) for sentence in _SENTENCE.findall(text[:_LONGEST]))


def _asks_for_doing(sentence: str) -> bool:
    if len(sentence) < 4 or _QUOTED.match(sentence) or _TOLD_AT_ONCE.match(sentence):
        return False
    if _ORDER_CJK.search(sentence):
        return not _QUESTION.search(sentence)
    if _QUESTION.search(sentence) and not _DOES_ASK.match(sentence):
        return False
    return bool(_ORDER.match(sentence))
