"""Number words, month names and fixed-date holidays in English, German, French and Spanish, in the form of `fold_text`
(lower case, no accents). Pure data, used in the patterns of `time_language`.
"""

from __future__ import annotations

# Languages are separated by "|", in the order of `LANGUAGES`.
_NUMBER_LINES = {
    1: "one a an | ne nen ein eine einer einem einen eins | un une | uno una un",
    2: "two other second | zwei zwo zweiten zweite zweites | deux | dos",
    3: "three third | drei dritten | trois | tres",
    4: "four | vier | quatre | cuatro",
    5: "five | funf fuenf | cinq | cinco",
    6: "six | sechs | six | seis",
    7: "seven | sieben | sept | siete",
    8: "eight | acht | huit | ocho",
    9: "nine | neun | neuf | nueve",
    10: "ten | zehn | dix | diez",
    11: "eleven | elf | onze | once",
    12: "twelve | zwolf zwoelf | douze | doce",
    13: "thirteen | dreizehn | treize | trece",
    14: "fourteen | vierzehn | quatorze | catorce",
    15: "fifteen | funfzehn fuenfzehn | quinze | quince",
    16: "sixteen | sechzehn | seize | dieciseis",
    17: "seventeen | siebzehn | dix-sept | diecisiete",
    18: "eighteen | achtzehn | dix-huit | dieciocho",
    19: "nineteen | neunzehn | dix-neuf | diecinueve",
    20: "twenty | zwanzig | vingt | veinte",
    25: "twenty-five | funfundzwanzig fuenfundzwanzig | vingt-cinq | veinticinco",
    30: "thirty | dreißig dreissig | trente | treinta",
    40: "forty | vierzig | quarante | cuarenta",
    45: "forty-five | funfundvierzig fuenfundvierzig | quarante-cinq |",
    50: "fifty | funfzig fuenfzig | cinquante | cincuenta",
    60: "sixty | sechzig | soixante | sesenta",
    90: "ninety | neunzig | | noventa",
}
LANGUAGES = ("english", "german", "french", "spanish")
NUMBERS_BY_LANGUAGE = {
    language: {word: number for number, line in _NUMBER_LINES.items() for word in line.split("|")[place].split()}
    for place, language in enumerate(LANGUAGES)
}
NUMBERS = {word: number for number, line in _NUMBER_LINES.items() for word in line.replace("|", " ").split()}
NUMBERS |= dict.fromkeys(("couple of", "a couple of", "a couple", "un par de", "une paire de"), 2)

MONTH_NAMES = (
    r"jan(?:uary|uar|vier)?|enero",
    r"feb(?:ruary|ruar|rero)?|fevrier|fevr",
    r"march|mar|marz|maerz|mrz|mars|marzo",
    r"apr(?:il)?|avril|abril",
    r"may|mai|mayo",
    r"june?|juni|juin|junio",
    r"july?|juli|juillet|julio",
    r"aug(?:ust)?|aout|agosto",
    r"sept?(?:ember|embre|iembre)?",
    r"oct(?:ober|obre|ubre)?|okt(?:ober)?",
    r"nov(?:ember|embre|iembre)?",
    r"dec(?:ember|embre)?|dez(?:ember)?|dic(?:iembre)?",
)

# Holidays on fixed dates: month, day, names.
HOLIDAYS = (
    (12, 24, r"(?:christmas|xmas) eve|heilig(?:en |er )?abend|veille de noel|nochebuena"),
    (12, 25, r"christmas(?: day)?(?! \w*(?:eve|list|party|tree))|weihnachten|(?:ersten )?weihnachtstag|noel|navidad"),
    (12, 31, r"new year'?s eve|silvester|(?:saint|st)-sylvestre|nochevieja"),
    (1, 1, r"new year'?s day|neujahr(?:stag|smorgen)?|jour de l'an|nouvel an|ano nuevo"),
    (1, 6, r"dreikonig(?:stag)?|epiphany|l'epiphanie|reyes"),
    (2, 14, r"valentine'?s(?: day)?|valentinstag|saint-valentin|san valentin"),
    (10, 31, r"halloween"),
    (12, 6, r"nikolaus(?:tag)?|saint-nicolas"),
)

HOURS_OF_PARTS = {
    "morning": 9,
    "noon": 12,
    "afterlunch": 14,
    "afternoon": 15,
    "evening": 18,
    "afterwork": 18,
    "night": 20,
    "afterdinner": 20,
}
