"""Forms of a clause that speak for its being over soon, or nobody's: each with its name, its weight and its pattern.
Pure.

What always holds: patterns read a clause in lower case; weights are below nought.
"""

from __future__ import annotations

TRANSIENT_PATTERNS: tuple[tuple[str, float, str], ...] = (
    ("the-new", -1.1, r"^(?:the|that|this) (?:new|latest|whole|entire|other|same|stupid|bloody)\b"),
    (
        "progress",
        -3.6,
        r"\b(?:am|is|are|was|were|'m|'s|'re|been|being) (?:\w+ly |not |just |still |really |now |so |all )*(?!going"
        r"|morning|evening|wedding|nothing|anything|something|everything|during|string|spring|king|thing|boring"
        r"|missing|living|working|starting|moving|flying|getting|retiring|trying|expecting|leaving|being|selling"
        r"|keeping|learning|training|switching|changing|studying|buying|staying|travelling|insuring|fostering"
        r"|wearing)\w{2,}ing\b|^(?:just |still )?(?!(?:everything|anything|something|nothing|evening|morning|spring"
        r"|moving|starting|getting|trying for|leaving|expecting|working"
        r"|living|learning|training|allergic|retiring|parking|swimming|training|meeting|building|wedding|heating"
        r"|washing)\b)\w{2,}ing (?:the|a|an|my|some|out|up|in|on|off|with|over|to"
        r"|for|this|that|at|through|about|it|me|us|you)\b|^(?:just |still )?(?:feeling|waiting|running late|having"
        r" (?:lunch|dinner|tea|breakfast)|heading|sitting|watching|looking|thinking|trying (?:to|out)|making|eating"
        r"|reading)\b|\btrying to\b|\bgoing to (?:bed|sleep|get|have|go|try|take a)\b",
    ),
    (
        "moment",
        -2.3,
        r"\b(?:today|tonight|this (?:morning|afternoon|evening|minute)|right now|at the moment|atm|yesterday|last"
        r" night|for the (?:day|afternoon|evening|morning)|since (?:\d|six|seven|eight|nine|ten|eleven|noon|lunch"
        r"|breakfast|this"
        r" morning)|in a (?:bit|minute|sec|moment)|in (?:\w+ )?(?:minutes?|seconds?|mins?)|one sec|brb|back (?:later"
        r"|soon|in)|all day|any minute|for (?:lunch|dinner|breakfast|tea)$|just (?:now|got|had|been|did|came"
        r"|finished|saw|ate|called|spilt|spilled|woke)|i'?ve just)\b",
    ),
    ("again", -1.0, r"\b(?:again|still|yet|finally|already|just(?! so))\b"),
    (
        "unsure",
        -2.5,
        r"\b(?:wants? to know|wanted to know|(?:thinks?|reckons?) (?:we|i|you|they) (?:ought|should)|might|maybe"
        r"|perhaps|probably|possibly|wonder|wondering|wish|hopefully|hope|thinking (?:of|about)"
        r"|think about|considering|tempted|not sure|no idea|don't know|dunno|can't remember|forgot(?! to (?:say|tell"
        r"|mention))|i guess|i suppose"
        r"|supposedly|would|could|should|(?:i|we|he|she|they|you)'d (?!rather|like|prefer|been|had|better|sooner)"
        r"|if only|what if|one day)\b",
    ),
    (
        "you",
        -1.4,
        r"(?<!in case )(?<!before )(?<!\bif )(?<!did i tell )(?<!to tell )(?<!told )\b(?:you(?! (?:know"
        r"|should know)\b)|your|you're|yours|you've|you'll|u|ur)\b",
    ),
    (
        "thing",
        -2.1,
        r"^(?!it's (?:number |\d|the \d|(?:mon|tues|wednes|thurs|fri|satur|sun)day|called|spelt)|they (?:put|gave"
        r"|moved|took|told|made)"
        r"|they've (?:put|given|moved|taken|told|made|changed|stopped|started))(?:it|it's|its|that|that's|this|there"
        r"|there's|these|those|what|they"
        r"|they're|which|here|here's)\b",
    ),
    ("someone", -0.7, r"^(?:he|she|he's|she's|someone|someone's|somebody|people|everyone|everybody)\b(?! calls)"),
    ("opinion", -1.3, r"\b(?:i think|i reckon|i feel|imo|in my opinion|honestly|tbh|seems?|sounds?|looks? like)\b"),
    (
        "had",
        -2.3,
        r"\b(?:ate|eaten|drank|watched|saw|seen|went for an? (?:\w+ )?(?:walk|run|swim|ride|drive|coffee|drink|meal"
        r"|curry|pint|jog|hike|stroll|wander|nap|look)|went to"
        r" (?:the|a|see)|cooked|won(?!')|lost|had (?:a|an|some"
        r"|pizza)|bought some|spilt|spilled|walked|slept|woke|clicked|crashed|happened|burnt|burned|ran over"
        r"|finished|took \d+|parked|(?<!being )(?<!be )(?<!is )(?<!'s )(?<!are )called|texted|out of|drove|ran|met"
        r" up|nearly)\b",
    ),
    (
        "hurts",
        -1.9,
        r"\b(?:hurts?|aches?|killing me|sore|itchy|tickles|driving me|kill me|gone cold|dying|dead|broken|broke"
        r"|flooded|delayed|(?:running|is|are|'s|'re|be|was) late)\b|\b(?:at|on) \d+ ?%",
    ),
    (
        "this-one",
        -3.0,
        r"\b(?:love|like|hate|prefer|enjoy|fan of|favou?rite (?:is|was)) (?:it|this|that|these|those|how|the"
        r" (?:\w+er|first|second|third|last|new|other|latest))\b|\brather have (?:the|that|this|it)\b|\bfavou?rite"
        r" (?:bit|part|line|scene|one)\b",
    ),
    ("meal", -1.0, r"\b(?:lunch|dinner|breakfast|supper|snack|pizza)\b"),
    (
        "later",
        -2.0,
        r"\b(?:i'll|we'll|let me|gonna|gotta|got to|i need(?: to| a| some)?|need to|have to go|i'm off|see you|time"
        r" (?:for|to))\b",
    ),
    (
        "example",
        -2.4,
        r"\b(?:for example|e\.g|say,|hypothetically|in theory|once upon|pretend|imagine|as a (?:pirate|king|knight"
        r"|wizard)|in (?:chapter|act|scene|season|part) \w+|in (?:the|this) (?:story|book|novel|film|game|article"
        r"|episode))\b",
    ),
    (
        "have-now",
        -2.4,
        r"\b(?:have|'ve|got|has|had) (?:\S+ ){0,3}(?:minutes?|mins?|hours?|headache|hangover|questions?|tabs?|idea"
        r"|time|call|meeting|feeling|moment|stitch|hiccups|nightmare|problem|issue|error|typo|go|look|think|word"
        r"|chat|nap|day)\b",
    ),
    (
        "indefinite",
        -1.6,
        r"^an? (?!few|couple|lot|quarter|half|day\b|week\b|year\b|friend of mine|mate of mine)\w+ (?:\w+ )?(?:has|is"
        r"|are|was|leaves|travels|gives|walks|goes|needs|can|wants)\b",
    ),
    (
        "on-screen",
        -2.7,
        r"\b(?:signed|logged) (?:in|out)\b|\b(?:moved|switched|changed|renamed|replaced|stopped|started|opened"
        r"|closed|dropped|swapped|set|put|added|updated) (?:it|that|this|them|to the|the (?!rota|day|time|date"
        r"|appointment|booking|locks?|school|job|car|dentist|doctor|gym|plan|name)\w+|a new (?:file|document|tab"
        r"|sheet|doc|page))\b(?! (?:to|back to|from) (?:the \d|\w+days?\b))",
    ),
    (
        "went-off",
        -2.3,
        r"\b(?:gone|went|going) off\b|\bout of\b|\bon the (?:phone|way|bus|loo)\b|\bcoming round\b|\boff to\b"
        r"|\bstarted with\b",
    ),
    (
        "was-then",
        -1.6,
        r"^(?:\S+ ){1,4}?(?:was|were) (?!(?:\w+ly )?(?:diagnosed|born|named|called|raised|adopted|redone|rebuilt"
        r"|brought|built|made|moved|promoted|married|widowed|clear|lead|head)\b)",
    ),
    (
        "grumbles",
        -2.7,
        r"\bbear with me\b|\blong one\b|\bkeeps? (?:\w+ly )?\w+ing\b|\bi (?:always|never) (?:forget|lose|learn|get|do"
        r"|know|say|mean|manage"
        r"|remember|seem)\b",
    ),
    (
        "anybody",
        -2.5,
        r"^(?:(?:most|some|all|many|other) )?(?:people|everyone|everybody|everything|nobody|someone|somebody|anyone"
        r"|kids these days|folks|a (?:bloke|guy|woman|man|friend of a friend)|some (?:bloke|guy|woman|man))\b(?!"
        r" (?:calls|at home))",
    ),
    ("journey", -1.4, r"\b(?:train|bus|tram|tube|taxi|uber|traffic|motorway|parcel|delivery|queue|plane)\b"),
    (
        "done-then",
        -1.5,
        r"(?<!is )(?<!are )(?<!was )(?<!were )(?<!get )(?<!gets )(?<!be )(?<!'s )(?<!'m )(?<!'re )(?<!left"
        r" )(?<!right )(?<!been )\b(?!need|used to|lived|worked|owned|born|named|called|married|retired|diagnosed"
        r"|allergic|insured|fixed|moved|closed|divorced|based|engaged|shared|registered|tired|bed|red|shed|wed"
        r"|kid)\w{2,}ed\b|\b(?:sank|made|got|took|came|went|sent|told|found|ended up|felt|fell|hit|kept|sat|bit"
        r"|burnt|forgot)\b",
    ),
    (
        "quoting",
        -2.6,
        r"\b(?:said|says|told (?:me|us|him|her|them)|asked|replied|shouted|goes|was like|wrote"
        r"|texted)\b[^\w]{0,3}[\"“·]|·{3}",
    ),
    (
        "world",
        -2.4,
        r"\b1[0-8]\d\d\b|^(?!.*\b(?:my|our|i|we|me)\b).*\d ?(?:km|kilometers?|kilometres?|miles?|m|metres?|meters?"
        r"|feet|kg)"
        r" (?:long|high|tall|wide|deep|away|above|a second|an hour|per)\b",
    ),
    (
        "being-there",
        -1.4,
        r"^(?:i'm|we're|i am|we are) (?:at|in) (?!\d)(?!.*\b(?:every|each|\w+days|since|until|from|now|year|first"
        r"|charge)\b)",
    ),
    (
        "so-much",
        -0.9,
        r"\b(?:so|too|such an?|very|quite|rather|how|what an?) (?!far\b|that\b|we\b|i\b|he\b|she\b"
        r"|they\b)\w+$",
    ),
    (
        "reported",
        -2.4,
        r"(?<!doctor )(?<!doctor has )(?<!gp )(?<!vet )(?<!dentist )(?<!nurse )(?<!hospital )(?<!consultant"
        r" )(?<!physio )(?<!midwife )"
        r"(?<!clinic )(?<!there has )\b(?:somewhere that|google|wikipedia|online|saw that|saw a|programme|says"
        r"|(?<!i )said|they say|reckons"
        r"|heard|read that|article|news)\b",
    ),
)
