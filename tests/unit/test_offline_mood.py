"""No order is answered as if it had told something, whatever its verb and whoever says it how politely; and what only
tells something is never taken for an order."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest

from assistant.models.offline.mood import is_order, tells_what_was_done, tells_without_subject
from tests.support.utterances import play
from tests.unit.test_offline_utterances import first_reply

SEED = 20261129
# Verbs that nothing here carries out, with what follows them; each frame takes one form of its language.
VERBS = {
    "en": [
        "water the plants",
        "repaint my fence",
        "book us a table",
        "defrost the freezer",
        "hum a tune",
        "dust the shelves",
    ],
    "de": ["gieß die Blumen", "lackier den Zaun", "buch uns einen Tisch", "entkalk die Maschine", "brat mir ein Ei"],
    "fr": ["arrose les plantes", "repeins la clôture", "réserve une table", "détartre la machine", "grille du pain"],
    "es": ["riega las plantas", "pinta la valla", "reserva una mesa", "descalcifica la máquina", "tuesta el pan"],
}
FRAMES = {
    "en": [
        "{}",
        "please {}",
        "{}, please",
        "hey, {}",
        "can you {}?",
        "could you please {}",
        "would you {}?",
        "let's {}",
        "make sure you {}",
        "I need you to {}",
        "I'd like you to {}",
        "go ahead and {}",
        "Ok, now {}",
        "You should {}",
    ],
    "de": ["{}", "bitte {}", "{}, bitte", "hallo, {}", "jetzt {}", "ok, {}", "komm, {}", "sei so gut und {}"],
    "fr": ["{}", "s'il te plaît, {}", "{}, stp", "salut, {}", "bon, {}", "allez, {}", "si tu peux, {}"],
    "es": ["{}", "por favor, {}", "{}, porfa", "hola, {}", "venga, {}", "ahora {}", "si puedes, {}"],
}
# Frames with an infinitive or a clause, which the imperatives above don't fit.
FRAMED = [
    *("Kannst du die Blumen gießen?", "Könntest du bitte den Zaun lackieren", "Würdest du uns einen Tisch buchen?"),
    *("Lass uns die Reise planen", "Sorg dafür, dass die Sicherung läuft", "Ich möchte, dass du den Zaun lackierst"),
    *("Gießen Sie bitte die Blumen", "Stell sicher, dass die Tür zu ist", "Du sollst die Maschine entkalken"),
    *("Peux-tu arroser les plantes ?", "Pourrais-tu repeindre la clôture", "Pourriez-vous réserver une table ?"),
    *("Fais en sorte que la porte soit fermée", "Assure-toi que tout tourne", "Planifions le voyage à Rome"),
    *("Il faut que tu arroses les plantes", "Je voudrais que tu répares la clôture", "Tu peux griller du pain ?"),
    *("¿Puedes regar las plantas?", "¿Podrías pintar la valla?", "Necesito que pintes la valla", "Planeemos el viaje"),
    *("Asegúrate de que la puerta esté cerrada", "Haz que la copia se haga", "Quiero que descalcifiques la máquina"),
    *("Make sure the backup runs", "Let's plan the trip to Rome", "Would you mind watering the plants?"),
]
ORDERS = [
    *(frame.format(verb) for lang in VERBS for frame, verb in product(FRAMES[lang], VERBS[lang])),
    *FRAMED,
]
SUBJECTS = {
    "en": [
        ("my sister", "is a nurse"),
        ("the boiler man", "comes on Thursdays"),
        ("Anna", "likes peonies"),
        ("I", "put the keys in the drawer"),
        ("we", "set the table outside"),
        ("Tom", "said the shop is shut"),
    ],
    "de": [
        ("meine Schwester", "ist Pflegerin"),
        ("der Monteur", "kommt donnerstags"),
        ("Anna", "mag Pfingstrosen"),
        ("ich", "habe die Schlüssel in die Schublade gelegt"),
        ("Tom", "sagt, der Laden hat zu"),
    ],
    "fr": [
        ("ma sœur", "est infirmière"),
        ("le chauffagiste", "vient le jeudi"),
        ("Anna", "aime les pivoines"),
        ("Paul", "a changé de travail"),
        ("Tom", "dit que le magasin est fermé"),
    ],
    "es": [
        ("mi hermana", "es enfermera"),
        ("el técnico", "viene los jueves"),
        ("Anna", "tiene un perro"),
        ("Pablo", "cambió de trabajo"),
        ("Tom", "dice que la tienda está cerrada"),
    ],
}
OPENINGS = {
    "en": ["", "so ", "well, ", "by the way, "],
    "de": ["", "also ", "übrigens, ", "na ja, "],
    "fr": ["", "bon, ", "au fait, ", "enfin, "],
    "es": ["", "bueno, ", "por cierto, ", "pues "],
}
# Without their subject; what was done has the form of an order in English.
ELLIPTIC = [
    *("Put my keys in the drawer this morning", "Cut the hedge yesterday", "Set the table outside last night"),
    *("Let the cat out earlier", "Read the whole book last week", "Shut the shop early the other day"),
    *("Bought a new bike, 600 euros", "Called mum, she's fine", "Moved to Leeds in May", "Left the car at the station"),
    *("Habe Mama angerufen, es geht ihr gut", "Neues Rad gekauft, 600 Euro", "Die Schlüssel liegen im Auto"),
    *("Acheté un vélo neuf, 600 euros", "Appelé maman hier, elle va bien", "Mis les clés dans le tiroir ce matin"),
    *("Compré una bici nueva, 600 euros", "Ayer llamé a mamá", "Puse las llaves en el cajón"),
    *("Dinner the other day was late", "Turns out the dog ate it"),
]
STATEMENTS = [
    *(f"{o}{s} {p}" for lang in SUBJECTS for o, (s, p) in product(OPENINGS[lang], SUBJECTS[lang])),
    *ELLIPTIC,
]


def test_there_are_as_many_as_the_rule_is_judged_by() -> None:
    assert len(ORDERS) >= 200 and len(STATEMENTS) >= 100


@pytest.mark.parametrize("case", [str, str.upper, str.lower])
def test_every_order_has_its_mood_and_no_statement_has_it(case: type[str]) -> None:
    assert [text for text in ORDERS if not is_order(case(text))] == []
    assert [text for text in STATEMENTS if is_order(case(text)) and case is not str.upper] == []


def test_what_was_done_is_told_where_its_time_is_over() -> None:
    assert tells_what_was_done("Put my keys in the drawer this morning")
    assert not tells_what_was_done("Put my keys in the drawer")
    assert not tells_what_was_done("Put the eggs on the list I made yesterday")
    assert not tells_what_was_done("Set it up for this morning")


async def test_an_order_is_never_answered_as_noted_and_a_statement_never_refused() -> None:
    drawn = random.Random(SEED)
    for text in drawn.sample(ORDERS, 60):
        reply = await first_reply(text)
        assert reply.tool_calls or "noted" not in reply.content.casefold(), text
    for text in [*drawn.sample(STATEMENTS, 20), *ELLIPTIC[:6]]:
        reply = await first_reply(text)
        changes = [call for call in reply.tool_calls if call.name != "search_history"]
        assert "can't do that" not in reply.content and not changes, text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Acheté un vélo neuf",
            "Perdu mes lunettes au parc",
            "Reçu la lettre de la mairie",
            "Pris le train avec Paul",
        ),
        *("Compré una bici nueva", "Vendí la moto", "Vi a Marta en el mercado", "Comido con Ana en el centro"),
        *("Neue Brille bekommen", "Den Keller aufgeräumt", "Trinke abends immer Tee", "Gehe sonntags laufen"),
        *("Bought a bike", "Sold the old sofa to Kim", "The timer on the microwave is dead", "Lass mich nachdenken"),
    ],
)
async def test_what_only_tells_is_noted_though_it_names_nobody(text: str) -> None:
    assert tells_without_subject(text) and not is_order(text)
    assert (await first_reply(text)).content.startswith("Noted.")


@pytest.mark.parametrize(
    "text",
    [
        *("achète un vélo neuf", "compra una bici nueva", "poné la leche en la heladera", "Escribí a Marta"),
        *("Brille bestellen", "pinta el pasillo", "Starte jeden Tag um 7 Uhr Musik", "qué tengo mañana"),
        *("Shred the letters", "kiné 14h45 au lieu de 14h", "¿Vendí la moto?", "stop the timer on the oven"),
    ],
)
def test_what_orders_or_asks_has_no_form_of_telling(text: str) -> None:
    assert not tells_without_subject(text)


@pytest.mark.parametrize(
    "text",
    [
        *("Lass es regnen", "Lass die Sonne scheinen", "Lass Badewasser ein", "Let it snow", "démarre le four"),
        *("Resume mi semana", "Summarise my week", "Fass meine Woche zusammen", "Résume ma semaine"),
    ],
)
async def test_what_nothing_here_can_do_is_refused(text: str) -> None:
    reply = await first_reply(text)
    assert "can't" in reply.content and not reply.tool_calls


@pytest.mark.parametrize("text", ["Starte einen Timer", "start a timer", "lance un minuteur", "inicia un temporizador"])
async def test_a_timer_without_its_length_is_asked_for_and_put_on_no_list(text: str) -> None:
    reply = await first_reply(text)
    assert reply.content.startswith("For how long?") and not reply.tool_calls


@pytest.mark.parametrize(
    ("set_by", "stopped_by"),
    [
        ("stell einen Timer auf 7 Minuten", "Stopp den Timer"),
        ("stell den Wecker auf 18 Uhr", "mach den Wecker wieder aus"),
        ("pon un temporizador de 7 minutos", "Para el temporizador"),
        ("mets un minuteur de 7 minutes", "éteins le minuteur"),
        ("set a timer for 7 minutes", "end the timer"),
    ],
)
async def test_a_timer_is_stopped_in_whatever_words(tmp_path: Path, set_by: str, stopped_by: str) -> None:
    row = {"given": [set_by], "say": stopped_by}
    before, after = await play(tmp_path / "home", row)
    assert len(before.reminders) == 1 and not after.reminders and not after.todos
