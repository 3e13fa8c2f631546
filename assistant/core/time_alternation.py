"""Spells "every other" as people say it in French and Spanish with the number that `time_language` reads: "une semaine
sur deux" is "toutes les 2 semaines", "día por medio" "cada 2 días", and "tous les quinze jours" two weeks. Pure.

Both languages count the day that a week begins with: fifteen days are two weeks, and eight are one.
"""

from __future__ import annotations

import re

from assistant.core.text import lazy_regex, replace_folded
from assistant.core.time_names import NUMBERS

_DAYS_FR = r"lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
_DAYS_ES = r"lunes|martes|miercoles|jueves|viernes|sabados?|domingos?"
_PARTS_FR = {"matin": "le matin", "soir": "le soir", "nuit": "le soir", "apres-midi": "l'après-midi"}
_PARTS_ES = {"noche": "por la noche", "tarde": "por la tarde", "manana": "por la mañana"}
_NUMBER = r"(?P<number>deux|trois|quatre|cinq|six|dos|tres|cuatro|cinco|seis|[2-6])"
# "Un jour sur deux", "une semaine sur trois", "un lundi sur trois"; "un lundi sur deux" has a rule of its own.
_FRENCH = lazy_regex(
    rf"\b(?:une? |1 )(?:(?P<unit>jour|semaine|mois|an|annee|heure|matin|soir|nuit|apres-midi|week-?end) sur {_NUMBER}"
    rf"|(?P<day>{_DAYS_FR}) sur (?!deux|2){_NUMBER.replace('number', 'number2')})\b"
    r"|\bun jour oui,? (?:et )?(?:un jour|l'autre) non\b"
)
_UNIT_ES = rf"(?P<unit>dia|semana|mes|ano|noche|tarde|manana|finde|fin de semana|{_DAYS_ES})"
_SPANISH = lazy_regex(
    # "una semana sí y otra no", "día sí, día no", "un lunes sí y uno no"
    rf"\b(?:una? |cada )?{_UNIT_ES} si,? (?:y )?(?:(?:el |la )?otr[oa]|un[oa]|(?:una? )?(?P=unit)) no\b"
    rf"|\b(?:un |una |el |la |los )?{_UNIT_ES.replace('unit', 'unit2')} (?:de )?por medio\b"
    rf"|\buna? {_UNIT_ES.replace('unit', 'unit3')} de cada {_NUMBER}(?! \w+s\b)"
    r"|\b(?:en |a |los |las )?(?P<unit4>dias|semanas|meses|anos|noches|tardes|mananas|findes|fines de semana"
    rf"|{_DAYS_ES})"
    r" altern[oa]s\b"
    r"|\bcada tercer dia\b"
)
# Whole weeks by their days.
_WEEKS_OF_DAYS = lazy_regex(
    r"\b(?P<every>tous les|cada) (?:(?P<two>quinze|15|quince|catorce|14)|huit|8|ocho) (?:jours|dias)\b"
    r"|\b(?:chaque|par|une fois par) quinzaine\b"
)


# "Chaque fin de mois", "cada fin de mes"
_MONTH_ENDS = lazy_regex(
    r"\b(?:(?:chaque|tou(?:te)?s les) fins? d[eu] mois|(?:(?:a |en )?la )?fin de chaque mois)\b"
    r"|\b(?:cada fin(?:al)? de mes|todos los fin(?:al)?es de mes|(?:a |al |el )?fin(?:al(?:es)?)? de cada mes)\b"
)


def spell_alternation(text: str) -> str:
    """Return the text with what alternates as an interval in a number."""
    text = replace_folded(_FRENCH, text, _in_french)
    text = replace_folded(_SPANISH, text, _in_spanish)
    text = replace_folded(_MONTH_ENDS, text, _on_last_day)
    return replace_folded(_WEEKS_OF_DAYS, text, _in_weeks)


def _number(match: re.Match[str]) -> int:
    groups = match.groupdict()
    word = groups.get("number") or groups.get("number2") or "2"
    return int(word) if word.isdigit() else NUMBERS[word]


def _in_french(match: re.Match[str]) -> str:
    number, unit = _number(match), match["unit"] or "jour"
    if match["day"]:
        return f"toutes les {number} semaines le {match['day']}"
    if unit.startswith("week"):
        return f"toutes les {number} semaines le samedi"
    if unit in _PARTS_FR:
        return f"tous les {number} jours {_PARTS_FR[unit]}"
    every = "toutes les" if unit in ("semaine", "heure", "annee") else "tous les"
    plural = {"mois": "mois", "annee": "années"}.get(unit, f"{unit}s")
    return f"{every} {number} {plural}"


def _in_spanish(match: re.Match[str]) -> str:
    groups = match.groupdict()
    unit = next((groups[name] for name in ("unit", "unit2", "unit3", "unit4") if groups[name]), "dia")
    number = _number(match)
    singular = next((one for one in ("dia", "semana", "mes", "ano") if unit in (one, f"{one}s", f"{one}es")), "")
    if singular:
        plural = {"dia": "días", "semana": "semanas", "mes": "meses", "ano": "años"}[singular]
        return f"cada {number} {plural}"
    if unit.startswith("fin"):
        return f"cada {number} semanas el sábado"
    if part := _PARTS_ES.get(unit.removesuffix("s")):
        return f"cada {number} días {part}"
    return f"cada {number} semanas el {unit}"


def _on_last_day(match: re.Match[str]) -> str:
    return "le dernier jour de chaque mois" if "mois" in match[0] else "el último día de cada mes"


def _in_weeks(match: re.Match[str]) -> str:
    every = match["every"] or "tous les"
    if every == "cada":
        return "cada 2 semanas" if match["two"] else "cada semana"
    return "toutes les 2 semaines" if match["two"] or "quinzaine" in match[0] else "toutes les semaines"
