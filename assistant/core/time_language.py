"""Expressions of time in English, German, French and Spanish, as patterns over folded text (`fold_text`: lower case, no
accents). `time_readers` interprets the matches. Pure data.

No pattern has nested repetition, so that matching takes linear time.
"""

from __future__ import annotations

from assistant.core.text import lazy_regex
from assistant.core.time_names import HOLIDAYS, MONTH_NAMES, NUMBERS

_WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
# 0 to 24, in digits or words, as an hour.
_NO_HOURS = {"a", "an", "ne", "nen", "other", "second"}
_HOURS = (word for word, number in NUMBERS.items() if number <= 24 and " " not in word and word not in _NO_HOURS)
_HOUR_WORDS = "|".join(sorted(_HOURS, key=len, reverse=True))
N = rf"(?:\d{{1,4}}|{_WORDS})"
_MINUTES = r"(?:\d{1,2}|cinco|diez|quince|veinte|veinticinco|treinta|cuarenta|cincuenta)(?!\w)"
H = rf"(?:\d{{1,2}}(?![\d%]|,\d)|(?:{_HOUR_WORDS})(?!\w))"

UNITS = {
    "minutes": r"min|mins|minutes?|minuten|minutos?|mn",
    "hours": r"h|hrs?|hours?|std|stunden?|heures?|horas?",
    "days": r"days?|tage?n?|jours?|dias?",
    "weeks": r"weeks?|wochen?|semaines?|semanas?",
    "months": r"months?|monate?n?|monats|mois|mes|meses",
    "years": r"years?|jahre?n?|jahres|annees?|ans|anos?",
}
ANY_UNIT = "|".join(UNITS.values())

DAYS = {
    "MO": "mondays?|montags?|lundis?|lunes",
    "TU": "tuesdays?|tues?|dienstags?|mardis?|martes",
    "WE": "wednesdays?|weds|mittwochs?|mercredis?|miercoles",
    "TH": "thursdays?|thurs?|thu|donnerstags?|jeudis?|jueves",
    "FR": "fridays?|fri|freitags?|vendredis?|viernes",
    "SA": "saturdays?|samstags?|sonnabends?|samedis?|sabados?",
    "SU": "sundays?|sonntags?|dimanches?|domingos?",
}
DAY_CODES = tuple(DAYS)
"""As in recurrence rules (RFC 5545), Monday first."""
# Too short to be recognised anywhere: only after a word that precedes a day, or before a colon or a clock time.
SHORT_DAYS = {
    "MO": "mon|mo|lun",
    "TU": "di|mar",
    "WE": "wed|mi|mer|mie",
    "TH": "do|jeu|jue",
    "FR": "fr|ven|vie",
    "SA": "sat|sa|sam|sab",
    "SU": "sun|so|dim|dom",
}
_ENGLISH_SHORT = "mon|wed|sat|sun"
_OTHER_SHORT = "mo|di|mi|do|fr|sa|so|lun|mer|mie|jeu|jue|ven|vie|sam|sab|dim|dom"
_FULL_DAY = "|".join(DAYS.values())
DAY = (
    rf"(?:(?:{_FULL_DAY})(?!\w)|(?:(?<=\bon )|(?<=\bby )|(?<=every )|(?<=each )|(?<=next )|(?<=this )|(?<=and )|(?<=till ))"
    rf"(?:{_ENGLISH_SHORT})(?!\w)|(?:{_ENGLISH_SHORT})(?= (?:at |\d|morning|evening|afternoon|night|next week))"
    rf"|(?:(?<=\bam )|(?<=\bbis )|(?<=jeden )|(?<=todo )|(?<=cada )|(?<=chaque )|(?<=pour )|(?<=\bel ))"
    rf"(?:{_OTHER_SHORT})(?![\w'])|(?<![-\w])(?<!\bto )(?:{_OTHER_SHORT})(?=: ))"
)
# "Um drei am Donnerstag": this "am" does not mean before noon.
AP = r"[ap]\.?m\b\.?(?! (?:\w+tag|mittwoch|sonnabend|\w*mittag|\w*abend|wochenende|\d{1,2}\.)(?!\w))"
AND = r"(?:\s*[,/]\s*(?:(?:and|und|et|y|e)\s+)?|\s*(?:\+|&|\band\b|\bund\b|\bet\b|\by\b)\s*)(?:(?:on|am|le|les|el|los)\s+)?"
_GERMAN_SHORT = "mo|di|mi|do|fr|sa|so"
_PLURAL_DAY = (
    "mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays|montags|dienstags|mittwochs|donnerstags|freitags|samstags"
    "|sonnabends|sonntags|lundis|mardis|mercredis|jeudis|vendredis|samedis|dimanches|sabados|domingos"
)
DAY_LIST = rf"{DAY}(?:{AND}{DAY})*"

FREQUENCIES = {
    "minutes": "MINUTELY",
    "hours": "HOURLY",
    "days": "DAILY",
    "weeks": "WEEKLY",
    "months": "MONTHLY",
    "years": "YEARLY",
}
ADVERBS = (
    ("HOURLY", "hour stund"),
    ("DAILY", "dail tagl quot diari"),
    ("WEEKLY", "week woch hebd sema"),
    ("MONTHLY", "month monat mens"),
    ("YEARLY", "year annu jahr anual"),
)

MONTH = "|".join(MONTH_NAMES)

HOLIDAY = "|".join(names for *_, names in HOLIDAYS)

# Words before a time that belong to it.
GLUE = (
    r"(?:\b(?:on|at|by|until|till|til|before|for|due|from|starting|this|coming|next|around|the|am|um|bis|zum|ab|gegen|seit"
    r"|vor|fur|den|dem|der|nachste[nrsm]?|kommende[nrsm]?|diese[nrsm]?|le|la|au|a|pour|avant|vers|d'ici|des|ce|cet|cette"
    r"|el|los|al|en|para|antes|del|desde|partir|de|este|esta|proximo|proxima|erst|schon|auf|spatestens|@)\s+)"
)
_NO_NAME = r"(?! (?:shifts?|class(?:es)?|school|nurse|train|bus|flight|course|duty|owl)\b)"  # "my night shift"
_PARTS = {
    "afterlunch": r"after lunch|nach dem mittag(?:essen)?|apres (?:le )?dejeuner|apres manger|despues de (?:comer|almorzar|la comida)",
    "afterwork": r"after work|nach (?:der arbeit|feierabend)|apres le (?:travail|boulot)|despues (?:del trabajo|de trabajar)",
    "afterdinner": r"after (?:dinner|supper)|nach dem abendessen|apres (?:le )?(?:diner|souper)|despues de (?:cenar|la cena)",
    "afternoon": r"afternoons?|nachmittags?|apres-?\s?midi|aprem|(?<=la )tardes?|(?<=sta )tarde|(?<=las )tardes",
    "morning": rf"mornings?{_NO_NAME}|vormittags?|morgens|fruh(?:morgens)?|matin(?:ee)?s?|madrugada|first thing|primera hora|premiere heure",
    "noon": r"noon|midday|lunchtime|mittags?|mediodia",
    "evening": rf"(?<!parents )(?<!parents' )(?<!quiz )(?<!open )evenings?{_NO_NAME}|abends?|soirs?|soiree",
    "night": rf"(?<!date )(?<!quiz )(?<!game )(?<!film )(?<!movie )(?<!games )nights?{_NO_NAME}|nachts?|nuits?|(?<=la )noche|(?<=sta )noche|(?<=las )noches|(?<=cada )noche",
}
PARTS = {name: lazy_regex(rf"(?:{words})") for name, words in _PARTS.items()}
PART = (
    r"\b(?:ganz |in the |at |this |a la |in der |am |zum |ce |cet |de l'|du |l'|cette |le |por la |de la |a la |al |en la |esta |este |los |les )?"
    rf"(?:{'|'.join(_PARTS.values())})(?!\w)|\b(?:am|jeden|diesen) morgen\b|\b(?:por|de|en) la manana\b|\b(?:les|las|la) mananas?\b"
)
_EVERY = r"(?:every|each|alle|jede[nrsm]?|cada|chaque|tou(?:t|s|te|tes) les|tod[oa]s l[oa]s|todo l[oa]s)"
_WORKDAYS = r"(?:week|work|working )days?(?: only)?|werktags?|werktagen?|wochentags?|jours? ouvr\w+|dias laborables|jours de semaine"
# "Tuesday to Saturday"; but "from Tuesday to Thursday" and "du mardi au jeudi" may describe a move.
_DAY_RANGE = (
    rf"(?:(?:tou(?:s|te) les jours |every day |jeden tag |todos los dias )?(?:from |du |de |von |del )?(?P<from>{DAY})"
    rf"\s?(?:through|thru|bis|hasta|-|–)\s?(?:el )?(?P<until>{DAY})"
    rf"|(?<!from )(?<!move )(?P<from2>{DAY}) to (?P<until2>{DAY})|\bde (?P<from3>{DAY}) a (?P<until3>{DAY})"
    rf"|(?:from |du |de )?(?P<from4>{DAYS['MO']}) (?:to|au|a) (?P<until4>{DAYS['FR']}))(?!\w)"
)
_NTH = r"(?:\d{1,2}(?!\d)(?:st|nd|rd|th|er|\.)?(?![:h]\d)|first|ersten|premier|primero|uno)"
_MONTHLY = r"(?:(?:of|de|in|des|du|im|jedes|jeden|any)\s+)*(?:every|each|the|jeden|jedes|cada|chaque|tous les|todos los)\s+(?:month|monats?|mes(?:es)?|mois)"

NTHS = {
    "1": r"first|1st|ersten?|1\.|premiers?|primer[oa]?s?",
    "2": r"second|2nd|zweiten?|2\.|deuxiemes?|segund[oa]s?",
    "3": r"third|3rd|dritten?|3\.|troisiemes?|tercer[oa]?s?",
    "4": r"fourth|4th|vierten?|4\.|quatriemes?|cuart[oa]s?",
    "-1": r"last|letzten?|derniers?|ultim[oa]s?",
}
_ORDINAL = "|".join(NTHS.values())

# Durations: "1 h 30", "20 min", "two and a half hours"; and in idiomatic words.
LENGTH = (
    rf"(?P<dnumber>{N})(?P<andhalf2>einhalb| and a half|[.,]5|½)?[\s-]?(?P<dunit>{ANY_UNIT})(?:\s?(?:and |und |et |y )?(?P<more>\d{{1,2}})(?!\d)"
    r"(?:\s?(?:min|mins|minutes?|minuten|minutos?)\b)?"
    rf"|\s(?:and|und|et|y) (?P<more2>{_WORDS})\s(?:min|mins|minutes?|minuten|minutos?)\b"
    r"|(?P<andhalf> and a half| y media| et demie)"
    r"|\s(?P<more3>five|ten|fifteen|twenty|thirty|forty|fifty|funf|zehn|funfzehn|zwanzig|drei(?:ß|ss)ig|vierzig|funfzig)(?=$|[.,!?]))?"
)
SPOKEN_LENGTH = (
    r"(?:(?P<half>half (?:an )?hour|(?:einer? |eine |'?ner? )?halben? stunde|(?:une )?demie?-?\s?heure|media hora)"
    r"|(?P<threequarters>three quarters of an hour|(?:(?:einer?|'?ner?) )?dreiviertel ?stunde|trois quarts d'heure|tres cuartos de hora)"
    r"|(?P<quarter>(?:a )?quarter (?:of an )?hour|(?:(?:einer?|'?ner?) )?viertel ?stunde|un quart d'heure|(?:un )?cuarto de hora)"
    r"|(?P<seventyfive>an hour and a quarter|one and a quarter hours|(?:eineinviertel|funfviertel) stunden?|une heure et quart"
    r"|(?:una )?hora y cuarto)"
    r"|(?P<ninety>(?:an |one )?hour and a half|one and a half hours|(?:anderthalb|eineinhalb) stunden|une heure et demie|(?:una )?hora y media))"
)

# "eine Stunde vor dem Zahnarzt", but "zehn Minuten vor acht"
_VOR = rf"vor\b(?! (?:\d|halb|viertel|(?:{_HOUR_WORDS})\b(?! [^\W\d])))"

# (kind, pattern), tried in this order; matched text is not available to later patterns.
_SOURCES: tuple[tuple[str, str], ...] = (
    ("iso", r"\b\d{4}-\d\d-\d\d(?:[t ]\d\d:\d\d(?::\d\d)?)?\b"),
    # recurrence
    (
        "workdays",
        rf"\b(?:on |{_EVERY} |an |en |los |les )?(?:{_WORKDAYS})\b|\b(?:en semaine|entre semana|unter der woche|wahrend der woche)\b",
    ),
    (
        "workdays",
        rf"\b{_EVERY} (?:school ?days?|schultage?n?|jours? (?:d'ecole|de classe)|dias? de (?:cole|colegio|escuela|clase))\b",
    ),
    ("day_range", rf"\b{_DAY_RANGE}"),
    (
        "weekends",
        rf"\b{_EVERY} (?:weekend|wochenende|week-?end|finde|fines? de semana)s?\b|\b(?:on |at |an |am |les |los )?(?:weekends|wochenenden|week-ends|fines de semana)\b",
    ),
    (
        "monthly",
        rf"\b(?:always|immer|jeweils|toujours|siempre) (?:on the|am|zum|le|el) (?:dia )?(?P<date3>{_NTH})(?!\w| (?:of )?(?:{MONTH})\b)",
    ),
    (
        "monthly",
        rf"\b{_EVERY} (?P<date4>{_NTH}|premiers|primeros)(?:\.|st|nd|rd|th)? (?:im|of the|of each|du|del|des|de cada) (?:monats?|month|mois|mes)\b",
    ),
    # "Jeden Ersten", "every 15th", "cada día 5": of the month, where no weekday, month or unit follows
    (
        "monthly",
        r"\b(?:on |an |am |den )?(?:jede[nm] (?P<date5>ersten|\d{1,2}\.)|(?:every|each) (?P<date6>\d{1,2}(?:st|nd|rd|th))"
        r"|chaque (?P<date7>1er|premier)|cada (?:dia )?(?P<date8>primero|(?<=dia )\d{1,2}))(?!\w)(?= (?:um|ab|gegen|an|ans|die|den|das|zu|mich|at|remind"
        r"|to|i|pay|a|rappelle|recuerda|avisa|\w{2,}[aei]r)\b|\s*(?:[,:;.!]|$))",
    ),
    (
        "nth_day",
        rf"\b(?:on |am |an )?(?:{_EVERY} |the |den |der |le |les |el |los )?(?P<nth>{_ORDINAL}) (?P<days>{DAY})"
        rf" (?:(?:of|de|in|des|du|del|im|von)\s)?(?:the |each |every |jede[nsm] |chaque |cada )?(?:months?|monats?|mois|mes)\b",
    ),
    (
        "nth_day",
        rf"\b(?:am|on)? ?(?P<nth2>{_ORDINAL}) (?P<days2>{DAY}) {_MONTHLY}\b",
    ),
    ("last_day", rf"\b(?:on )?(?:the |am |le |el )?(?:last day|letzten tag|dernier jour|ultimo dia) {_MONTHLY}\b"),
    ("monthly", rf"\b{GLUE}{{0,4}}(?:dia )?(?P<date>{_NTH}|primer(?= dia))(?: day| tag| jour| dia)? {_MONTHLY}\b"),
    (
        "monthly",
        rf"\b(?:{_EVERY} (?:months?|monat|mois|mes(?:es)?)|monthly|monatlich|mensuellement|mensualmente),? (?:on |am |le |el |the |a |dia )*(?P<date2>{_NTH})(?!\w)",
    ),
    (
        "yearly",
        rf"\b{_EVERY}(?= (?:{MONTH}) \d{{1,2}}| (?:the |am |le |el )?\d{{1,2}}(?:st|nd|rd|th|er|\.)?(?: of| de)? (?:{MONTH})\b)",
    ),
    (
        "biweekly",
        rf"\b(?:un|el|los) (?P<biweekday>{DAY}) (?:sur deux|si,? (?:y )?(?:el )?otro no)\b|\bcada (?:dos|segundo) (?P<biweekday2>{DAY})\b",
    ),
    (
        "half_hourly",
        rf"\b{_EVERY} (?:half (?:an )?hour|halbe stunde|demi-?\s?heures?|media hora)\b",
    ),
    (
        "alternate",
        r"\b(?:every (?:other|second) day|jeden zweiten tag|un jour sur deux|un dia si y otro no|un dia si,? (?:y )?(?:un dia|otro) no)\b",
    ),
    (
        "weekly",
        rf"\b(?:{_EVERY}|on|les|los) (?:(?P<step>other|second|zweiten?|\d{{1,2}}(?:\.|nd|rd|th)?) )?(?P<days>{DAY_LIST})",
    ),
    # "le mardi et le jeudi", which with one day alone may be the next one
    ("weekly", rf"\b(?P<step>(?!x)x)?(?P<days>le {DAY}(?:(?:,| et|, et) le {DAY})+)(?= (?:(?:a|vers|des) )?\d)"),
    ("weekly", rf"\b(?P<step>(?!x)x)?(?P<days>(?:{DAY}{AND})*(?:{_PLURAL_DAY})(?:{AND}{DAY})*)(?!\w)"),
    (
        "weekly",
        rf"\b(?P<step>(?!x)x)?(?P<days>(?:{_GERMAN_SHORT})\.?(?:(?:\s*[,+&/]\s*|\s+(?:und|u\.?)\s+)(?:{_GERMAN_SHORT})\b\.?)+)(?=\s*,?\s*(?:um |ab )?\d)",
    ),
    ("part_daily", rf"\b{_EVERY} (?P<part>{'|'.join(_PARTS.values())}|morgen|manana)s?\b"),
    ("interval", rf"\b{_EVERY} (?:(?P<number>{N})\s?)?(?P<unit>{ANY_UNIT})\b"),
    (
        "fortnightly",
        r"\b(?:once a fortnight|fortnightly|(?:every|each) fortnight|bi-?weekly|(?:vierzehn|14)-?tae?g(?:ig|lich)\w*"
        r"|(?:zwei|2)-?wochentlich\w*|im (?:14-tage|(?:zwei|2)-?wochen)-?(?:rhythmus|takt)|alle vierzehn tage|(?:tous|toutes) les (?:quinze|15) jours|cada (?:quincena|quince dias)|quincenal\w*)\b",
    ),
    (
        "interval",
        r"\b(?:once an? |(?:una vez|1 vez) (?:al|a la|por) |(?:une|1) fois par |(?:ein|1)mal (?:pro|am|die|in der|im) )(?P<unit2>day|week|month|year|hour|dia|semana|mes|ano|jour|semaine|mois|an|tag|woche|monat|jahr|stunde)\b",
    ),
    (
        "adverb",
        r"\b(?P<adverb>hourly|daily|weekly|monthly|yearly|annually|stundlich\w*|taglich\w*|wochentlich\w*|monatlich\w*|jahrlich\w*|quotidien\w*|hebdomadaire\w*|mensuel\w*|annuel\w*|diari\w+|semanal\w*|mensual\w*|anual\w*)\b",
    ),
    # durations
    (
        "before",
        rf"\b(?P<bnumber>{N})\s?(?P<bunit>{ANY_UNIT}) (?:before(?:hand)?|earlier|vorher|davor|fruher|avant|antes|{_VOR})(?: that)?\b|\b{SPOKEN_LENGTH} (?:before(?:hand)?|earlier|vorher|davor|fruher|avant|antes|{_VOR})\b|\b(?:the (?:day|(?P<beforeeve>evening|night)) before|am (?:tag (?:davor|vor)|tag vorher|vortag|(?P<beforeeve2>abend (?:vorher|davor|zuvor|vor(?! \d))|vorabend(?: vor)?))|la veille(?P<beforeeve3> au soir)?|(?:el dia|la (?P<beforeeve4>noche|tarde)) (?:antes|anterior|de antes))\b",
    ),
    ("delta", rf"\b(?:in|within|dans|en|dentro de|d'ici|de aqui a) {SPOKEN_LENGTH}\b"),
    (
        "weeks_after",
        rf"\b(?:in )?(?:a|one) week (?:from |on )?(?P<afterday2>{DAY}|today|tomorrow)\b|\b{GLUE}{{0,4}}(?P<afterday>{DAY}|today|heute|hoy|aujourd'hui|tomorrow|morgen|demain) (?:week\b|in a week\b|in einer woche\b|en (?P<eight>huit|ocho|quinze)\b)",
    ),
    ("delta", r"\b(?:in )?a fortnight(?: from (?:today|now))?\b|\b(?:in )?a fortnight's time\b"),
    (
        "delta",
        r"\b(?:in|dans|en) (?:einer woche|a week|une semaine|una semana) (?=ab|from)(?:ab heute|from today|from now)\b",
    ),
    ("delta", rf"\b(?:in|within|dans|en|dentro de|d'ici|de aqui a) {LENGTH}(?: from (?:now|today)| ab heute)?(?!\w)"),
    ("delta", rf"\b(?:{SPOKEN_LENGTH}|{LENGTH}) (?:from (?:now|today)|ab heute|ab jetzt|hence)\b"),
    # clock times
    (
        "clock",
        rf"(?<![:.\d])\b{GLUE}{{0,4}}(?P<by>half|quarter|(?:{N})(?: minutes)?) (?P<which>past|to|after) (?P<hour>{H})(?!:\d| (?:of )?(?:{MONTH})\b)(?: ?o'?clock)?(?P<ap> ?{AP})?",
    ),
    (
        "clock",
        rf"\b(?:{GLUE}|kurz ){{0,4}}(?:(?P<by2>viertel|{N}(?: minuten)?) (?P<which2>vor|nach) )?(?P<halb>halb|dreiviertel|viertel) (?P<hour2>{H})(?: uhr)?\b",
    ),
    (
        "clock",
        rf"\b(?:{GLUE}|kurz ){{0,4}}(?P<by3>viertel|{N}(?: minuten)?) (?P<which3>vor|nach) (?P<hour3>{H})(?: uhr)?\b",
    ),
    (
        "clock",
        rf"\b(?:{GLUE}){{0,4}}(?:las?|alas) (?P<hour5>{H})(?:[:.](?P<minute5>[0-5]\d)| (?P<and5>y media|y cuarto|y pico|en punto|menos cuarto|(?:y|menos) {_MINUTES}))?(?: ?h(?:oras)?\b)?(?!\w| ?(?:veces|personas|cosas)| (?:alarmas?|avisos?|citas?|tareas?|listas?|notas?|pastillas?|llamadas?|reuniones|recordatorios?)\b)",
    ),
    ("clock", rf"\b(?:{GLUE}){{0,4}}(?P<hour6>{H}) (?P<and6>y media|y cuarto|menos cuarto)\b"),
    (
        "clock",
        rf"(?:\b{GLUE}){{0,4}}(?<!\bd')(?:(?P<hour4>{H}) ?(?:heures?|h)|\b(?P<name4>(?<!apres-)(?<!apres )midi|minuit))(?: ?(?P<and4>et quart|et demie?|moins (?:le )?(?:quart|vingt|dix|cinq|\d\d?)|[0-5]\d(?!\d)|(?:cinq|dix|quinze|vingt(?:-cinq)?|trente(?:-cinq)?|quarante(?:-cinq)?|cinquante(?:-cinq)?)(?!\w)))?(?!\w)(?! ?(?:de plus|plus tard))",
    ),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}(?P<hour7>\d{{1,2}})[:h](?P<minute7>[0-5]\d)(?!\d)(?:-?ish\b)?(?: ?(?:uhr|h|horas|o'?clock)\b)?(?P<ap7> ?{AP})?",
    ),
    ("clock", rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}(?P<hour8>{H}) ?(?P<ap8>{AP})"),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}(?P<hour9>{H}) ?(?:uhr(?: (?P<minute9>[0-5]\d)(?!\d))?|o'?clock|horas)\b",
    ),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}\b(?:um|at|ab|@|gegen|bis) ?(?P<hour10>\d{{1,2}})\.(?P<minute10>[0-5]\d)(?![.\d])(?: uhr)?(?P<ap10> ?{AP})?",
    ),
    ("clock", rf"(?<![:.\d])\b{GLUE}{{0,4}}half (?P<halfhour>{H})(?!:\d)(?: ?o'?clock)?(?P<ap13> ?{AP})?"),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}(?P<hour14>\d{{1,2}})\.(?P<minute14>[0-5]\d)(?![.\d])(?:(?P<ap14> ?{AP})| uhr\b|(?= (?:in the|tomorrow|today|tonight|tmrw|tmr|morgen|heute)\b))",
    ),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}\b(?P<hour15>{H})(?: sharp| en punto)?(?= (?:in the (?:morning|afternoon|evening)|at night|de la (?:manana|tarde|noche|madrugada)|por la (?:manana|tarde|noche)|du (?:mat|matin|soir)|de l'apres|morgens|abends|nachmittags|mittags)\b)",
    ),
    ("clock", rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}\b(?P<hour16>\d{{1,2}})-?ish\b"),
    (
        "clock",
        rf"\b(?:at |um |a las )?(?P<hour17>{H}) (?:sharp|on the dot|en punto|pile|tapantes)\b|\b(?:um )?punkt (?P<hour18>{H})(?: uhr)?",
    ),
    ("clock", r"\b(?:at|um|around|gegen) (?P<hour19>[01]\d|2[0-3])(?P<minute19>[0-5]\d)(?![\w.,:]\w|\w)"),
    (
        "clock",
        rf"\b(?:when it'?s|wenn es|quand il (?:est|sera)|cuando sean las) (?P<hour21>{H})(?= ?(?:tonight|today|this|in the|[,.]|ist\b|$))",
    ),
    (
        "clock",
        rf"\b(?:and|und|et|y) (?P<hour22>{H})(?= (?:every|each|jeden|chaque|cada|tous les) (?:{'|'.join(_PARTS.values())}))",
    ),
    # "um 12 ans Essen" is not an age
    ("clock", rf"\bum (?P<hour20>{H})(?= ans\b)"),
    ("clock", r"\b(?:at |um )?(?P<name11>midnight|mitternacht|medianoche)\b"),
    # days
    (
        "date",
        rf"\b{GLUE}{{0,4}}(?:dia )?(?P<day>\d{{1,2}}(?!\d)|first|ersten|premier|primero)(?:st|nd|rd|th|er|\.)?(?: of| de)? (?P<month>{MONTH})\b\.?(?:,? (?:de |of )?(?P<year>\d{{4}}))?",
    ),
    ("holiday", rf"\b(?:on|at|an|am|zu|a|au|en|le jour de|el dia de) (?:la |le |el )?(?:{HOLIDAY})\b"),
    (
        "month_end",
        rf"\b(?:by |at |on |am |bis |zum |le |el |a |para |pour )?(?:the |el |la )?(?:last day of|end of|letzten? tag (?:im|des)|ende|dernier jour (?:de |d')|fin (?:de |d')?|ultimo dia de|final(?:es)? de)\s?(?P<month5>{MONTH})\b(?! \d)|\b(?:am |bis |zum )?(?:dem )?letzten (?P<month6>{MONTH})tag\b",
    ),
    (
        "date",
        rf"\b{GLUE}{{0,4}}(?P<month2>{MONTH}) (?:the )?(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:])(?:,? (?P<year2>\d{{4}}))?",
    ),
    (
        "dotted",
        rf"(?<![\d.])\b{GLUE}{{0,4}}(?P<day3>\d{{1,2}})\. ?(?P<month3>\d{{1,2}})\.(?P<year3>\d{{4}}|\d\d)?(?!\d)",
    ),
    (
        "slash",
        rf"(?<![\d/])\b{GLUE}{{0,4}}(?P<day4>\d{{1,2}})[/-](?P<month4>\d{{1,2}})(?:[/-](?P<year4>\d{{2,4}}))?(?![\d/])",
    ),
    (
        "relative",
        rf"\b{GLUE}{{0,4}}(?:day after (?:tomorrow|tmrw|tmr)|uber-?morgen|uebermorgen|apres-?\s?demain|pasado manana)\b",
    ),
    (
        "weekday",
        rf"\b{GLUE}{{0,4}}(?P<afternext>ue?ber-?nachste[nrsm]? )?(?P<weekday>{DAY})(?: (?P<next>next week|nachste[nr]? woche|de la semaine prochaine|prochaine?|qui vient|proximo|entrante|(?:que|q) viene|de la semana (?:que|q) viene|de la proxima semana|d'apres|after next|suivant|siguiente|danach|after(?: that)?(?= at | same|$)))?",
    ),
    ("part", rf"\b(?:tonight|tonite|2nite|heute? (?:abend|nacht)|ce soir|esta noche|cette nuit)\b|{PART}"),
    (
        "relative",
        rf"\b{GLUE}{{0,4}}(?P<rel>today|heute?|hoy|aujourd'hui|auj|tomorrow|tmrw|tmr|tomorow|tommorow|2mor\w*|tmoz|tomoz|tmw|morgen|morgigen? tag|demain|manana)(?!\w)",
    ),
    (
        "month_end",
        r"\b(?:by |at |on |am |zum |bis (?:zum )?|a |para |pour )?(?:the |le |el )?(?:letzten tag (?:des|im|dieses) monats?|dernier jour (?:du|de ce) mois|ultimo dia (?:del|de este) mes|last day of this month|end of (?:the |this )?month|month(?:'s)? end|monatsende|ende (?:des )?monats?|monatsletzten|(?:la )?fin (?:du|de) mois|(?:final|fin(?:es)?) de mes)\b",
    ),
    (
        "next_week_end",
        rf"\b{GLUE}{{0,4}}(?:la )?(?:end of next week|ende (?:der )?(?:nachste[rn]|kommende[rn]) woche|fin de (?:la )?semaine prochaine|final(?:es)? de (?:la )?(?:semana (?:que|q) viene|proxima semana))\b",
    ),
    (
        "span",
        rf"\b{GLUE}{{0,4}}(?:(?P<weekend>week-?end|wochenende|finde|fin de semana)|(?P<nextweek>next week|(?:nachste[nr]?|kommende[nr]?) woche|(?:la )?semaine (?:prochaine|qui vient|suivante)|semana (?:(?:que|q) viene|entrante|proxima|siguiente)|(?:la )?(?:proxima|otra) semana)|(?P<thisweek>(?:the )?end of (?:the|this) week|ende (?:der|dieser) woche|(?:la )?fin de (?:(?:la|cette) )?semaine(?! prochaine)|final(?:es)? de (?:la |esta )?semana|(?:this|the|my) week|(?:diese[rn]?|die|meine) woche|(?:cette|la|ma) semaine|(?:esta|la|mi) semana)|(?P<thismonth>this month|diesen monat|ce mois-?(?:ci)?|este mes|(?:des monats|du mois|del mes)))\b",
    ),
    (
        "month_day",
        r"(?:\b(?:(?:by|before|on|for|until|till|bis|fur|vor|spatestens|pour|para|avant|d'ici|antes|hasta) )?(?:(?:the) (?P<mday>\d{1,2})(?:st|nd|rd|th|\.)|(?:am|zum|den|dem|der) (?P<mday2>\d{1,2})\.(?!\d)|(?:le|du|au|el|al|del) (?:dia )?(?P<mday3>\d{1,2}(?:er)?))|(?<=\x00) (?P<mday4>\d{1,2})(?:st|nd|rd|th)|(?<=\x00) (?P<mday5>\d{1,2})(?=,?\s*\x00))(?![\w%]|:\d|,\d)(?! (?:euros?|eur|uhr|h|heures|horas|minut|personnes|personas|enfants)\b)",
    ),
    (
        "clock",
        rf"(?<![\d:.])(?:\b{GLUE}){{0,4}}\b(?:at|um|gegen|ab|@|vers|around|by|before|about|until|till?|bis|vor|sobre|hacia|avant|hasta|jusqu'a)(?: | ?(?=\d))(?P<hour12>{H})(?:ish\b)?(?![\w/]|:\d|\.\d| ?(?:{ANY_UNIT})\b)",
    ),
)
SOURCES = tuple((kind, lazy_regex(pattern)) for kind, pattern in _SOURCES)

# Precedes a time that is negated or replaced.
NEGATION = lazy_regex(
    r"(?:(?:\b(?:not|nicht|kein|no|pas|statt|anstatt|instead of|rather than|en vez de|en lugar de|au lieu (?:de|du)|ya no|ni)|n't)"
    r"(?: (?:erst|mehr|longer|plus|es|era|is|at|on|the|um|am|der|le|la|el|los|las|a|de|du|para|pour|fur|just|son|c'est))*\s*)$"
)
OLD = lazy_regex(r"\b(?:from|von|vom|de|del|du|des)\s*$")
NEW = lazy_regex(r"^\s*(?:to|auf|zu|zum|a|au|al|in)?\s*$")
CORRECTED = lazy_regex(
    r"^[\s,.…-]*(?:(?:no|non|nein|nee|ah|ach|oh|oder|or|euh|ehm?|eh|sorry|pardon|perdon|digo|correction|korrektur|correccion|quatsch|besser|better|mieux|mejor"
    r"|wait|espera|attends|warte|doesn'?t work(?: for me)?|won'?t work|is no good|do it|geht (?:doch )?nicht|passt (?:mir )?nicht"
    r"|(?:ca )?(?:ne )?(?:va|marche|m'arrange) pas|no (?:me )?(?:viene|va) bien|no puedo|actually|rather|lieber|plutot|i mean|i meant|ich mein\w*|je veux dire|quiero decir|eigentlich"
    r"|doch|make (?:it|that)|(?:I|i)|mein(?:e|te)? ich|finalement)[\s,.…-]*)+$"
)
