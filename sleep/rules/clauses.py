"""Sentences taken apart into clauses, what a clause does (asks, orders, supposes or states), and fragments joined.
Pure.

What always holds: words stay as they were written, in their order; a clause is a part of its sentence word for word.
What is not plainly a statement tells nothing. A sentence without a verb or a subject is joined to the one it belongs
to: "Friday the 29th, half past nine." says something only behind the sentence that says of what; "The dentist!" only
before the one that goes on about him.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from assistant.core.text import lazy_regex
from sleep.rules.sentences import Sentence, expand_shorthand

_OPENER = lazy_regex(
    r"(?:(?:(?:and|also|oh|ah|so|well|btw|by the way|fyi|anyways?|plus|then|but|actually|basically|incidentally|cos"
    r"|because|since|ps|p\.s)\b(?! that\b)"
    r"|(?:right|ok(?:ay)?|hey|hi|hello|(?:good )?(?:morning|evening|afternoon)|yeah|yep|yes|no|nope|nah|hm+|ha|ugh"
    r"|oof|phew|ooh|thanks|thank you|ta|cheers|great|perfect|cool|nice"
    r"|lovely|honestly|look|listen|sorry|quick one|one more thing|another thing|wait|damn|good news|bad news"
    r"|finally|heads up|update|sad news|big news)(?: \w+)?(?=[\s]*[,.:!–-]))[\s,.:!–-]*)+",
    re.IGNORECASE,
)
_CUT = lazy_regex(
    r"(?<=\w\w\w[.!…])\s+(?=\S)|\s*;\s+|\s+[-–—]+\s+|\s*—\s*|(?<=\w)\s+\((?=[^)]{6,}\))"
    r"|(?<=[\w)\"”'])\s*[,:]\s+(?:(?:and|but|so|also|plus"
    r"|because|cos|since|as|although|though|while|yet|then|or)\s+)?"
    r"|\s+(?:but|because|cos|since|although|so)\s+(?=(?:i|i'm|i've|we|we're|my|our|he|she|they|it|it's|the|there"
    r"|\w+'s)\b)"
    r"|\s+and\s+(?=(?:apparently |then |now |also )?(?:i|i'm|i've|i'll|we|we're|we've|my|our|he|she|he's|she's|they"
    r"|it's|remind|make|can|could|please)\b)",
    re.IGNORECASE,
)
_BASE = (
    r"add|alphabeti[sz]e|analy[sz]e|answer|apply|archive|ask|attach|bake|blame|book|bring|build|calculate|call"
    r"|cancel|carry on|change|check|choose|clean|clear|close"
    r"|combine|come|compare|compose|compute|continue|convert|cook|copy|correct|count|create|cut|debug|define|delete"
    r"|describe|design|dig|do|double.check|draft|draw|drop"
    r"|edit|email|end|enter|estimate|expand|explain|export|extract|figure|file|fill|find|finish|fix|flip|forget"
    r"|format|generate|get|give|go|google|guess|have a|help|hold"
    r"|hang on|highlight|ignore|imagine|import|include|increase|insert|install|invent|keep|leave|let|list|look"
    r"|lower|mail|make|merge|message|mind|move|name|note|open"
    r"|order|organi[sz]e|outline|paste|pause|phone|pick|plan|play|polish|pop|post|prepare|pretend|print|proofread|quiz"
    r"|propose|pull|put|quote|rank|rate|read|recommend"
    r"|redo|reduce|refactor|remember|remind|remove|rename|repeat|rephrase|replace|reply|report|reread|research"
    r"|reserve|rewrite|ring|round|run|save|say|schedule|search|see if"
    r"|send|set|shorten|show|simplify|skip|solve|sort|spell|split|start|start over|stick|stop|stretch|suggest|sum"
    r"|summari[sz]e|suppose|swap|switch|take|talk|tell|text"
    r"|think|tidy|translate|try|turn|undo|update|use|wait|wake|walk|warn|work out|write"
)
_ORDER = lazy_regex(
    rf"(?:(?:please|pls|kindly|just|now|quickly|then|maybe)[ ,]+)*(?:(?:don't|do not|never mind|let's(?! go with)"
    rf"|lets)\b|(?:can|could|would|will|can't|won't) (?:you|u)\b|(?!(?:change of|book club|start date|end date|move"
    rf" (?:in|out) date|post ?code|check.?(?:in|up|out)|print shop|record|sort of|kind of|order number|plan is|cook"
    rf"|clean) )(?:{_BASE})\b(?!'|\s*(?:is|are|was|were|has|costs?|starts?|ends?"
    r"|went|goes|comes?|runs?|opens?|closes?|moved|lives?|gets?|night|day)\b)|i need (?:you|a|an|some|to|help"
    r"|your)\b|i want (?:you|a|an|to|something)\b|i'd like\b|i would like\b|help\b|any (?:chance|idea|ideas|tips"
    r"|thoughts"
    r"|advice|suggestions)\b|need (?:a|an|to|some|your|help|you)\b|want (?:a|an|to|some|you)\b|looking for\b"
    r"|looking to\b|todo\b|to-do\b|(?:how|what) about\b)",
    re.IGNORECASE,
)
_STANDING = lazy_regex(
    r"\b(?:always|never|from now on|in future|going forward|every time|whenever|any ?more|ever|by default|for"
    r" (?:all|every|any)|unless i|each time|from here on|generally|as a rule|in 24.hour|in metric|(?:please )?stop"
    r" (?:saying|using|calling|asking|sending|adding|suggesting))\b"
    r"|^(?:please )?call (?:me|us)\b|^(?:please )?(?:don't|do not|no) (?:call|use|send|suggest|book|schedule"
    r"|address|recommend|offer|ask|phone|ring|give|put|include|write)(?:ing)? (?:me|us|any|anything|emojis?"
    r"|exclamation|bullet|jargon)\b"
    r"|^(?:please )?(?:keep|make) (?:your|all|any|the|my) (?:answers?|replies|messages|responses|summaries)\b"
    r"|^(?:please )?(?:use|write|speak|answer|reply|talk|give)\b.{0,50}\b(?:with me|to me|please|british|metric"
    r"|celsius|24.hour|plain|short)\b"
    r"|^(?:please )?no (?:\w+ )?(?:calls|emojis?|emails|meetings?|bullet points|exclamation|small talk|jargon)\b"
    r"|\b(?:when|if) you (?:send|give|write|book|make|order|suggest|plan|show|tell|call) (?:me|us|for me|for us"
    r"|things|it)\b",
    re.IGNORECASE,
)
_REMEMBER = lazy_regex(
    r"^(?:please |can you |could you |just )*(?:remember|note|bear in mind|keep in mind|make a note|don't forget|do"
    r" not forget|save|jot down|write down|for the record|know)"
    r"(?: down)?(?: that| this| for (?:me|later|next time))?[:, ]+(?!to\b|when\b|what\b|how\b|the (?:time|days?)\b)",
    re.IGNORECASE,
)
_SUPPOSED = lazy_regex(
    r"^(?:if(?! \w+ (?:ever )?(?:asks?|needs?|wants?)\b)|unless|maybe|perhaps|suppose|supposing|imagine|pretend|what if"
    r"|say i|say we|let's say|i wonder|wonder|wish|i wish|hopefully|i hope|i bet|might|may|guess|i guess|i suppose"
    r"|i think i|i might"
    r"|would|could|should|wouldn't|couldn't|shouldn't|(?:it |that |this |you )?(?:sounds?|looks?|feels?|smells?"
    r"|tastes?) like|reminds me of|that's what|that's how|fingers crossed|wish me|assuming|as if|had i|were"
    r" i|i'd (?:love|kill|say|guess|better)|thinking (?:of|about)|ideally|theoretically|hypothetically|wenn|falls)\b"
    r"|^(?:i|we|he|she|they|you|it)'d (?!rather|like|prefer|been|had|better|sooner|just|already)"
    r"|\b(?:would kill|could eat|could murder|for a laugh|if i had|if only|i dreamt|i dreamed|in my dream|had a"
    r" dream)\b",
    re.IGNORECASE,
)
_UNKNOWN = lazy_regex(
    r"\b(?:no idea|not sure|unsure|don't (?:know|remember|recall|understand|get|think|see|mind|care|care|worry)"
    r"|dunno|do not know|can't (?:remember|recall|tell|decide|think|find|see|work out|figure|sleep|wait|believe|get)"
    r"|couldn't|haven't (?:decided|a clue|got a clue|heard|seen)|forgot(?! to (?:say|tell|mention))|forgotten"
    r"|i have to (?:admit|say|go|run)"
    r"|never heard|no clue|not that i know|what i was|won't (?:load|open|start|work|turn|let|stop)"
    r"|doesn't (?:work|load|make sense|help|matter)|undecided|can't be bothered|according to|not what i (?:asked"
    r"|meant|said|wanted|was))\b",
    re.IGNORECASE,
)
_SMALL = lazy_regex(
    r"^(?:thanks?|thank you|ta|cheers|ok(?:ay)?|(?:yes|yep|yeah|no|nope|right|true|same|good|nice|great)(?=\W|$)(?!"
    r" \w)|sure|please|sorry|lol|haha\w*|hi|hello|hey|(?:morning|evening|night)\b(?! \w+s\b)|bye|perfect|cool"
    r"|lovely|brilliant|got it|will do|done|never ?mind"
    r"|no worries|no problem|fair enough|makes sense|exactly|indeed|agreed|hmm+|ugh|wow|go on|please do|see you"
    r"|speak soon|sounds good|all good|on it|have (?:a|fun)|happy|congrat\w*|enjoy|good (?:morning|night|evening"
    r"|luck|point|idea|one|shout|call))\b"
    r"(?:[\s,!.]+(?:\w+\b[\s,!.]*){0,4})?$",
    re.IGNORECASE,
)
_PRONOUN = lazy_regex(
    r"^(?:and |but |so |also |because |actually |sorry |now )*(?:it|it's|its|that|that's|this|they|they're|they've"
    r"|he|he's|she|she's|him|her|those|these|both|neither|hers|his|theirs|mine|ours|one|the other|which"
    r"|who)\b(?!'s \w+ who)",
    re.IGNORECASE,
)
_ALWAYS = lazy_regex(
    r"(?:please )?(?:(?:always|never)(?! (?:the|an?|so|been|like|mind|heard|again|in|that|this|happy|fun)\b)"
    r"|from now on|no \w+ (?:before|after))\b",
    re.IGNORECASE,
)
_STANDS_BY_ITSELF = lazy_regex(
    r"\b(?:in|with|for) (?:anything|everything|whatever) you (?:\w+ )?(?:write|send|make|book|cook|do|give|suggest"
    r"|order"
    r"|plan)|^(?:please )?(?:don't|do not|nothing|no)\b.{2,60}\b(?:unless|(?:before|after|past) (?:\d|six\b|seven\b"
    r"|eight\b|nine\b|ten\b|eleven\b|noon\b|midnight\b)|on (?:weekends|weekdays|\w+days)\b|at weekends)",
    re.IGNORECASE,
)
_STANDING_ORDERS_IT = lazy_regex(
    r"\b(?:it|this|that|these|those|the (?:text|email|draft|list|file|second|first"
    r"|last|next))\b",
    re.I,
)


def find_clauses(own: str) -> list[tuple[int, int]]:
    """Where each clause of a sentence begins and ends."""
    return list(_spans(own))


def strip_opening_words(clause: str) -> str:
    """Without the words that only begin it."""
    found = _OPENER.match(clause)
    rest = clause[found.end() :] if found else clause
    kept = rest if rest.strip(" .,!?") else clause
    asked = _REMEMBER.match(kept)
    return kept[asked.end() :] if asked else kept


def is_question_clause(clause: str) -> bool:
    clause = expand_shorthand(clause)
    return Sentence(clause, clause).is_question or Sentence(clause, strip_opening_words(clause)).is_question


def is_order(clause: str) -> bool:
    """Whether it asks for something to be done now."""
    clause = expand_shorthand(clause)
    start = strip_opening_words(clause)
    if _REMEMBER.match(clause) or is_standing_instruction(start):
        return False
    return bool(_ORDER.match(start))


def is_standing_instruction(clause: str) -> bool:
    """Whether it says how something is to be done from now on."""
    start = strip_opening_words(expand_shorthand(clause))
    if _ALWAYS.match(start) or _STANDS_BY_ITSELF.search(start):
        return True
    return bool(_STANDING.search(start) and _ORDER.match(start) and not _STANDING_ORDERS_IT.search(start))


def is_hypothetical(clause: str) -> bool:
    return bool(_SUPPOSED.search(strip_opening_words(expand_shorthand(clause))))


def is_disclaimer(clause: str) -> bool:
    """Whether it says that something is not known."""
    return bool(_UNKNOWN.search(expand_shorthand(clause)))


def is_small_talk_clause(clause: str) -> bool:
    return bool(_SMALL.match(clause.strip(" .,!?")))


def depends_on_previous(clause: str) -> bool:
    """Whether it begins with a word that stands for something said before."""
    return bool(_PRONOUN.match(expand_shorthand(clause)))


def _spans(own: str) -> Iterator[tuple[int, int]]:
    start = 0
    for found in _CUT.finditer(own):
        if found.start() > start:
            yield start, found.start()
        start = found.end()
    if start < len(own):
        yield start, len(own)


_REMINDER = lazy_regex(r"\b(?:remind|remember|forget)\b", re.IGNORECASE)


def mentions_reminder(clause: str) -> bool:
    return bool(_REMINDER.search(clause))


_JOKE = lazy_regex(
    r"\b(?:jk|just kidding|(?:obviously |only |just )?(?:joking|kidding)|haha\w*|lmao|rofl|not"
    r" really lol)\b",
    re.IGNORECASE,
)


def is_joke(sentence: str) -> bool:
    return bool(_JOKE.search(sentence))


_MOST_WORDS = 9
_MOST_OF_A_TOPIC = 4
_LONGEST = 380
_FINITE = lazy_regex(
    r"\b(?:am|is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|would|shall|should|may|might|must|cannot"
    r"|\w+n't|got|gets?|went|goes?|came|comes?|took|takes?|gave|gives?|made|makes?|said|says?|told|tells?|saw|sees?"
    r"|knew|knows?|thought|thinks?|found|felt|feels?|left|kept|keeps?|heard|began|ran|runs?|sat|stood|lost|won|met"
    r"|bought"
    r"|brought|taught|sold|sent|spent|built|paid|fell|flew|drove|wrote|ate|drank|slept|bit|hit|cut|put|let|set|hurt"
    r"|quit|read|led|became|forgot|meant|lives?|works?|wants?|needs?|likes?|loves?|hates?|looks?|seems?|sounds?|means?"
    r"|hopes?|wish|wishes|starts?|ends?|stays?|plays?|pays?|eats?|drinks?|uses?|guess|suppose|\w{3,}ed)\b"
    r"|\w['’](?:m|re|ve|ll|d)\b|\b(?:it|he|she|that|there|what|who|here)['’]s\b"
    r"|^(?:\w+ ){0,2}\w+['’]s (?:an?|the|my|our|not|on|in|at|with|from|off|\w+ing|\d)\b",
    re.IGNORECASE,
)
_PERSON = lazy_regex(r"^(?:and |but |so )?(?:i|we|you|he|she|they|it|this|that|these|those|there)\b", re.IGNORECASE)
_GOES_ON = lazy_regex(
    r"^(?:and |but |so )?(?:been|since|every|always|never|only|now|it|it's|that's|that is|he's|she's|he|she|they"
    r"|they're"
    r"|which|who|with|from|for|until|till|in|at|on)\b",
    re.IGNORECASE,
)
_OUTCRY = lazy_regex(
    r"^(?:what an?|how|oh|ah|ha|heavens|goodness|gosh|god|bless|poor|silly|lucky|so much|too|no|yes|nope|nah|yeah"
    r"|ugh|wow"
    r"|lol|same|again|perfect|thanks?|please|sorry|never mind|anyway|fine|ok|okay|right|great|lovely)\b",
    re.IGNORECASE,
)


def join_fragments(sentences: Sequence[Sentence]) -> list[Sentence]:
    """The sentences, each with the fragments that belong to it."""
    found: list[Sentence] = []
    topic = False
    for one in sentences:
        last = found[-1] if found else None
        if last is not None and _belongs(last, one, topic=topic) and len(last.text) + len(one.text) < _LONGEST:
            found[-1] = Sentence(f"{last.text} {one.text}", f"{last.own_text} {one.own_text}")
            topic = False
        else:
            found.append(one)
            topic = _is_topic(one)
    return found


def _belongs(last: Sentence, one: Sentence, *, topic: bool) -> bool:
    if (
        not (_states(last) and _states(one))
        or len(last.text) != len(last.own_text)
        or len(one.text) != len(one.own_text)
    ):
        return False
    return is_fragment(one) or (topic and bool(_GOES_ON.match(expand_shorthand(one.own_text))))


def _states(one: Sentence) -> bool:
    return not (
        one.is_question or is_order(one.own_text) or is_small_talk_clause(one.own_text) or is_hypothetical(one.own_text)
    )


def is_fragment(one: Sentence) -> bool:
    """Whether it has neither a verb nor a subject of its own and is no outcry."""
    own = expand_shorthand(one.own_text)
    if len(own.split()) > _MOST_WORDS or _OUTCRY.match(own) or is_joke(own):
        return False
    return not _FINITE.search(own) and not _PERSON.match(own)


def _is_topic(one: Sentence) -> bool:
    return len(one.own_text.split()) <= _MOST_OF_A_TOPIC and is_fragment(one) and _states(one)
