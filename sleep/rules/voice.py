"""What of a message is somebody else's text: pasted mail, articles, lyrics, logs, code, orders to a machine. Pure.

What always holds: it is told by its form, not by what it says, and what is somebody else's is blanked in place, so that
the rest stands where it stood. In doubt a pasted block is nobody's: the master log has it still.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex
from sleep.rules.shorthand import spelled_out

_FENCED = lazy_regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
# From here to the end, or to a paragraph in which the person speaks to the assistant again.
_HEADER = lazy_regex(
    r"^[ \t]*(?:-{2,}.{0,40}-{2,}|(?:from|to|cc|sent|subject|date|re|fwd|von|an|betreff|gesendet|datum|de|à|objet"
    r"|asunto|para|fra|til|emne)[ \t]*:[ \t]*\S.*"
    r"|on .{6,60} wrote:|am .{6,60} schrieb.*:)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_LETTER = lazy_regex(
    r"^[ \t]*(?:dear|hi|hello|hey|good (?:morning|afternoon))[ ,]+[^\n.!?]{1,40},[ \t]*\n", re.I | re.M
)
_SAME_LINE = (
    r"(?:translate|proof-?read|summari[sz]e|rewrite|reword|rephrase|shorten|edit|polish|paraphrase|correct|improve"
    r"|critique|grammar|spelling"
    r"|tl;?dr|übersetze?|traduis|traduce|oversett|korrigiere?)"
)
_WORKED_ON = (
    rf"(?:{_SAME_LINE}|tidy(?: up)?|check|fix|review|analy[sz]e|explain|turn|convert|format|read|look at"
    rf"|make|put|what's wrong|why does)"
)
_SHOWN = (
    r"(?:here(?:'s|’s| is| are)|this is|below|following|text|lyrics?|poem|email|e-mail|mail|letter|article"
    r"|paragraph|post|ad|advert"
    r"|review|message|log|logs|output|error|transcript|quote|notes|draft|listing|description|extract|excerpt"
    r"|passage|script|caption)"
)
_SPOKE = (
    r"(?:here(?:'s|’s| is| are) (?:the|what|his|her|their|my)|(?<!to )(?<!should )(?<!must )says?|said|wrote|writes"
    r"|texted|texts|replied|reads"
    r"|goes|sent (?:me|us)|got (?:this|back)|(?<!to )(?<!should )tells?|answered|posted"
    r"|schreibt|sagt|écrit|dit|escribe|dice|skriver|sier)"
)
_INTRODUCED = lazy_regex(
    rf"^(?![^\n:]*\b(?:remember|note|fyi|told you)\b)(?:[^\n:]{{0,160}}\b(?:{_SAME_LINE}"
    rf"|{_SPOKE})\b[^\n:]{{0,80}}:(?P<after>[ \t]*(?=\S)|[ \t]*\n)"
    rf"|[^\n:]{{0,160}}\b(?:{_WORKED_ON}|{_SHOWN}|{_SPOKE}|these)\b[^\n:]{{0,80}}:[ \t]*\n)",
    re.IGNORECASE | re.MULTILINE,
)
# An order to work on a text, with nothing but the text after its line.
_ORDERED = lazy_regex(
    rf"^(?:(?:can|could|would|will) you |please |pls |hey |ok |and |now |quick )*{_WORKED_ON}\b[^\n]{{0,120}}\n+(?=\S)",
    re.IGNORECASE,
)
_SPEAKS_AGAIN = lazy_regex(
    r"\n[ \t]*\n(?=[^\n]{0,160}\?[ \t]*(?:\n|\Z)|(?:what|how|should|shall|can|could|would|please|do|does|is|help"
    r"|tell|i|my"
    r"|we|so|anyway|thoughts)\b[^\n]{0,300}\Z)",
    re.IGNORECASE,
)
_MACHINE_LINE = lazy_regex(
    r"^(?=\S| )[ \t]*+(?:\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d|\[?\d\d:\d\d(?::\d\d)?\]?[ \t]+(?:\w+:|\[|<|-)"
    r"|(?:[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d)"
    r"|\[?(?:info|warn(?:ing)?|error|debug|fatal|trace|critical|notice)\b[\]: ]|traceback \(most|file \"|at"
    r" [\w.$]+\(|(?:[\w.]+)?(?:error|exception)\b:?"
    r"|[$#%>]\s|(?:def|class|import|from|return|const|let|var|function|public|private|if|for|while|elif|else|try"
    r"|with|select|insert|update|create)\b.*"
    r"[:;({}]\s*$|[{}\[\]();]+,?$"
    r"|[\w\"'.-]+\s*[:=]\s*[\"'{\[(].*|<[/!?a-z][^>]*>|[^\s,;|]+(?:[,;|\t](?! )[^,;|\n]*){3,}$|.*[;{}]\s*$"
    r"|(?:npm|pip|git|docker|sudo|apt|cd|ls|curl)\s\S+.*--?\w)[^\n]*$",
    re.IGNORECASE | re.MULTILINE,
)
_INJECTED = lazy_regex(
    r"\b(?:ignore|disregard|forget|override) (?:all |any |the |your |every )*(?:previous |prior |above |earlier "
    r"|other )*"
    r"(?:instructions?|rules?|prompts?|guidelines?|restrictions?)\b|^[ \t]*+(?:\[?(?:system|assistant"
    r"|developer)\]?\s*(?:prompt|message|note)?\s*[:>\]])"
    r"|\byou (?:are|must) now\b.{0,40}\b(?:admin|mode|unrestricted|jailbr|developer|dan)\b|\b(?:developer|admin|god"
    r"|debug) mode\b"
    r"|\b(?:save|store|write|add|commit) (?:this |that |it |the following )?(?:to|in|into) (?:your |the"
    r" )?(?:long.term )?memory\b.{0,20}\bthe user\b"
    r"|\byou (?:are|have) (?:now )?(?:dan\b|no (?:rules|restrictions|limits))|\byou're dan\b|\bnew (?:system"
    r" )?(?:instructions|prompt)\b|\bthe user(?:'s)? (?:is|has|name|owns|wants|likes)\b|<\|?(?:system|im_start)",
    re.IGNORECASE | re.MULTILINE,
)
_VERSE_LINE = lazy_regex(r"^[ \t]*(?![-*•\d])[^\n\d:@=]{8,70}[^\n\d.:;?@=]$")
_PART = (
    r"(?:\w+ )?(?:pirate|king|queen|wizard|detective|butler|waiter|knight|interviewer|barista|villain|dragon|monster"
    r"|hero|shopkeeper|dungeon master|dm|captain|alien|robot|ghost|vampire|elf|examiner|recruiter|tourist|narrator)\b"
)
_PLAY = lazy_regex(
    r"\b(?:play(?:ing)? the (?:part|role) of|let'?s (?:pretend|role-?play|play(?:,| a (?:game|scene)| pretend)"
    r"|do a (?:scene|role-?play))"
    rf"|role-?play(?:ing)?\b|text adventure|(?:you(?:'re| are| be| play)|i'?ll (?:be|play)|as) (?:the|an?|my) {_PART}"
    r"|pretend (?:i'?m|i am|you'?re|your|you are|we'?re|to be|that)|act (?:as|like) (?:an?|the|my)\b|in character\b"
    r"|dungeons (?:and|&) dragons|once upon a time)",
    re.IGNORECASE,
)
_PLAY_ENDS = lazy_regex(
    r"\b(?:end (?:of )?(?:scene|play|game|role)|stop (?:the |role-?)?(?:play|playing|game)|out of character|ooc"
    r"|back to (?:real|normal|business|work)|enough (?:of that|playing)"
    r"|no more (?:playing|role)|right,? (?:seriously|real life|for real)|(?:game|play) over|that was fun)\b",
    re.IGNORECASE,
)
_ACTION = lazy_regex(r"(?<![\w*])\*[^*\n]{3,80}\*(?![\w*])")
_FEW_LINES = 4


def own_voice(text: str) -> str:
    """The text with what is not the person's own voice blanked; as long as it was, line breaks kept."""
    if _INJECTED.search(text) or _PLAY.search(text) or _ACTION.search(text):
        return _blank(text)
    own = _FENCED.sub(lambda found: _blank(found[0]), text)
    for form in (_HEADER, _INTRODUCED, _ORDERED, _LETTER):
        found = form.search(own)
        if found is not None:
            start = found.start() if form in (_HEADER, _LETTER) else found.end()
            own = _without_block(own, start, whole=form is _INTRODUCED and not found[0].endswith("\n"))
    own = _without_verse(own)
    return _MACHINE_LINE.sub(lambda found: _blank(found[0]), own) if "\n" in own or _is_log(own) else own


def opens_play(text: str) -> bool:
    """Whether a game begins in which people say what is true of nobody."""
    return bool(_PLAY.search(spelled_out(text)) or _ACTION.search(text))


def ends_play(text: str) -> bool:
    return bool(_PLAY_ENDS.search(text))


def _is_log(text: str) -> bool:
    return bool(_MACHINE_LINE.match(text))


def _without_block(text: str, start: int, *, whole: bool) -> str:
    """Without what stands from `start` on, up to where the person speaks again; `whole`: that line alone was begun with
    it, so a new line may be the person's."""
    again = _SPEAKS_AGAIN.search(text, start)
    end = again.end() if again else len(text)
    if whole and not again:
        line = text.find("\n", start)
        end = line if line > 0 else len(text)
    return text[:start] + _blank(text[start:end]) + text[end:]


def _without_verse(text: str) -> str:
    """Lines of a song or a poem: many in a row that end like no sentence and begin like one."""
    if text.count("\n") < _FEW_LINES - 1:
        return text
    lines = text.split("\n")
    kept: list[str] = []
    run: list[str] = []
    for line in [*lines, ""]:
        if _VERSE_LINE.match(line):
            run.append(line)
            continue
        verse = len(run) >= _FEW_LINES and sum(one.strip()[:1].isupper() for one in run) > len(run) / 2
        kept += [_blank(one) if verse else one for one in run]
        run = []
        kept.append(line)
    return "\n".join(kept[: len(lines)])


def _blank(text: str) -> str:
    return "".join("\n" if char == "\n" else " " for char in text)
