"""Simple arithmetic: "what's 12*7", "15 Prozent von 80". Decimal, with the usual precedence. Pure.

The answer repeats the numbers as they were read, since "1.250" is not the same number everywhere.
"""

from __future__ import annotations

import re
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext

from assistant.core.text import lazy_regex
from assistant.models.offline.cues import fold

_LONGEST = 200
_DIGITS = 12  # of a result that is rounded
_MOST_DIGITS = 40
# Questions in words; after the first group numbers have a decimal point, after the second a decimal comma.
_ASKS = lazy_regex(
    r"(?:(?P<point>what(?:'s| is| are| does| do)?|how much (?:is|are|does)|calculate|compute|work out)"
    r"|(?P<comma>was (?:ist|sind|macht|ergibt|gibt)|wie ?viel (?:ist|sind|macht|ergibt|gibt)|rechne|berechne"
    r"|(?:ca fait )?combien (?:font|fait|ca fait)?|calcule[zr]?|cuanto (?:es|son|da|hacen|suman)|calcula))\s+(?:el )?"
)
_ASKS_BEHIND = lazy_regex(
    r"(?:\s*=\s*|,? (?:makes?|equals|macht|ergibt|gibt das|ca fait|cuanto es)"
    r"(?: was| what| wie ?viel| combien| cuanto)?)$"
)
_WORDS = (
    (r"(?:multiplied by|multipliziert mit|multiplie par|multiplicado por|times|mal|fois|por|x|×|·)", "*"),
    (r"(?:divided by|geteilt durch|dividiert durch|divise par|dividido (?:por|entre)|durch|entre|÷|:)", "/"),
    (r"(?:plus|mas|and|und|et|y)", "+"),
    (r"(?:minus|less|weniger|moins|menos|−|–)", "-"),
)
_SHARE = r" ?(?:%|percent|per cent|prozent|pour ?cents?|por ?cientos?)"
_NUMBER = r"\d[\d.,']*"
_PERCENT = lazy_regex(rf"({_NUMBER}){_SHARE} (?:of|von|vom|de|du|sur) ({_NUMBER})")
_EXPRESSION = lazy_regex(rf"{_NUMBER}(?: ?[-+*/] ?{_NUMBER})+")
_PIECE = lazy_regex(rf"{_NUMBER}|[-+*/]")
_SIGNS = {"*": "×", "/": "÷", "+": "+", "-": "-"}


def answer_sum(text: str) -> str:
    """Return the calculation of a sentence with its result, "" if there is none. Without a question word only an
    unambiguous one counts: "12*7", but not "24/7" or "10-12"."""
    if len(text) > _LONGEST or not any(map(str.isdigit, text)):
        return ""
    folded = fold(text).strip(" ?!.¿¡")
    asked = _ASKS.match(folded)
    plain = folded[asked.end() :] if asked else folded
    behind = _ASKS_BEHIND.search(plain)
    plain = plain[: behind.start()] if behind else plain
    comma = bool(asked and asked["comma"])
    if share := _PERCENT.fullmatch(plain):
        part, whole = (_number(number, comma) for number in share.groups())
        return _result(f"{_show(part)}% of {_show(whole)}", [part, "*", whole, "/", Decimal(100)])
    for words, sign in _WORDS:
        plain = re.sub(rf"(?<=\d) ?{words} ?(?=\d)", sign, plain)
    if not _EXPRESSION.fullmatch(plain) or not (asked or behind or "*" in plain):
        return ""
    pieces = [piece if piece in _SIGNS else _number(piece, comma) for piece in _PIECE.findall(plain)]
    shown = " ".join(_SIGNS[piece] if isinstance(piece, str) else _show(piece) for piece in pieces)
    return _result(shown, pieces)


def _number(text: str, comma: bool) -> Decimal:
    """Return the number of a text. `comma`: a comma is a decimal comma; otherwise it is one unless three digits follow
    it."""
    text = text.strip("'.,").replace("'", "")
    groups = re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text)
    if comma or ("," in text and not groups):
        if "," in text or re.fullmatch(r"\d{1,3}(?:\.\d{3})+", text):
            text = text.replace(".", "")
        text = text.replace(",", ".", 1)
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return Decimal("NaN")


def _result(shown: str, pieces: list[str | Decimal]) -> str:
    try:
        with localcontext() as context:
            context.prec = _MOST_DIGITS
            value = _evaluate(pieces)
    except DivisionByZero:
        return f"{shown} has no result: nothing can be divided by zero."
    except (InvalidOperation, Overflow):
        return ""
    if not value.is_finite() or abs(value) >= Decimal(10) ** _MOST_DIGITS:
        return ""
    rounded = value if value == value.to_integral_value() else +value.normalize()
    if len(rounded.as_tuple().digits) > _DIGITS and rounded != rounded.to_integral_value():
        with localcontext() as context:
            context.prec = _DIGITS
            rounded = +rounded
    return f"{shown} {'=' if rounded == value else '≈'} {_show(rounded)}"


def _evaluate(pieces: list[str | Decimal]) -> Decimal:
    """Evaluate alternating numbers and signs. Raises `DivisionByZero`, `InvalidOperation`."""
    total, term, sign = Decimal(0), Decimal(0), "+"
    for place in range(0, len(pieces), 2):
        number = Decimal(pieces[place])
        before = pieces[place - 1] if place else "+"
        if before == "*":
            term *= number
        elif before == "/":
            if not number:
                raise DivisionByZero
            term /= number
        else:
            total, term, sign = (total + term if sign == "+" else total - term), number, str(before)
    return total + term if sign == "+" else total - term


def _show(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
