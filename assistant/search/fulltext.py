"""The words of a question, how the full text of the journal is asked for them, and stems as it makes them.

What always holds:
- A question becomes single words, each quoted: nothing is left of what a person or a model types that FTS5 could read
  as syntax.
- Scripts written without spaces become overlapping pairs of characters; `unicode61` alone would make one word of a
  whole sentence.
- Stems are computed by SQLite (`assistant.store.search.record_text`), so that no second stemmer can disagree with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from assistant.core.text import STOP_WORDS, distinct_words, is_spaceless

FindStems = Callable[[Iterable[str]], dict[str, str]]
"""Word -> stem, for several at once; "" for one that has no letter or digit."""
MAX_QUERY_WORDS = 24
"""How many different words of a question count; the rest of a longer one is left out."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a question."""

    text: str  # folded
    match: str  # how FTS5 is asked for it
    spaceless: bool = False  # a piece of a run without spaces: found anywhere, any other word only whole


def query_words(query: str) -> list[QueryWord]:
    """The different words of a question in their order, stop words left out unless there is nothing else."""
    distinct = distinct_words(query)[: 4 * MAX_QUERY_WORDS]
    words = [word for word in distinct if word not in STOP_WORDS] or distinct
    return [_query_word(word) for word in words[:MAX_QUERY_WORDS]]


def _query_word(word: str) -> QueryWord:
    spaceless = is_spaceless(word)
    return QueryWord(word, f'"{word}"*' if spaceless and len(word) == 1 else f'"{word}"', spaceless)


def match_any(words: Sequence[QueryWord]) -> str:
    """The FTS5 expression for rows that hold any of the words."""
    return f"({' OR '.join(word.match for word in words)})"


_IRREGULAR_FORMS = """
bear bore borne; beat beaten; become became; begin began begun; bend bent; bite bit bitten; bleed bled; blow blew blown
break broke broken; breed bred; bring brought; build built; burn burnt; buy bought; catch caught; choose chose chosen
come came; deal dealt; dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten
fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown; forbid forbade forbidden
forget forgot forgotten; forgive forgave forgiven; freeze froze frozen; get got gotten; give gave given; go went gone
grow grew grown; hang hung; hear heard; hide hid hidden; hold held; keep kept; know knew known; lay laid; lead led
lean leant; learn learnt; leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met
pay paid; ride rode ridden; ring rang rung; rise rose risen; run ran; say said; see saw seen; seek sought; sell sold
send sent; sew sewn; shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung
sink sank sunk; sit sat; sleep slept; slide slid; speak spoke spoken; speed sped; spend spent; spill spilt; spin spun
spoil spoilt; stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn; sweep swept
swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told; think thought
throw threw thrown; understand understood; wake woke woken; wear wore worn; weave wove woven; weep wept; win won
write wrote written; child children; man men; woman women; foot feet; tooth teeth; mouse mice; wife wives; life lives
knife knives; half halves; wolf wolves; shelf shelves; loaf loaves; bad worse worst
"""


@cache
def _base_forms() -> Mapping[str, str]:
    return {
        form: base
        for line in _IRREGULAR_FORMS.strip().replace("\n", ";").split(";")
        for base, *forms in [line.split()]
        for form in forms
    }


def base_form(word: str) -> str:
    """The base of an irregular English form, which no stemmer finds ("went" is "go", "children" "child"); any other
    word itself. Only forms that are nothing else as often: "found" is "find", but "lay", "wound", "better" stay."""
    return _base_forms().get(word, word)


def with_irregular_forms(stems: FindStems) -> FindStems:
    """`stems`, with irregular forms under the stem of their base."""

    def find(words: Iterable[str]) -> dict[str, str]:
        bases = {word: base_form(word) for word in words}
        stem_of = stems(bases.values())
        return {word: stem_of[base] for word, base in bases.items()}

    return find
