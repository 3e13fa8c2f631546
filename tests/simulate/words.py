"""What the people of a simulated life say, and the words by which it is known again.

Each fact carries a word that is said nowhere else, and whose end tells whose it is: so a prompt, a file or a network
shows at a glance whether it has words that it must not have.
"""

from __future__ import annotations

import re
from random import Random

_SYLLABLES = [
    "ba",
    "be",
    "bi",
    "bo",
    "da",
    "de",
    "di",
    "do",
    "fa",
    "fe",
    "ga",
    "go",
    "ka",
    "ke",
    "ki",
    "la",
    "le",
    "lo",
    "ma",
    "me",
    "mi",
    "na",
    "ne",
    "no",
    "pa",
    "pe",
    "ra",
    "re",
    "ri",
    "sa",
    "se",
    "ta",
    "te",
    "to",
    "va",
]
_ENDS = {"owner": "qox", "ann": "qax", "ivo": "qix", "room": "qux"}
_SCOPES = {end: scope for scope, end in _ENDS.items()}
WORD = re.compile(r"\b[a-z]{6,16}q[aiou]x\b")

PLACES = [
    "harbour",
    "forest",
    "market",
    "library",
    "station",
    "bakery",
    "museum",
    "garden",
    "lighthouse",
    "school",
    "chapel",
    "bridge",
]
# Whom somebody talks about: nobody else does, so that a question names whose it is.
NAMES = {
    "owner": ["Greta", "Jonas", "Mirjam", "Tobias", "Selma", "Henrik", "Frida", "Anton", "Ludvig", "Signe"],
    "ann": ["Oskar", "Maja", "Ruben"],
    "ivo": ["Ylva", "Birk"],
    "room": ["Torvald", "Liv"],
}
THINGS = [
    "boat",
    "cabin",
    "bicycle",
    "locker",
    "garage",
    "piano",
    "cellar",
    "shed",
    "printer",
    "tent",
    "drone",
    "camera",
    "violin",
    "freezer",
]
ASPECTS = ["code", "colour", "number", "name", "label", "maker", "model", "place", "price", "engine", "lender"]
TASKS = (
    "water the plants",
    "call the plumber",
    "pay the rent",
    "pick up the parcel",
    "bake the bread",
    "book the ferry",
)
ITEMS = ["milk", "eggs", "candles", "rope", "paint", "batteries", "flour", "soap", "nails", "lamp-oil", "tea", "salt"]
REMARKS = (
    "Today we walked past the {place} with {person}, and it rained for an hour before the sun came out again.",
    "{person} came by and told a long story about the {place}; I laughed a lot and then we cooked soup together.",
    "I am tired. Work was long, the train was late again, and at the {place} there was nowhere to sit.",
    "We spent the evening at the {place}. {person} brought the {thing}, which nobody needed, but it was kind.",
    "Thanks, that helps.",
    "Good morning!",
)

KEY = r"The (?P<aspect>[a-z-]+) of (?P<whose>[A-Z][a-z]+)'s (?P<thing>[a-z]+)"
FACT = re.compile(rf"(?P<key>{KEY}) is (?:now )?(?P<value>[a-z]{{6,16}}q[aiou]x)\.")
QUESTION = re.compile(r"What is (?P<key>the (?P<aspect>[a-z-]+) of (?P<whose>[A-Z][a-z]+)'s (?P<thing>[a-z]+))\?")
REMIND = re.compile(r"Remind me to (?P<text>[^;]+); (?P<when>[^;.]+)\.")
LIST_ITEM = re.compile(r"Put (?P<text>[^;]+) on my list, please\.")


def make_word(luck: Random, scope: str) -> str:
    return "".join(luck.choice(_SYLLABLES) for _ in range(4)) + _ENDS[scope]


def scopes_of(text: str) -> set[str]:
    """Whose words are in it."""
    return {_SCOPES[word[-3:]] for word in WORD.findall(text)}


def make_key(luck: Random, scope: str) -> str:
    return f"The {luck.choice(ASPECTS)} of {luck.choice(NAMES[scope])}'s {luck.choice(THINGS)}"


def make_remark(luck: Random, scope: str) -> str:
    form = luck.choice(REMARKS)
    return form.format(place=luck.choice(PLACES), person=luck.choice(NAMES[scope]), thing=luck.choice(THINGS))


def question_key(question: str) -> str:
    match = QUESTION.search(question)
    return "" if match is None else f"T{match['key'][1:]}"
