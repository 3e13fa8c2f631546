"""What a person wrote, sentence by sentence, with what is not their own words blanked out. Pure.

What always holds:
- A sentence's `text` is verbatim but for white space; in `own_text` what stands between quotation marks or in code
  is blanked in place, so that no rule reads somebody else's words as the person's. Lines that quote or are code are
  no sentences.
- Pasted mail, articles, lyrics, logs, code and orders to a machine are told by their form, not by what they say, and
  blanked in place, so that the rest stands where it stood. In doubt a pasted block is nobody's: the message log has
  it.
- What people type for short ("im", "u", "w/") is spelled out for reading alone, only where it stands for one thing
  wherever it is typed; what was said is kept as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from assistant.core.text import lazy_regex

_SPELLED = {
    "im": "i'm",
    "ive": "i've",
    "dont": "don't",
    "doesnt": "doesn't",
    "didnt": "didn't",
    "cant": "can't",
    "wont": "won't",
    "isnt": "isn't",
    "arent": "aren't",
    "wasnt": "wasn't",
    "werent": "weren't",
    "havent": "haven't",
    "hasnt": "hasn't",
    "wouldnt": "wouldn't",
    "couldnt": "couldn't",
    "shouldnt": "shouldn't",
    "youre": "you're",
    "theyre": "they're",
    "theyve": "they've",
    "weve": "we've",
    "hes": "he's",
    "shes": "she's",
    "thats": "that's",
    "theres": "there's",
    "whats": "what's",
    "whos": "who's",
    "wheres": "where's",
    "hows": "how's",
    "lets": "let's",
    "u": "you",
    "ur": "your",
    "r": "are",
    "n": "and",
    "w": "with",
    "w/": "with",
    "w/o": "without",
    "b4": "before",
    "b/c": "because",
    "cos": "because",
    "coz": "because",
    "cuz": "because",
    "'cause": "because",
    "cause": "because",
    "pls": "please",
    "plz": "please",
    "thx": "thanks",
    "yr": "year",
    "yrs": "years",
    "wk": "week",
    "wks": "weeks",
    "mth": "month",
    "mths": "months",
    "hrs": "hours",
    "mins": "minutes",
    "bday": "birthday",
    "b-day": "birthday",
    "thru": "through",
    "til": "until",
    "ppl": "people",
    "abt": "about",
    "tho": "though",
    "tmrw": "tomorrow",
    "tmr": "tomorrow",
    "2day": "today",
    "2nite": "tonight",
    "tonite": "tonight",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to",
    "kinda": "kind of",
    "rn": "right now",
    "bf": "boyfriend",
    "gf": "girlfriend",
    "sis": "sister",
    "bro": "brother",
    "hubs": "husband",
    "em": "them",
    "'em": "them",
    "msg": "message",
    "msgs": "messages",
    "appt": "appointment",
    "appts": "appointments",
    "apt": "flat",
    "bc": "because",
    "n't": "not",
    "&": "and",
    "addy": "address",
    "pw": "password",
    "wfh": "work from home",
    "fave": "favourite",
    "fav": "favourite",
    "meds": "medication",
    "info": "information",
}
_FOR_SHORT = lazy_regex(
    r"(?<![\w'’/&+.-])(?:"
    + "|".join(re.escape(one) for one in sorted(_SPELLED, key=lambda word: (-len(word), word)))
    + r")(?![\w’/&+-]|'(?!s\b)\w|\.\w)",
    re.IGNORECASE,
)
# "its" is "it's" where no noun can follow; before a noun it stays what it is.
_ITS = lazy_regex(
    r"\bits(?= (?:a|an|the|my|our|his|her|not|no|on|in|at|from|for|with|about|called|only|now|all|just|been|[\d£$€]"
    r"|\w+day|mon|tue|wed|thu|fri|sat|sun)\b)",
    re.IGNORECASE,
)
_WERE = lazy_regex(r"^were(?= (?:\w+ing|not|all|both|at|in|on|with|from|off|moving)\b)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def expand_shorthand(text: str) -> str:
    """The text with nothing in it for short."""
    plain = _FOR_SHORT.sub(lambda found: _SPELLED[found[0].lower()], text.replace("’", "'"))
    return _WERE.sub("we're", _ITS.sub("it's", plain))


BLANKED_CHARACTER = "·"
_ASIDE = lazy_regex(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^(?: {4}|\t)[^\n]*$|^[ \t]*>[^\n]*$", re.DOTALL | re.MULTILINE)
# As long as a quotation may be: what is never closed must not be looked for to the end, again and again.
_LONG = r"{1,300}"
_WITHIN = lazy_regex(
    rf"`[^`\n]{_LONG}`|\"[^\"\n]{_LONG}\"|“[^”\n]{_LONG}”|«[^»\n]{_LONG}»|„[^“”\n]{_LONG}[“”]"
    rf"|「[^」\n]{_LONG}」|『[^』\n]{_LONG}』"
)
_BREAK = lazy_regex(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])[」』”]*|\n\s*")
# A point that ends no sentence: abbreviations, initials, numbers before a number or in front of a month.
_ABBREVIATION = lazy_regex(
    r"(?:\b(?:dra?|mrs?|ms|st|sra?|hr|fr|mme|mlle|prof|vs|approx|ca|bzw|z\.\s?b|e\.g|i\.e|jr)"
    r"|\b[B-HJ-Z])\.$",
    re.IGNORECASE,
)
_NUMBER = lazy_regex(r"(?:\bn[or]|\b\d{1,2})\.$", re.IGNORECASE)
_GOES_ON = lazy_regex(r"\d|(?:jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[kc]t|nov|de[csz])", re.IGNORECASE)
_LOOKED_BACK = 12
_LISTED = lazy_regex(r"(?:[-*•+]|\d{1,2}[.)]|\[[ x]?\])\s+")
_WH = r"(?:what|where|when|who|whom|whose|why|how|which)"
_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|shall|may|might"
    r"|isn'?t|aren'?t|don'?t|doesn'?t|didn'?t|can'?t|won'?t)"
)
_ASKS = lazy_regex(
    rf"(?:(?:and|so|but|or|ok(?:ay)?|hey|hi|well|also|then)[ ,]+)*(?:{_WH}(?:'s|'re| {_AUXILIARY})\b"
    rf"|(?:which|what|how|whose) \w+ {_AUXILIARY}\b|how (?:much|many|long|far|old|often)\b|(?:what|how) (?:about|if)\b"
    r"|(?:can|could|do|does|did|should|would|will) (?:an?|people|anyone|most|two|three) "
    rf"|{_AUXILIARY} (?:i|you|we|they|he|she|it|my|our|the|there|this|that|these|any\w*|some\w*)\b"
    r"|(?:is|are|does|did) (?!allergic|due|called|from|based|now|not|also|always)\w+ .*\b(?:ok(?:ay)?|safe|bad|good"
    r"|rude"
    r"|normal|worth|true|better|too (?:many|much|late|early)|the same|like|enough|possible|legal)\b[^,;]{0,30}$)"
    rf"|.*\b(?:what|how|where|when|why|who) (?:do|does|did|should|can|could|would) (?:i|we|they|he|she|it)\b",
    re.IGNORECASE,
)
_ASKS_CJK = lazy_regex(
    r"[吗嗎呢]$|什么|甚麼|为什么|怎么|怎麼|哪[里裡儿个個]|谁|誰|几点|多少|(?:です|ます|でした|ました)か$"
    r"|何(?:[がをで時]|です)|どこ|いつ(?!も)|だれ|どうして|なぜ"
)
_MARK = lazy_regex(r"[?？]\W*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`words` as they were written, `own` as long as that, without what is quoted in it."""

    text: str
    own_text: str

    @property
    def is_question(self) -> bool:
        """With its mark, or without it in the order of words that asks."""
        bare = self.own_text.rstrip(".!。！… ")
        return bool(_MARK.search(self.own_text) or _ASKS.match(self.own_text) or _ASKS_CJK.search(bare))

    @property
    def has_question_mark(self) -> bool:
        return bool(_MARK.search(self.own_text))


def split_sentences(text: str) -> list[Sentence]:
    """In their order; what has no letter of the person's own is none."""
    own = blank_quotations(text)
    found: list[Sentence] = []
    for start, end in _spans(own):
        listed = _LISTED.match(own, start, end)
        start = listed.end() if listed else start
        words = Sentence(" ".join(text[start:end].split()), " ".join(own[start:end].replace("’", "'").split()))
        if any(map(str.isalpha, words.own_text)):
            found.append(words)
    return found


def blank_quotations(text: str) -> str:
    """The text without what is quoted in it."""
    return _WITHIN.sub(_blanked, _ASIDE.sub(_gone, text))


def _gone(found: re.Match[str]) -> str:
    """As long as it was, so that places stay places."""
    return "".join("\n" if char == "\n" else " " for char in found[0])


def _blanked(found: re.Match[str]) -> str:
    """The marks stay, and the end of a sentence that ends with the quotation."""
    text, after = found[0], found.string[found.end() : found.end() + 2]
    ends = text[-2] in ".!?" and after[:1].isspace() and after[1:].isupper()
    return f"{text[0]}{BLANKED_CHARACTER * (len(text) - 2 - ends)}{text[-2:] if ends else text[-1]}"


def _spans(own: str) -> Iterator[tuple[int, int]]:
    start = _skipped(own, 0)
    for found in _BREAK.finditer(own):
        said = own[max(start, found.start() - _LOOKED_BACK) : found.start()]
        if "\n" not in found[0] and _is_inside(said, own[found.end() : found.end() + 3]):
            continue
        # Marks that close a quotation belong to what they close.
        end = found.end() - (len(found[0]) - len(found[0].rstrip()))
        if end > start:
            yield start, end
            start = _skipped(own, found.end())
    if start < len(own):
        yield start, len(own)


def _is_inside(said: str, following: str) -> bool:
    if _ABBREVIATION.search(said):
        return True
    return bool(_NUMBER.search(said) and _GOES_ON.match(following))


def _skipped(own: str, start: int) -> int:
    while start < len(own) and own[start].isspace():
        start += 1
    return start


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


def blank_foreign_text(text: str) -> str:
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


def starts_role_play(text: str) -> bool:
    """Whether a game begins in which people say what is true of nobody."""
    return bool(_PLAY.search(expand_shorthand(text)) or _ACTION.search(text))


def ends_role_play(text: str) -> bool:
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
