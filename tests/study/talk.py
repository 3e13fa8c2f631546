"""What a person and their assistant talk about: work, travel, family, health, projects, the house. Everything follows
from the random source that is handed in.

A stretch of talk has a theme and few people and places that it comes back to, as real conversations do. Lengths are in
tokens of four characters.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.words import COMMON, FIRST_NAMES, PLACES, listed, vocabulary
from tests.study.facts import THINGS

_DAYS = listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday tomorrow tonight yesterday")
_USER = {
    "work": """
Had the call with {n} this morning, and it went better than I feared.
The draft for the {w} review is nearly there, only the part on {w} still sounds thin.
{n} thinks that we should push the {w} release to {d}, and I am not sure that I agree.
I keep getting pulled into meetings about {w} when I should be writing.
What would you say to somebody who answers every mail at midnight?
The team in {p} wants numbers on {w}, and nobody knows where they are kept.
My plan for {d} is two hours of quiet work before anybody else is in.
It feels as if the {w} budget is decided by whoever speaks last.
""",
    "travel": """
We are thinking of {p} in the spring, mostly for the food and the {w} walks.
The train to {p} takes {h} hours, which is fine with a good book.
{n} would rather fly, but I like to see where I am going.
How many days does one need for {p} if one does not rush?
I read that the old town of {p} is full of {w} shops now.
Packing is always the same: too many shirts, no umbrella.
The last time we were in {p} it rained for {h} days and we played cards.
Is it worth going out to the islands, or is that for people with a boat?
""",
    "family": """
{n} called, the little one has started to walk and holds on to everything.
My mother asks whether we come for dinner on {d}, and whether {n} eats fish.
There is a school play about {w}, and everybody has to bring a costume.
{n} and I talked for a long time about when we were children in {p}.
The cousins from {p} want to stay for {h} nights, which is a lot for one bathroom.
I would like to write {n} something kind, the last months were hard.
Dad is better, he complains about the food again, which is a good sign.
We never manage to all be in one room, somebody is always with the {t}.
""",
    "health": """
I slept badly again, awake at {h} and thinking about {w}.
The knee is better when I walk, worse when I sit all day.
{n} swears by cold showers, I would rather have tea.
Running with {n} on {d} was good, slow but good.
How does one get back into a habit after three weeks of nothing?
I try to eat less {w} and more vegetables, with mixed results.
The physiotherapist in {p} says that patience is the exercise.
""",
    "projects": """
The {t} is coming along, the floor is in and the {w} part is sanded.
I spent the evening with the {w} script, and it finally does what I meant.
{n} lent me tools for the {t}, so there is no excuse any more.
For the {w} sensor I need a case that keeps out water.
Half of the boards were warped, so I went back to {p} for others.
What is the difference between the two kinds of {w} glue, really?
If I get up early on {d} I could finish the frame.
The garden looks sad, but the {w} bed has a few green tips.
""",
    "home": """
The kitchen tap drips again, the third time since {d}.
We need a better place for the bicycles than the hall.
{n} from next door asked about the hedge, very politely.
The {w} lamp in the hall flickers whenever somebody runs the washing machine.
I want the shelves in the {t} to look less like a warehouse.
The market in {p} had {w} and good bread, so dinner is easy.
It is so quiet here when {n} is away.
What does one do with {h} jars of plum jam?
""",
}
_ASSISTANT = {
    "work": """
A clear note to {n} before {d} would settle most of it, short and without blame.
If the {w} part is thin, one example says more than another page of argument.
I would keep the quiet hours, and put the {w} meetings behind lunch.
Numbers that nobody can find are usually in two places that disagree.
One way is to say what you will do, by when, and what you will not do.
""",
    "travel": """
For {p}, {h} days are enough to walk everywhere once and to sit somewhere twice.
The slower train has the better views, and the {w} stretch is the best of it.
If it rains, the museum by the harbour is worth an afternoon.
Early in the season the {w} places are open and nobody is there yet.
I would book the first night only, and decide the rest from there.
""",
    "family": """
That sounds like {n}, and it sounds as if it did you good too.
A few plain lines are kinder than a long letter, and they get sent.
For the costume, the {w} box and an old coat go a long way.
With {h} guests it helps to have one meal that cooks itself.
You could ask {n} to bring dessert, people like to be asked.
""",
    "health": """
Begin with half of what you used to do, and stop while it is still easy.
Waking at that hour is common, and it passes sooner if one gets up for a while.
The knee tells you something about sitting, more than about walking.
Tea is fine. Habits that one likes are habits that one keeps.
Write down what you ate on {d} and nothing else, that is often enough.
""",
    "projects": """
Let the boards lie in the {t} for a week before you cut them.
The {w} glue holds longer outside, the other one is easier to undo.
A test with scrap wood costs ten minutes and saves an evening.
For the script, the part that reads {w} should be apart from the part that writes.
If {n} has the long clamps, borrow those as well.
""",
    "home": """
A drip that comes back is the seat and not the washer, so another washer will not help.
The flicker points at the {w} circuit, and that is for an electrician.
Hooks on the wall take {h} bicycles where the floor takes two.
Say yes to the hedge, and ask about the {t} at the same time.
Jam keeps for years, and neighbours are glad of it.
""",
}
_OPENINGS = {
    "user": ("So, a thought.", "One more thing.", "Hm.", "Right, next.", "Something else.", "Let me tell you.", ""),
    "assistant": ("Good.", "That makes sense.", "I see.", "Well done.", "Understood.", "Happy to think along.", ""),
}
THEMES = tuple(_USER)
# Most people, places and things are spoken of without their names.
_NAMELESS = {
    "n": ("my sister", "a colleague", "the neighbour", "my brother", "my boss", "a friend", "the kids", "he", "she"),
    "p": ("the city", "the coast", "the village", "the mountains", "the south", "the lake", "the island"),
    "t": ("kitchen", "hall", "balcony", "bathroom", "study", "garden", "office", "dining room"),
}
_BY_NAME = 0.3


@dataclass(frozen=True, slots=True)
class TopicStretch:
    """What some turns in a row are about."""

    theme: str
    names: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    words: tuple[str, ...]


class TopicTalk:
    """Endless talk out of one vocabulary: words that everybody uses, and as many that hardly anybody does."""

    def __init__(self, seed: int) -> None:
        everyday = list(dict.fromkeys(COMMON))[200:]
        self._words = everyday + vocabulary(seed, 6_000)[-len(everyday) :]

    def stretch(self, chance: random.Random) -> TopicStretch:
        """A new subject."""
        return TopicStretch(
            chance.choice(THEMES),
            tuple(_named(chance, FIRST_NAMES, "n", 3)),
            tuple(_named(chance, PLACES, "p", 2)),
            tuple(_named(chance, THINGS, "t", 2)),
            tuple(chance.sample(self._words, 12)),
        )

    def said(self, chance: random.Random, stretch: TopicStretch, tokens: int) -> str:
        """What the person says, of about that many tokens."""
        return self._spoken(chance, stretch, _USER, "user", tokens)

    def answered(self, chance: random.Random, stretch: TopicStretch, tokens: int) -> str:
        """What the assistant says."""
        return self._spoken(chance, stretch, _ASSISTANT, "assistant", tokens)

    def notes(self, chance: random.Random, title: str, tokens: int) -> str:
        """A text file of the person."""
        lines = [f"# {title}"]
        while sum(map(len, lines)) < 4 * tokens:
            stretch = self.stretch(chance)
            lines.append("- " + self._spoken(chance, stretch, _USER, "user", chance.randint(25, 60)))
        return "\n".join(lines) + "\n"

    def _spoken(
        self, chance: random.Random, stretch: TopicStretch, lines: dict[str, str], who: str, tokens: int
    ) -> str:
        templates: list[str] = []
        parts = [chance.choice(_OPENINGS[who])]
        while sum(map(len, parts)) < 4 * tokens:
            if not templates:
                templates = lines[stretch.theme].strip().splitlines()
                chance.shuffle(templates)
            parts.append(self._filled(chance, templates.pop(), stretch))
        return " ".join(part for part in parts if part)

    def _filled(self, chance: random.Random, template: str, stretch: TopicStretch) -> str:
        while "{w}" in template:
            template = template.replace("{w}", chance.choice(stretch.words), 1)
        sentence = template.format(
            n=chance.choice(stretch.names),
            p=chance.choice(stretch.places),
            t=chance.choice(stretch.things),
            d=chance.choice(_DAYS),
            h=chance.randint(3, 9),
        )
        return sentence[0].upper() + sentence[1:]


def _named(chance: random.Random, names: Sequence[str], kind: str, count: int) -> list[str]:
    """So many different ones, some of them by their names."""
    nameless = chance.sample(_NAMELESS[kind], count)
    return [chance.choice(names) if chance.random() < _BY_NAME else one for one in nameless]
