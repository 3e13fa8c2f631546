"""Irregular English forms by the word that they are forms of, which no stemmer finds: went is go, children child. Pure.

Only what is nothing else as often: "found" is find, but "lay", "wound" and "better" stay themselves. Words are folded.
"""

from __future__ import annotations

from collections.abc import Iterable

from assistant.search.index import StemsOf

_FORMS = """
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
_BASES = {
    form: base
    for line in _FORMS.strip().replace("\n", ";").split(";")
    for base, *forms in [line.split()]
    for form in forms
}


def with_irregular(stems: StemsOf) -> StemsOf:
    """`stems`, with irregular forms under the stem of their base."""

    def of(words: Iterable[str]) -> dict[str, str]:
        asked = list(words)
        found = stems(_BASES.get(word, word) for word in asked)
        return {word: found[_BASES.get(word, word)] for word in asked}

    return of
