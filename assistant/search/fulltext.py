"""The full-text side of search: what the FTS5 index is given, how a question is put to it, and stems exactly as it
makes them.

What always holds:
- The index is contentless: it holds what `index_text` makes of a record's words, never the words themselves. Whoever
  writes, rebuilds or deletes a row of it uses this function, or what was deleted would still be found.
- A question becomes single words, each quoted: nothing is left of what a person or a model types that FTS5 could read
  as syntax.
- Scripts written without spaces are indexed as overlapping pairs of characters; `unicode61` alone would make one word
  of a whole sentence. It costs up to two bytes of index for each byte of such text; English takes half a byte.
- Private-use characters are removed from texts, so that the scope's own term occurs in no text.
- Stems are computed by SQLite (`assistant.store.search.stemmer`), so that no second stemmer can disagree with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from assistant.core.text import STOP_WORDS, distinct_words, is_spaceless, split_spaceless_runs

FindStems = Callable[[Iterable[str]], dict[str, str]]
"""Word -> stem, for several at once; "" for one that has no letter or digit."""
MAX_QUERY_WORDS = 24
"""How many different words of a question count; the rest of a longer one is left out."""


@dataclass(frozen=True, slots=True)
class QueryWord:
    """One word of a question. `text` is folded; `match` is how FTS5 is asked for it. A piece of a spaceless run is
    found anywhere, any other word only whole."""

    text: str
    match: str
    spaceless: bool = False


def index_text(text: str, scope: str, speaker: str | None = None) -> str:
    """What the full-text index is given of a record with these words, said by `speaker` in `scope`; nothing where
    nothing was said."""
    if not text:
        return ""
    return f"{scope_term(scope)} {split_spaceless_runs(f'{speaker}: {text}' if speaker else text)}"


def scope_term(scope: str) -> str:
    """The term that every row of a scope carries, so that a small scope is not searched for among a large one's rows.
    It saves time only; what may be seen is decided by the scope column."""
    digest = hashlib.blake2b(scope.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return "".join(chr(0xE000 + byte) for byte in digest)


def query_words(query: str) -> list[QueryWord]:
    """The different words of a question in their order, stop words left out unless there is nothing else."""
    found = distinct_words(query)[: 4 * MAX_QUERY_WORDS]
    words = [word for word in found if word not in STOP_WORDS] or found
    return [_query_word(word) for word in words[:MAX_QUERY_WORDS]]


def _query_word(word: str) -> QueryWord:
    spaceless = is_spaceless(word)
    return QueryWord(word, f'"{word}"*' if spaceless and len(word) == 1 else f'"{word}"', spaceless)


def match_any(words: Sequence[QueryWord]) -> str:
    """The FTS5 expression for rows that hold any of the words."""
    return f"({' OR '.join(word.match for word in words)})"


def match_all(parts: Sequence[str]) -> str:
    """The FTS5 expression for rows that fit all the parts."""
    return " AND ".join(parts)


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
        found = stems(bases.values())
        return {word: found[base] for word, base in bases.items()}

    return find
