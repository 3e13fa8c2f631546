"""How the offline model reads a message: text in, a few intents out. Pure.

A message is read sentence by sentence against an ordered table of patterns, each with the intent that it means. The
first alternative that fits the whole sentence decides, so the narrow ones stand first. A maker may return None: then
the sentence only looked the part, and reading goes on. What fits no pattern is a question if it reads like one, and
otherwise something the person told. Whatever is decided here, the message itself is already kept whole, so a misreading
costs an odd answer and never words.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from assistant.core.split_reminder import split_reminder
from assistant.core.text import lazy_regex
from assistant.models.offline.intents import (
    AboutMe,
    AddTodos,
    AskHistory,
    CancelReminder,
    ChangeTodos,
    CorrectStatement,
    Intent,
    ListFiles,
    ListReminders,
    Mood,
    NeedsLanguageModel,
    ReadFile,
    ReadMessage,
    SetReminder,
    ShowTodos,
    SmallTalk,
    TakeNote,
    TellTime,
)
from assistant.models.offline.words import asks_the_assistant, is_question, split_sentences

MakeIntent = Callable[[re.Match[str]], Intent | None]
IntentRule = tuple[MakeIntent, tuple[re.Pattern[str], ...]]

TODO_LIST = (
    r"(?:my|the|our|this) (?:(?!to[- ]?do|task)(?P<label>[\w-]+) )?"
    r"(?:(?:to[- ]?do|task)s? ?)?(?:list|to[- ]?dos?|tasks)"
)
_IDS = r"(?:(?:numbers?|items?|tasks?|to-?dos?) )?(?P<ids>#?\d+(?:(?:\s*,\s*|\s+and\s+|\s+)#?\d+)*)"
_PATH = r'(?P<path>"[^"]*[./][^"]*"|[\w./-]*\w\.\w{1,8}|[\w.-]+/[\w./-]*)'
_DROP = r"(?:remove|delete|drop|strike|take)"
_DONE = r"(?:done|finished|completed?)"
_WHAT = r"(?:what|when|where|who|whose|why|how|which|if|whether|about|of)\b"
_ORDER = r"(?:write|compose|draft|translate|summari[sz]e|explain|calculate|compute|generate|rewrite|proofread|sing)"
_ORDER_WITH_OBJECT = (
    r"(?:tell|give|help|send|e-?mail|text|call|phone|book|order|reserve|schedule|play|turn|switch|draw|create|make"
    r"|suggest|recommend|plan|design|fix|set|start|run|download|browse|analy[sz]e|compare|describe|buy)"
)
_OBJECT = r"(?:me|us|an?|the|my|our|this|that|it|him|her|them|some|all|on|off|up)\b"


def _rule(make: MakeIntent, *alternatives: str) -> IntentRule:
    return make, tuple(lazy_regex(alternative, re.IGNORECASE | re.DOTALL) for alternative in alternatives)


# ----------------------------------------------------------------------------------------------------------- small talk


def _talk(mood: Mood) -> MakeIntent:
    return lambda match: SmallTalk(mood)


_TALK = (
    _rule(
        _talk("greeting"),
        r"(?:hi|hello|hey|hei|hallo|hej|hola|bonjour|ciao|moin|salut|good (?:morning|afternoon|evening|day)|god morgen"
        r"|guten (?:morgen|tag|abend))(?:,? (?:there|you|again|nocturne|everyone|all))*",
    ),
    _rule(
        _talk("thanks"),
        r"(?:many |much )?(?:thanks|thank you|thx|cheers|takk|danke|tack|merci|gracias)"
        r"(?:,? (?:so|very|much|a lot|again|you|for .+|skal du ha|schön))*",
    ),
    _rule(
        _talk("goodbye"),
        r"good ?bye|bye|bye bye|see you|see you .+|good night|ha det|tschüss|gute nacht|god natt",
    ),
    _rule(
        _talk("agreed"),
        r"(?:(?:yes|yeah|yep|no|nope|ok|okay|fine|sure|right|good|great|cool|alright|all right|perfect|nice|understood"
        r"|done|got it|never ?mind|forget it|no problem|no worries|ja|nei|nein|oui|non|si)[ ,.!]*)+(?:please|thanks)?",
    ),
    _rule(_talk("well"), r"how are you.*|how do you do|how's it going|hvordan går det|wie geht(?:'s| es).*"),
    _rule(
        _talk("help"),
        r"help|help me|commands|hilfe|hjelp|what can you do.*|how do(?:es)? (?:this|you) work|(?:who|what) are you",
        r"are you (?:online|offline|there|real|human|an? .+)",
    ),
)


# --------------------------------------------------------------------------------------------------------------- to-dos


def split_items(text: str) -> tuple[str, ...]:
    """One to-do or several: single words, or short pieces between commas, are several."""
    text = text.strip().strip("\"'“”").strip()
    if ";" in text:
        return tuple(part.strip() for part in text.split(";") if part.strip())
    parts = tuple(part.strip() for part in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", text) if part.strip())
    single = all(len(part.split()) == 1 for part in parts)
    short = "," in text and all(len(part.split()) <= 3 for part in parts)
    return parts if len(parts) > 1 and (single or short) else (text,)


def label_items(items: tuple[str, ...], label: str | None) -> tuple[str, ...]:
    """The items of a list with a name of its own ("shopping"): the name stands before each."""
    return tuple(f"{label.lower()}: {item}" for item in items) if label else items


def _add(match: re.Match[str]) -> Intent:
    return AddTodos(label_items(split_items(match["what"]), match.groupdict().get("label")))


def _remind(match: re.Match[str]) -> Intent:
    when = match.groupdict().get("when")
    instead = AddTodos((f"{match['what']} ({when})" if when else match["what"],), reminder=True)
    text, time = split_reminder(match[0])
    return SetReminder(text, time, instead) if time else instead


def _show(match: re.Match[str]) -> Intent:
    return ShowTodos((match.groupdict().get("label") or "").lower())


def _ids(match: re.Match[str]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(number) for number in re.findall(r"\d{1,18}", match["ids"])))


_TODOS = (
    _rule(
        lambda match: ShowTodos(clear=True),
        rf"(?:clear|empty|wipe|{_DROP} (?:all|everything)(?: of| from| on| off)?) {TODO_LIST}",
    ),
    _rule(
        _add,
        rf"(?:add|put|write|stick) (?P<what>.+?) (?:to|on|onto|in) {TODO_LIST}",
        rf"(?:add|put) (?:to|on) {TODO_LIST}:?\s+(?P<what>.+)",
        r"(?:new )?(?:to-?do|task)s?\s*:\s*(?P<what>.+)",
    ),
    _rule(_remind, rf"remind me (?!{_WHAT}|that\b|to )(?P<when>.+?) to (?P<what>.+)", r"remind me to (?P<what>.+)"),
    _rule(
        lambda match: ListReminders(),
        r"(?:(?:show|list|tell)(?: me)? )?(?:all )?(?:my |the )?reminders",
        r"(?:what|which) reminders (?:do i have|have i(?: got)?|are (?:there|set|open))(?: set)?",
        r"do i have (?:any )?reminders(?: set)?|what will you remind me (?:of|about)",
    ),
    _rule(
        lambda match: CancelReminder(int(match["id"])),
        rf"(?:cancel|stop|{_DROP}) (?:the )?reminder (?:number )?#?(?P<id>\d{{1,18}})",
    ),
    _rule(
        lambda match: AddTodos((match["what"],)),
        r"(?:remember|don't forget|do not forget|make sure) to (?P<what>.+)",
    ),
    _rule(
        _show,
        r"(?:(?:show|list|read|give|tell|see|view|print)(?: me)?(?: all)? )?"
        rf"(?:what(?:'s| is|s) (?:still |left )?on )?{TODO_LIST}",
        r"to[- ]?dos?|tasks|list|what(?:'s| is)? (?:left|still open|open)(?: to do)?",
        r"(?:is there )?anything left(?: to do)?",
        r"what (?:do i (?:still )?(?:have|need) to|should i|must i) do.*|what are (?:my|the) (?:to[- ]?dos|tasks)",
        r"do i have (?:any )?(?:to[- ]?dos|tasks)",
    ),
    _rule(
        lambda match: ChangeTodos("complete", _ids(match)),
        rf"(?:i(?:'m|'ve| am| have)? )?(?:just )?(?:{_DONE}|did|(?:tick|check|cross) off)(?: with)? {_IDS}(?: off)?",
        rf"(?:mark|set) {_IDS}(?: as)? {_DONE}",
        rf"{_IDS} (?:is|are) {_DONE}",
    ),
    _rule(
        lambda match: ChangeTodos("complete", words=match["what"]),
        r"(?:i(?:'m| am) )?(?:done|finished) with (?P<what>.+)",
        rf"(?:tick|check|cross) off (?P<what>.+?)(?: (?:on|from) {TODO_LIST})?",
        rf"mark (?P<what>.+) as {_DONE}",
    ),
    _rule(lambda match: ChangeTodos("remove", _ids(match)), rf"{_DROP} {_IDS}(?: (?:from|off) {TODO_LIST})?"),
    _rule(
        lambda match: ChangeTodos("remove", words=match["what"]),
        rf"{_DROP} (?P<what>.+?) (?:from|off) {TODO_LIST}",
        r"(?:remove|delete) (?P<what>\S+(?: \S+)?)",
    ),
)


# ------------------------------------------------------------------------------------------------ time, files, messages


def _list_files(match: re.Match[str]) -> Intent:
    path = (match.groupdict().get("path") or "").strip("\"'/")
    return ListFiles("" if path.lower() == "workspace" else path)


_LOOKS = (
    _rule(
        lambda match: TellTime(),
        r"(?:(?:what|which)(?:'s| is|s)?(?: the)?(?: current| local)? )?(?:time|date|day|week|weekday)"
        r"(?: is| it| today| now)*",
        r"what(?:'s| is) today'?s date|how late is it|wie spät ist es|wie viel uhr ist es|welcher tag ist heute",
        r"hva er klokk(?:a|en)|hvilken dag er det|quelle heure est-il|qué hora es|che ore sono|hoe laat is het",
    ),
    _rule(
        _list_files,
        r"ls(?: (?P<path>\S+))?",
        r"(?:list|show|see)(?: me)?(?: all)?(?: my| the)? files?"
        r"(?: (?:in|of|under|from) (?:the |my )?(?P<path>\S+?)(?: folder)?)?",
        r"(?:what|which) files (?:do i have|have i|are there|exist)(?: in (?:the |my )?(?P<path>\S+))?",
        r"what(?:'s| is) in (?:my|the) (?P<path>workspace)",
    ),
    _rule(
        lambda match: ReadFile(match["path"].strip('"')),
        rf"(?:read|open|show(?: me)?|cat|print|display|view|what(?:'s| is) in)(?: the)?(?: file)? {_PATH}",
    ),
    _rule(
        lambda match: ReadMessage(int(match["id"])),
        r"(?:show|read|open|give|print)(?: me)? (?:the )?(?:message (?:number )?#?|#)(?P<id>\d{1,18})",
        r"what (?:was|is|did i say in) (?:message )?#(?P<id>\d{1,18})",
    ),
)


# ------------------------------------------------------------------------------------------------- what was and is told


def _ask(match: re.Match[str]) -> Intent:
    return AskHistory(match["what"], "assistant" if asks_the_assistant(match["what"]) else "user")


def _told_anew(match: re.Match[str]) -> Intent | None:
    return None if is_question(match[0], match[0]) else CorrectStatement(match[0])


def _order(match: re.Match[str]) -> Intent | None:
    """An order, unless its verb is the subject of a statement ("book club meets ...")."""
    verb, _, rest = match[0].partition(" ")
    statement = re.fullmatch(_ORDER_WITH_OBJECT, verb, re.IGNORECASE) and not re.match(_OBJECT, rest, re.IGNORECASE)
    return None if statement else NeedsLanguageModel()


_MEMORY = (
    _rule(
        lambda match: AboutMe(),
        r"(?:what|tell me (?:everything|all|what)) (?:do )?you (?:know|remember|have)(?: about me)?|what do you know",
        r"what have i told you|who am i",
    ),
    _rule(
        lambda match: TakeNote(),
        r"(?:don't forget|do not forget|note to self|note|nb|fyi|for your information|keep in mind|write down)\b.*",
    ),
    _rule(lambda match: NeedsLanguageModel(forget=True), r"(?:forget|erase) .+"),
    _rule(
        lambda match: AskHistory(match["what"], topic=True),
        r"(?:search|look|find)(?: up| for| out)? "
        r"(?:what i (?:said|told you|wrote) about |(?:every|any)thing (?:i said )?about )?(?P<what>.+)",
        r"tell me (?:more |everything |all )?(?:you know )?about (?P<what>.+)",
    ),
    _rule(
        _ask,
        r"(?:tell me|remind me|i wonder|i(?:'ve| have)? forgot(?:ten)?|do you (?:remember|know|recall)|show me) "
        rf"(?P<what>{_WHAT}.+)",
        r"do you (?:remember|know|recall) (?P<what>.+)",
    ),
    _rule(
        lambda match: CorrectStatement(match["what"]),
        r"(?:no|nope|nei|nein|wrong|actually|correction|not quite|sorry,? i (?:meant|mean)|i (?:meant|mean)|i was wrong"
        r"|(?:that|this)(?:'s| is| was) (?:wrong|incorrect|not right|not true)|you(?:'re| are) wrong)\b[\s,.:;!-]+"
        r"(?!(?:one|idea|need|way|matter|more)\b)(?P<what>.+)",
        r"sorry,? (?P<what>(?:it|the|my|that|our)\b.+)",
    ),
    _rule(_told_anew, r"not .+?,? but .+", r".+, not [^,]+", r".*\b(?:no longer|not .+ any ?more)\b.*"),
    _rule(_order, rf"{_ORDER} .+", rf"{_ORDER_WITH_OBJECT} .+"),
    _rule(lambda match: TakeNote(task=True), r"i(?: have|'ve got| need| must| ought| got) to .+|i (?:must|should) .+"),
    _rule(lambda match: TakeNote(), r"(?:remember|save|store)(?: that|:|,)? (?!what|when|where|who|how).+"),
)

INTENT_RULES: tuple[IntentRule, ...] = (*_TALK, *_TODOS, *_LOOKS, *_MEMORY)


_MOST_INTENTS = 8
_LONG = 2000
_LONGEST_READ = 400

_COURTESY_BEFORE = lazy_regex(
    r"^(?:(?:hey|hi|hello|please|ok|okay|so|well|and|also|then|oh|um|thanks)(?:\s*[,!]\s*|\s+)"
    r"|(?:can|could|would|will) you (?:please |maybe |kindly )?|i(?:'d| would) like you to |i want you to )+(?=\S)",
    re.IGNORECASE,
)
_ENDS = " \t\n.!?…,。！？؟"
_COURTESIES_BEHIND = ("please", "thanks", "thank you", "for me", "again")
_LIST_HEAD = lazy_regex(
    rf"(?:please )?(?:add|put)(?: (?:these|this|the following))? (?:to|on) {TODO_LIST}\s*:?|to-?dos?:", re.IGNORECASE
)
_BULLET = lazy_regex(r"^\s*(?:[-*•]|\d+[.)]|\[ ?\])\s*")


def parse_message(text: str) -> tuple[Intent, ...]:
    """What `text` asks for, in its order: at most one note, and small talk only where there is nothing else."""
    whole = _list_over_lines(text)
    if whole is not None:
        return (whole,)
    found = [parse_sentence(sentence) for sentence in _worth_reading(text)]
    notes = [intent for intent in found if isinstance(intent, TakeNote)]
    work: list[Intent] = [intent for intent in found if not isinstance(intent, TakeNote | SmallTalk)]
    if notes or len(text) > _LONG:
        work = [TakeNote(task=any(note.task for note in notes)), *work]
    return tuple(work[:_MOST_INTENTS]) or tuple(found[:1])


def is_statement(text: str) -> bool:
    """Whether `text` tells something, beside whatever else it does."""
    return any(isinstance(intent, TakeNote | CorrectStatement) for intent in parse_message(text))


def parse_sentence(sentence: str) -> Intent:
    """What one sentence asks for."""
    plain = _without_courtesy_behind(sentence.replace("’", "'").strip()) or sentence.strip(_ENDS)
    bare = _COURTESY_BEFORE.sub("", plain, count=1)
    if not plain:
        return SmallTalk("help") if "?" in sentence else TakeNote()
    if len(plain) <= _LONGEST_READ:
        intent = _by_rule(plain) or _by_rule(bare)
        if intent is not None:
            return intent
    if is_question(sentence, bare):
        return AskHistory(bare, "assistant" if asks_the_assistant(bare) else "user")
    return TakeNote()


def _by_rule(text: str) -> Intent | None:
    for make, alternatives in INTENT_RULES:
        match = next((m for pattern in alternatives if (m := pattern.fullmatch(text))), None)
        intent = make(match) if match else None
        if intent is not None:
            return intent
    return None


def _without_courtesy_behind(text: str) -> str:
    text = text.rstrip(_ENDS)
    for courtesy in _COURTESIES_BEHIND:
        before = text[: -len(courtesy)]
        if text.lower().endswith(courtesy) and before != before.rstrip(_ENDS):
            return _without_courtesy_behind(before)
    return text


def _worth_reading(text: str) -> list[str]:
    """The sentences of a message; of a long text only the first and the last, where a request would stand."""
    if len(text) <= _LONG:
        return split_sentences(text)
    lines = text.strip().splitlines()
    return [*split_sentences(lines[0][:_LONG])[:1], *split_sentences(lines[-1][-_LONG:])[-1:]]


def _list_over_lines(text: str) -> Intent | None:
    """A to-do list with an item on each line below its heading."""
    head, _, rest = text.strip().partition("\n")
    match = _LIST_HEAD.fullmatch(head.strip())
    items = tuple(item for line in rest.splitlines() if (item := _BULLET.sub("", line).strip()))
    return AddTodos(label_items(items, match["label"])) if match and items else None
