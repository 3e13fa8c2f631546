"""How much an entry of the journal weighs, by rules alone. Pure.

What always holds: the weightiest matter that a text names decides, whatever its kind; how old it is does not (that only
lowers its rank when it is recalled). What no rule knows lies in the uncertain middle, where a model may judge.

    health, safety, births, deaths, weddings     0.8, with a name or number 0.9
    identity, home, work, money, secrets         0.6, with a name or number 0.7
    decisions                                    0.6
    preferences, tasks, plans, possessions       0.5
    any other fact                               0.4, with a name or number 0.5
    what is over when the day is                 0.2
    greetings, thanks, small talk                0.1
"""

from __future__ import annotations

import re
import unicodedata

from assistant.core.text import lazy_regex

UNCERTAIN_BAND = (0.35, 0.55)
"""The band, both ends included, in which a model may know better."""

_BASE = {"decision": 0.6, "task": 0.5, "preference": 0.5, "summary": 0.5}

_VITAL = lazy_regex(
    r"\b(?:allerg\w*|anaphyla\w*|epipen|intoleran\w*|coeliac|celiac|diabet\w*|asthma\w*|epilep\w*|insulin|medication"
    r"|medicine|prescri\w+|dos(?:e|age)|tablets?|inhaler|\d+ ?(?:mg|mcg|µg|ml)|blood (?:type|pressure|group|thinner"
    r"|test)|diagnos\w+|cancer|tumou?r|chemo\w*|stroke|heart (?:attack|condition|surgery)|surgery|operation|pacemaker"
    r"|hospital(?:i[sz]ed)?|emergency|ambulance|pregnan\w*|miscarr\w*|due date|(?:was|is|are|were) born\b(?! (?:in|on) "
    r"(?:1|20[01]))|gave birth|newborn|died|passed away|funeral|death|wedding|engaged|(?:got|getting|get) (?:married"
    r"|divorced|engaged)|divorc\w+|suicid\w*|abus(?:e|ive)|stalk\w*|restraining order|smoke alarm|gas leak"
    r"|allerg(?:isch|ie)\w*|schwanger|gestorben|hochzeit|krebs|krankenhaus|notfall|operiert|medikament\w*"
    r"|allergique|enceinte|décédée?|mariage|hôpital|urgence|médicament\w*|alérgic[oa]|embarazada|murió|falleció|boda"
    r"|hospital|urgencia|allergisk|gravid|døde|bryllup|sykehus|kreft|medisin\w*)\b"
    r"|过敏|怀孕|去世|结婚|离婚|手术|癌|医院|急诊|アレルギー|妊娠|亡くな|結婚|離婚|手術|病院|出産",
    re.IGNORECASE,
)
_GROUND = lazy_regex(
    r"\b(?:passport|birthday|born|full name|surname|maiden name|my name|name is|called me|citizen(?:ship)?|nationality"
    r"|visa|insurance|password|passcode|pin|code|address|phone|number plate|account|iban|salary|mortgage|rent|loan"
    r"|debt|contract|deadline|moved|moving (?:to|house|in|out)|lives?|living (?:in|with)|landlord|landlady|tenant"
    r"|works? (?:at|as|for|in)|working (?:at|as|for)|worked (?:at|as|for)|job|employer|boss|manager|company|promoted"
    r"|redundan\w+|fired|laid off|retire[ds]?|quit|husband|wife|partner|fianc[eé]e?|son|daughter|children|kids|mother"
    r"|father|mum|mom|dad|sister|brother|doctor|dentist|gp|therap\w+|glasses|vegan|vegetarian|religio\w+|school"
    r"|(?:ich|wir) (?:wohne|arbeite|heiße|bin geboren)n?|adresse|telefon\w*|miete|gehalt|geburtstag|bruder|schwester"
    r"|j'habite|je (?:travaille|m'appelle)|loyer|adresse|anniversaire|frère|sœur|vivo en|trabajo|me llamo|alquiler"
    r"|dirección|cumpleaños|hermano|hermana|jeg (?:bor|jobber|heter)|husleie|bursdag|bror|søster)\b"
    r"|住在|住址|地址|电话|工作|公司|生日|密码|叫做|我叫|妈妈|爸爸|女儿|儿子|住んで|働い|住所|電話|誕生日|会社|名前"
    r"|母は|父は|娘|息子",
    re.IGNORECASE,
)
_PASSING = lazy_regex(
    r"\b(?:weather|raining|rainy|sunny|windy|snowing|traffic|queue|the bus (?:is|was)|(?:i'm|i am|we're|we are|am"
    r"|was|were"
    r"|feel(?:ing)?) (?:so |very |really |a bit |quite )?(?:tired|hungry|bored|busy|cold|hot|sleepy|thirsty|late)"
    r"|coffee (?:is|was) (?:cold|good)|(?:had|having|ate|eating|made|cooked) (?:\w+ ){0,4}"
    r"(?:for (?:lunch|dinner|breakfast)|sandwich|a snack)|(?:watched|watching) (?:tv|a film|a movie)|just (?:got"
    r"|came) (?:home|back|in)|slept (?:well|badly)"
    r"|müde|hungrig|wetter|fatiguée?|cansad[oa]|trøtt|sulten)\b|天气|好累|天気|眠い|疲れた",
    re.IGNORECASE,
)
_SMALL = lazy_regex(
    r"^\W*(?:(?:the )?user (?:said|says|greeted|thanked|asked (?:for help|how)|is (?:chatting|testing))\b.*"
    r"|(?:hi|hello|hey|good (?:morning|evening|night|afternoon)|thanks?(?: you)?|thank you|cheers|ok(?:ay)?|yes|no|sure"
    r"|great|nice|cool|lol|haha\w*|wow|bye|see you|welcome|please|sorry|hallo|guten (?:tag|morgen|abend)|danke|bonjour"
    r"|merci|salut|hola|gracias|hei|takk|you'?re welcome|no problem|sounds good|got it|never mind)"
    r"(?:[\s,!.]+(?:there|again|a lot|so much|very much|all|everyone|you|sounds good|thanks?|then|much|lots|perfect"
    r"|great|for (?:the |your |all )?(?:help|that|this|info\w*|everything)|schön|sehr|beaucoup|muchas|så mye))*)\W*$"
    r"|^\W*(?:你好|谢谢|早上好|再见|おはよう\w*|ありがとう\w*|こんにちは)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_TELLING = lazy_regex(r"\d|(?<=\s)(?!I\b|I')[A-ZÀ-Þ]\w+")
# A weight says what a text is about; what it is about stands in its first lines.
_LOOKED_AT = 4_000


def score_importance(kind: str, content: str) -> float:
    """0 to 1, as the table above tells; `kind` as in `JournalEntry.tags`."""
    text = unicodedata.normalize("NFC", content[:_LOOKED_AT]).replace("’", "'")
    named = 0.1 if _TELLING.search(text) else 0.0
    if is_small_talk(text):
        return 0.1
    if _VITAL.search(text):
        return round(0.8 + named, 2)
    if _GROUND.search(text):
        return round(0.6 + named, 2)
    if _PASSING.search(text) and kind not in ("decision", "task"):
        return 0.2
    return round(_BASE.get(kind, 0.4) + (named if kind not in _BASE else 0.0), 2)


def is_small_talk(content: str) -> bool:
    """Whether nothing but a greeting, thanks or agreement is said."""
    return bool(_SMALL.match(content[:_LOOKED_AT]))


def is_uncertain(weight: float) -> bool:
    """Whether a model may know better."""
    low, high = UNCERTAIN_BAND
    return low <= weight <= high
