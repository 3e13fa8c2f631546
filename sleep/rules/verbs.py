"""Verbs and days of English as parts of patterns: what people do habitually, and what changes a life. Pure.

What always holds: verbs stand here in their base form once; the form for others is made of it.
"""

from __future__ import annotations

MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul"
    r"|aug|sept?|oct|nov|dec)"
)
DAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thu(?:rs?)?|fri)"
_TENS = r"(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
_SMALL_ORDINAL = (
    r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|(?:thir|four|fif|six|seven"
    r"|eigh|nine)teenth)"
)
ORDINAL = rf"(?:\d{{1,2}}(?:st|nd|rd|th)|(?:(?:twenty|thirty)[- ])?{_SMALL_ORDINAL}|(?:twent|thirt)ieth)"
NUMERAL = (
    r"(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen"
    rf"|{_TENS}(?:-\w+)?|hundred|both|half)"
)
_LIVED = """
live work teach run own rent study speak play sing drive cycle volunteer coach manage lead share keep take wear use
get have go eat drink sleep start open close cost come arrive leave handle charge pay earn save pick drop collect
cook bake bring prefer like love hate enjoy avoid belong hang stay board commute practise practice train swim meet
visit sell buy grow breed foster mind suffer react help walk feed water spend celebrate observe fast pray support
follow bank hold carry turn expire fly travel head set deal report chair organise organize host serve deliver weld
build paint farm fish hunt repair fix tend tutor nurse mow rehearse perform compose edit translate design code
retire move renew cover include lie stand store shut sponsor insure owe lend let sublet snore limp stammer bite
scratch bark moult shed trigger swell flare expect tune treat house employ attend wake nap require identify
hibernate order supply
"""


def _third(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"


# What one does of oneself is only lasting with these: "I see", "I need", "I get" are of the moment.
_OF_ONESELF = """
live work teach run own rent study speak play sing drive cycle volunteer coach manage lead share keep take wear use
eat drink sleep commute practise practice train swim suffer foster mind grow breed sell earn pay charge farm fish
hunt weld build paint code design edit translate tutor nurse mow rehearse perform compose belong bank celebrate
observe fast board collect do react look limp stammer snore support follow owe lend let sublet care shop bake cook
travel fly walk ride row climb dance knit sew draw pray worship vote identify
"""
DONE_BY_ONESELF = "|".join(sorted({*_OF_ONESELF.split()}, key=lambda verb: (-len(verb), verb)))
DONE_BY_OTHERS = "|".join(
    sorted({_third(verb) for verb in _LIVED.split()} - {"has"}, key=lambda verb: (-len(verb), verb))
)
NO_HABIT = (
    rf"(?:{DONE_BY_ONESELF}|am|are|was|were|do|does|did|have|has|had|can|could|will|would|should|shall|may|might"
    rf"|must|need|needs|want|think|know|knew|see|saw|guess|hope|mean|feel|felt|get|got|like|love|hate"
    r"|prefer|enjoy|keep|kept|say|said|wonder|agree|disagree|understand|believe|remember|forget|forgot|bet|suppose"
    r"|reckon|promise|swear|wish|doubt|assume|hear|heard|notice|mind|care|try|look|ask|tell|told"
    r"|call|come|came|went|made|make|took|gave|give|found|find|bought|ate|drank|slept|woke|ran|sat|left|lost|won"
    r"|met|fell|thought|wrote|spent|built|paid|sold|taught|caught|broke|began|drove|flew|rode"
    r"|sang|spoke|stood|swam|wore|sent|hit|cut|put|let|set|hurt|bit|dont|cant|didnt|never|always|just|really|only"
    r"|usually|often|now|then|expect|appreciate|recommend|admit|accept|dread|fear|fancy|deserve|miss"
    r"|ought|used|meant|plan|stop|start|finish|wait|check|click|run|open|close|press|refresh|got|both|who|and|had"
    r"|were|ended|seem|sound|plan|intend|blame|thank|hang|head|stay|change|move|switch|add|delete|end)\b"
)
OFTEN = (
    r"(?:(?:always|usually|never|only|also|mostly|both|all|still|now|really|do|don't|doesn't|won't|can't|can"
    r" only) )*"
)
CHANGED = (
    "moved|switched|changed|started|stopped|quit|retired|retrained|sold|signed|joined|left (?:the|my|his|her|him"
    "|school|home|work|for|in|on|me|us)|married|divorced|separated"
    "|split up|broke up|gave up|given up|took up|taken up|handed in|settled|became|promoted|hired|fired|laid off|sacked"
    "|made redundant|graduated|qualified|passed|failed|adopted|named|renamed|inherited|replaced|redone|rebuilt|renewed"
    "|cancelled (?:my|our|the)|booked|enrolled|signed up|registered|diagnosed|born|pushed (?:to|back)"
    "|brought forward|postponed|rescheduled|went up|gone up|went down|gone down|went (?:vegan|veggie|part.time"
    "|full.time|freelance|back to)|got engaged|got married|getting married|learnt|learned|grew up|raised in"
    "|swapped|dropped (?!my|the|a|it|his|her|out of the)|ditched|expired|lapsed|banked|converted|emigrated"
    "|(?:bought|ordered) (?:a|an|the|our|my)|(?:picked|chose) (?!up|on|me|her|him|it)|had (?:a|his|her|my)"
    " \\w+ (?:out|removed|replaced|fitted)|built (?:a|the|our)|set up|put (?:me|us|him|her|them) on|took over"
    "|taken over|took out|took (?:a|the|on a) (?:new )?(?:post|job|place|position|role)|gone over to|went over to"
    "|handed (?:back|over)|gone back(?! to)"
    "|expecting(?=$|[!.,]| (?:a baby|twins|in|our|their|her|my)\\b)|proposed|lost (?:our|my|his|her) (?:dog|cat|job"
    "|mum|mother|dad|father|sight|hearing|licence|license)|opened|closed down|got (?:the job|the keys|into|accepted"
    "|in to|a (?:new|job|place|dog|cat"
    "|puppy|kitten|promotion|rise|raise))|fixed until|accepted (?:the|an?|my) (?:job|post|offer|place|role"
    "|position)|been made (?:a |an |the )?\\w+"
)
