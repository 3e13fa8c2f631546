"""Forms of a clause that speak for its lasting, each with its name, weight and pattern, and the verbs, days and months
of English that they are made of. Pure.

What always holds: patterns read a clause in lower case, but for those that `classifier` names. Verbs stand here
once, in their base form; the form for others is made of it.
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
FIRST_PERSON_HABITS = "|".join(sorted({*_OF_ONESELF.split()}, key=lambda verb: (-len(verb), verb)))
THIRD_PERSON_HABITS = "|".join(
    sorted({_third(verb) for verb in _LIVED.split()} - {"has"}, key=lambda verb: (-len(verb), verb))
)
NOT_HABITS = (
    rf"(?:{FIRST_PERSON_HABITS}|am|are|was|were|do|does|did|have|has|had|can|could|will|would|should|shall|may|might"
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
FREQUENCY_ADVERBS = (
    r"(?:(?:always|usually|never|only|also|mostly|both|all|still|now|really|do|don't|doesn't|won't|can't|can"
    r" only) )*"
)
LIFE_CHANGES = (
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


DURABLE_PATTERNS: tuple[tuple[str, float, str], ...] = (
    ("own", 0.6, r"\b(?:my|our|mine|ours)\b"),
    ("first", 0.2, r"\b(?:i|i'm|i've|i'll|i'd|we|we're|we've|we'll|we'd|me|us)\b"),
    (
        "first-left-out",
        0.3,
        rf"^(?:just |also |never |only |recently |finally )?(?:{LIFE_CHANGES}|allergic|born|been|off|can't|don't|live"
        rf"|work|got|had)\b",
    ),
    (
        "habit-first",
        2.4,
        rf"^(?:(?:\S+ ){{0,4}})?(?:i|we|they|you) {FREQUENCY_ADVERBS}(?:{FIRST_PERSON_HABITS})\b(?! "
        rf"(?:it|that|this|you|not|care|look|mind"
        rf"|\w+ing|three hours|ages)\b)",
    ),
    (
        "habit-any",
        1.3,
        rf"^(?:\S+ ){{0,2}}?(?:i|we) (?:also |mostly |mainly |normally |still |both |all |do"
        rf" )*(?!{NOT_HABITS})[a-z]{{3,}}(?<!ed)(?<!ing)(?<!ly)(?<!'[a-z])(?<!'[a-z][a-z]) (?!it\b|that\b"
        rf"|this\b|you\b|your\b|so\b|not\b)\w",
    ),
    (
        "ours-is",
        0.5,
        r"^(?:\S+ ){0,2}?(?:my|our) (?:[\w'-]+ ){0,2}[\w-]+(?: (?:is|are)|'s) (?!(?:so|very|too|really|not|just"
        r"|being|still|a bit|a mess|a bit|down|up|out|off|here|there|on|in|at|late|over|almost|nearly|\w+ing|killing"
        r"|dead|fine|good|great|bad|terrible|awful|ok|okay|about|that|to|what|why|how|if|because|gone|working|ready"
        r"|done|broken|loud|weird|better|worse|back|home|busy|sick|ill|tired|finally)\b)",
    ),
    (
        "refuses",
        0.9,
        r"\b(?:won't|doesn't|don't|isn't allowed to) (?:allow|let|take|do|like|accept|speak|drive|drink|use|fly"
        r"|celebrate|have)\b",
    ),
    (
        "has-lived",
        1.7,
        r"\b(?:i|we|he|she|they)(?:'ve|'s| have| has) (?:always |never |only |both )?(?:lived|worked|taught|played"
        r"|owned|known|served|supported|been (?:with|at|on|a|an|to|together|married|vegan|vegetarian|single))\b",
    ),
    (
        "habit-third",
        1.6,
        rf"^(?!(?:it|that|this|what|there|who|which)\b)(?:\S+ ){{1,7}}?{FREQUENCY_ADVERBS}(?:{THIRD_PERSON_HABITS})\b",
    ),
    (
        "habit-of-several",
        1.6,
        rf"^(?:my|our|her|his|the) (?:[\w'-]+ ){{1,5}}?{FREQUENCY_ADVERBS}(?:{FIRST_PERSON_HABITS}) "
        rf"(?:in|at|on|for|near|with|every"
        rf"|from)\b",
    ),
    (
        "holds",
        1.2,
        r"\b(?:i|we)(?:'ve| have)(?: got)? (?!to\b|no idea|a (?:question|problem|feeling|hunch|quick|meeting"
        r"|headache|cold)|been|just|\w+ed\b|lost|found|seen|had|done|made|eaten|run|forgotten)|\b(?:has|have) (?:a"
        r"|an|the|two|three|four|five|no|his|her|type|got|\d+)\b",
    ),
    (
        "is-one",
        1.1,
        r"\b(?:i'm|i am|we're|we are|is|'s|are|was|were) (?:also |now |both |actually |only |still |always |usually"
        r" )?(?:an?|my|our|the (?:one|only|same|eldest|oldest|youngest|middle)|from|in charge of|married|single"
        r"|divorced|widowed|engaged to|separated|retired|called|named|allergic|based|(?:left|right).handed"
        r"|self-employed|unemployed|due)\b",
    ),
    (
        "likes",
        0.9,
        r"\b(?!(?:is|are|was|were|be|looks?|feels?|sounds?|seems?|tastes?|smells?|something|anything|just|more|much|it"
        r"|for|of|nothing|and|or|not"
        r"|that|what|\w+ing|'s) like)(?:i|we|he|she|they|\w+) (?:really |only |do |don't |doesn't |all |both |also "
        r"|just |much"
        r" )*(?:likes?|loves?|enjoys?)\b(?! to (?:know|see|hear|think)|(?<=like) (?:that|this|it|i|we|he|she)\b)",
    ),
    (
        "going-then",
        2.5,
        rf"\b(?:am|is|are|'m|'s|'re) (?:\w+ ){{0,2}}?\w+ing\b.*\b(?:next (?:week|month|year|spring|summer|autumn"
        rf"|winter)|(?:in|from|until|till|on|around) (?:the )?(?:\d{{1,2}} )?{MONTH}\b|on (?:\w+day )?the"
        rf" {ORDINAL}|from (?:the )?{ORDINAL})",
    ),
    (
        "reads",
        2.0,
        r"\b(?:i|we) (?:also |only |mostly |just |can )*(?:read|write|call)s? (?!it\b|that\b|this\b|somewhere|in\b"
        r"|on\b|an?\b|the\b|about|back|down|to\b|you\b|your\b)\w+",
    ),
    ("died", 1.0, r"\b(?:died|passed away|dead since)\b"),
    (
        "not-since",
        2.1,
        r"\b(?:haven't|hasn't|have not|not|never|no \w+) (?:\S+ ){1,5}(?:since|in (?:\w+ )?(?:years|months)|for"
        r" (?:\w+ )?(?:years|months))\b",
    ),
    ("only-can", 0.9, r"\bcan only\b"),
    (
        "cannot",
        1.0,
        r"\b(?:can't|cannot|can only|mustn't|must) (?!wait|believe|find|see|remember|recall|decide|think|tell|say"
        r"|get|help|even|stop|be\b|have (?:been|left|done))\w+",
    ),
    (
        "due",
        1.6,
        r"\b(?:has|have|needs?) to be (?:in|done|paid|there|out|back|returned|submitted|sent|home|collected"
        r"|renewed)\b|\bdue (?:on|by|in|at|every|back)\b|\bdeadline\b",
    ),
    (
        "named",
        2.0,
        r"\b(?:is|'s|are|was|were|be) (?:called|named|known as)\b|\b(?:christened|nicknamed)\b|\bto everyone\b"
        r"|\b(?:call|calls|called) (?:me|us|him|her)\b|\bgo(?:es)? by\b|\b(?:name|nickname|surname)(?:'s| is| was)\b"
        r"|\bnamed (?:the|our|my|her|him)\b",
    ),
    (
        "identity",
        1.5,
        r"\b(?:i'm|i am|we're|we are) (?:a|an|the \w+ (?:of|at|for|in)|from|into|off|\d+|(?:left"
        r"|right).handed)\b",
    ),
    ("changed", 1.9, rf"\b(?:{LIFE_CHANGES})\b"),
    (
        "going",
        1.4,
        r"\b(?:am|is|are|'m|'s|'re) (?:\w+ ){0,2}?(?:flying|moving|starting|leaving|retiring|getting married|having"
        r" (?:a baby|an op\w*|surgery|twins)|travelling|changing|switching|selling|buying|keeping|training|learning"
        r"|studying|doing (?:a|an|my|the) (?:[\w-]+ )?(?:course|degree|phd|masters?|apprenticeship|a-levels?|diploma"
        r"|module|training|msc|mba)|working|living|staying|trying for|expecting|going (?:to \w+ing|with)|being"
        r" \w+(?:ed|ld))\b",
    ),
    (
        "no-longer",
        2.7,
        r"\bno longer\b|\b(?:any ?more)\b|\bnot .{2,40} but\b|\bused to\b|\bas of\b|\bfrom now on\b|\bisn't .{2,40}"
        r" (?:it's|but)\b|\bafter all\b",
    ),
    (
        "now",
        0.6,
        r"\bnow(?:adays)?\b|\bthese days\b|\bthis (?:year|term|season|month)\b|\bfrom (?:next|this) (?:month|week"
        r"|year|term)\b|\bby (?:then|the end of)\b",
    ),
    (
        "decided",
        2.3,
        r"\b(?:i|we)(?:'ve| have)? (?:finally )?(?:decided|agreed|chose|chosen|settled on|picked)\b|\b(?:i'm|we're|i"
        r" am|we are) going (?:with|for) the\b|\bchanged (?:my|our) mind\b|\bthe plan is\b|\b(?:let's|we'll|i'll)"
        r" (?:go with|have|take) (?:the|a) (?!\w+ (?:one|version|option)\b|first|second|third|last|other|latter"
        r"|former|option)|\bit's (?:decided|settled|final|official)\b|\bfinal (?:answer|decision)\b",
    ),
    (
        "prefers",
        1.6,
        r"\b(?:prefers?|hates?|(?<!her )(?<!his )(?<!my )(?<!your )(?<!in )(?<!much )love|loves|loathes?|adores?"
        r"|detests?|can't (?:stand|bear|abide|eat|have|do)|favou?rite|fan|rather"
        r" (?:have|not|take)|allergic|don't (?:eat|drink|like|do|use|drive)|doesn't (?:eat|drink|like|do)|won't"
        r" (?:fly|touch)|go-to|never (?:eat|drink|touch|fly)|never been able to|suits me|works best for me|over \w+,"
        r" always|every time|obsessed with|(?:mad|crazy|nuts|passionate) about|keen on|fond of|devoted to|hooked on"
        r"|scared of|terrified of|afraid of|used to it)\b|\b(?:no|one|two|three) sugars?\b",
    ),
    (
        "recurs",
        0.4,
        r"\b(?:every|each) (?:other |second |third |single |few )?\w+|\b(?:once|twice(?! as)|\d+|three|four|five)(?:"
        r" times)? (?:a|per) (?:day|week|month|year|term)\b|\balternate\b|\b(?:on|of an?) (?:weekends?|weekdays?"
        r"|evenings?)\b|\b(?:in|during) the (?:week|holidays|summer|winter)\b|\ball year\b",
    ),
    (
        "date",
        1.8,
        rf"\b(?:{ORDINAL}|\d{{1,2}}) (?:of )?{MONTH}\b|\b{MONTH} (?:the )?(?:\d{{1,2}}(?:st|nd|rd|th)?|{ORDINAL})\b"
        rf"|\b(?:in|by"
        rf"|since|until|till|every|each|next|last|this|from|around|end of|mid|early|late) {MONTH}\b|\bthe"
        rf" {ORDINAL}\b|\b(?:in|since|until|till|by|from) (?:19|20)\d\d\b|\b\d{{1,2}}[./]\d{{1,2}}[./]|\b(?:next"
        rf"|last) (?:spring|summer|autumn|fall|winter|year)\b|\b20\d\d-\d\d-\d\d\b|^{MONTH}\b",
    ),
    ("day", 0.8, rf"\b(?:on |this |next |by |until |till |to |is |for ){DAY}\b|^{DAY}\b"),
    ("days", 1.4, rf"\b{DAY}s?(?:/| ?[&+] ?|,? (?:and |to )?){DAY}s?\b"),
    (
        "clock",
        0.1,
        r"\b(?:half|quarter|five|ten|twenty) (?:past|to) (?:\w+)\b|\b(?:at|by|till|until) half \w+\b|\b(?:at|by|from"
        r"|before|after|until|till|to) (?:half |quarter (?:past|to) )?(?:\d{1,2}(?:[:.]\d\d)?(?:"
        r" ?[ap]m)?|six|seven|eight|nine|ten|eleven|twelve|noon|midday|midnight)\b(?!%| ?(?:per ?cent|min|sec"
        r"|degrees))|\b\d{1,2}:\d\d\b",
    ),
    (
        "lasting",
        0.8,
        r"\b(?:for|been|after) (?:\w+ ){0,5}(?:\w+ )?(?:years|months|decades)\b|\b\w+ (?:years?|months) ago\b"
        r"|\b(?:since|for) (?:a |the )?(?:\w+ )?(?:kid|child|birth|school|uni|19|20|last|always|biopsy)|\bhad (?:a"
        r"|an|my|the|his|her|two|three) .{2,40}\b(?:in|since) (?:19|20)\d\d\b|\bfirst language\b|\bfor a living\b"
        r"|\bwhen (?:i|he|she|we) (?:was|were)\b|\bfor (?:good|life|ever)",
    ),
    (
        "amount",
        0.5,
        r"[£$€]\s?\d|\b\d[\d.,]*\s?(?:k|quid|pounds?|euros?|dollars?|kr|mg|ml|kg|cm|m2|miles?|km|%|a (?:week|month"
        r"|year|go|session|lesson|day|night))\b|\b\d{1,3},\d{3}\b|\bsize \d|\b\d+ an? (?:hour|month|week)",
    ),
    ("number", 0.8, r"\d"),
    ("count", 0.2, rf"(?<!by )(?<!at )(?<!till )(?<!until )\b{NUMERAL}\b(?! past)"),
    (
        "allowed",
        1.6,
        r"\b(?:not allowed|only allowed|isn't allowed|aren't allowed|can't have|can't do|don't do|doesn't do"
        r"|off limits|not"
        r" even a trace|makes? (?:me|him|her|us) (?:ill|sick|faint|sneeze|itch|cough|wheeze|throw up|come out)"
        r"|(?:bring|brings) (?:me|him|her) out|does (?:me|him|her) in)\b",
    ),
    (
        "in-charge",
        1.6,
        r"\b(?:taking over|takes over|looks? after|looking after|(?:in charge|part) of|responsible for"
        r"|will (?:look after|see"
        r" to|be (?:doing|taking|playing|looking|working|living)|take over)|in (?:the )?future|goes to|is to go "
        r"to|used to"
        r" (?:be|do|work|live|drive|teach|run|play|have|own))\b",
    ),
    (
        "who-it-is",
        1.5,
        r"^(?:it's|that's|that is|this is|it is|they're|those are) (?:an? |the |my |our "
        r"|called )?(?-i:[A-ZÀ-Þ][\w'’-]*[a-z])",
    ),
    ("many-names", 1.1, r"(?-i:(?<=[\w,;:)] )[A-ZÀ-Þ][\w'’-]*[a-z].*(?<=[\w,;:)] )[A-ZÀ-Þ][\w'’-]*[a-z])"),
    (
        "kept",
        0.5,
        r"\b(?:is|are|'s|'re) (?:\w+ly |all |now |still |only |not )?(?:insured|let|rented|registered|fixed|closed"
        r"|open|shut|covered|kept|paid|owned|spelt|spelled|shared|buried|stored|licensed|enrolled|signed|due|booked"
        r"|off(?! to)|free|away|based|capped|limited|divided|run|made)\b",
    ),
    (
        "goes-on",
        2.2,
        r"\b(?:am|is|are|'m|'s|'re|been) (?:\w+ ){0,1}\w+ing\b.*\b(?:since|until|till|for (?:\w+ ){1,3}(?:years"
        r"|months)|this (?:term|year|season)|every|these days|from (?:next|\w+day))\b",
    ),
    ("instead", 0.8, r"\binstead\b(?! of (?:the )?(?:word|that|this))"),
    ("done-with", 1.0, r"\b(?:all|most of) (?:my|our|the) \w+ (?:is|are)\b"),
    (
        "treated",
        1.0,
        r"\b(?:being|to be|getting) (?:called|treated|asked|told|phoned|rung|disturbed|addressed|touched|hugged|late"
        r"|alone|rushed|photographed|woken)\b",
    ),
    ("goes-on-left-out", 3.4, r"^\w+ing .{2,60}\b(?:since|until|till|for (?:\w+ ){1,3}(?:years|months))\b"),
    (
        "without",
        1.2,
        r"(?:^|, |with |and )(?:no|none|never any|only|without any|nothing (?:with|that|too|over|before|after|made"
        r"|from)) (?!idea|worries|problem|one\b|need|thanks|way|clue|luck|rush|hurry|joke|doubt|longer|that|it\b"
        r"|more|matter|i\b)\w+",
    ),
    (
        "placed",
        0.8,
        r"(?:\b(?:is|are|lives?|kept|hidden|hangs?|sits?|goes)|'s) (?:always |now |kept |hidden )?(?:in|on|under"
        r"|behind|with|at(?= (?:my|our|number|no |[A-Z]))|by|above|below|beside|inside|next to|over|near|off|round"
        r"|through|around) (?!it\b|time\b|fire\b|hold\b|sale\b|the (?:way|phone|bus|train|move)\b|bed\b|a call\b)",
    ),
    ("name", 1.8, r"(?<=[\w,;:)] )(?-i:[A-ZÀ-Þ][\w'’-]*[a-z0-9À-ÿ]\b)"),
    ("code", 0.9, r"\b(?=[a-z0-9-]{0,40}\d)(?=[a-z0-9-]{0,40}[a-z])[a-z0-9-]{4,}\b|\b\d{4,}\b|\b\w+-\w+-\d+\b"),
    (
        "told",
        1.5,
        r"^(?:(?:and|also|oh|ok|so|btw|by the way|fyi|ps|please|just) )*(?:fyi|for the record|just so you know|you"
        r" should know|by the way|btw|remember|note|keep in mind|bear in mind|for (?:future )?reference|heads up|you"
        r" should know|turns out|turned out|worth knowing|correction|reminder|for the file|one more (?:thing )?for)\b"
        r"|\b(?:if|in case) (?:you|anyone|anybody) (?:ever )?(?:needs?|asks?|wants?|have to)\b|\b(?:before you ask"
        r"|i should"
        r" (?:say|mention|add)|i (?:must|ought to) (?:say|mention|tell)|(?:i )?forgot to (?:say|tell|mention)"
        r"|so (?:that )?you"
        r" know|in case you|you should know|as you know|i haven't told you|did i (?:say|tell|mention))\b",
    ),
    (
        "for-good",
        2.6,
        r"^(?:(?:and|also|oh|so|please|ok|but|then|just) )*(?:(?:always|never)(?! (?:the|an?|so|been|like|mind|again"
        r"|in|that|this|happy|fun|knew|noticed|realised|thought|heard)\b)|from now on|don't ever|in future|going"
        r" forward|whenever|every time|(?:please )?don't (?:use|call|send|book|ask|put|give|suggest|add|write)(?!"
        r" (?:it|that|this|the)\b)|(?:please )?(?:keep|make) (?:your|all|any) (?:answers|replies|messages|responses)"
        r"|no (?:\w+ )?(?:calls|emails|emojis?|meetings?|messages|texts)\b|call me)\b|\b(?:always|please|every time"
        r"|from now on)$(?<!^yes please)(?<!^please)",
    ),
    ("family-of", 0.8, r"\b(?!(?:he|she|it|that|let|there|what|who|here|where|how|one)'s)\w+'s \w+ "),
    (
        "bare",
        0.8,
        r"^(?!(?:i|i'm|we|you|it|it's|that|that's|this|there|there's|they|he|she|my|our|what|who|how|let's|he's"
        r"|she's|the|a|an|just|so|not|no|yes|ok|some|any|these|those|nothing|everything|everyone|something"
        r"|someone)\b)\w[\w'-]*(?:'s| \w+'s| is| are| was| \w+ (?:is|are)) ",
    ),
    (
        "apposed",
        1.1,
        r"(?-i:[A-Z]\w+),? (?:who's |is |, )?(?:my|our) \w+|\b(?:my|our) (?:[\w-]+ )?[\w-]+,? (?-i:[A-Z][a-z]+)\b",
    ),
)
