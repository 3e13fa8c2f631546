"""The language that generated homes are written in: words by rank, so that text has the shape of natural text.

What search costs depends on how often words occur, and that follows Zipf's law in every language: a handful of words
stands in nearly every message, most words stand in hardly any. The first ranks are English words, so that natural
questions meet them; the long tail is made of syllables with English endings, so that stemming has work to do. The
same seed always gives the same vocabulary.
"""

from __future__ import annotations

import random


def listed(words: str) -> list[str]:
    return words.split()


COMMON = listed(
    """
    the i to and a you it of that in is for on my we was this have with me but so not be at are do can just if as
    like what about your all they get there out up one or had from when will would know think good he how now more
    time she then some by go going don't really an did were no its been am see our make need also well only want day
    has could other than because her him work too very them back who much after us which still even here got last
    new into way way take say things where over should his week today said first before little next why their home
    thing right off something people look two maybe down again might long sure made let come left many always most
    find great tell these keep old never better help went every give tomorrow same night put done use morning year
    feel around thought told another bit while yes yesterday place called those ask house sorry few lot call nice
    thanks check later try years end through ever read until since anything big run both best away fine start money
    name ago part book list meeting someone evening weekend found buy bought enough write early wrote free small
    friend friends family car city food dinner lunch room door key kitchen street train plan plans note notes
    remember forget asked answer question idea change open close number phone email letter message send sent week's
    month months hour hours minute minutes second half once twice almost already soon together alone almost near far
    under above between behind across inside outside water coffee tea bread milk apple cheese fish rice soup salad
    cake wine beer garden tree flower dog cat bird horse school teacher student class course lesson exam office boss
    colleague project report page paper table chair bed lamp window wall floor roof stairs bathroom shower clean
    dirty wash cook eat drink sleep wake walk drive ride fly swim play watch listen hear speak talk learn teach
    study train's bus bike boat ship plane ticket hotel trip travel holiday summer winter spring autumn january
    february march april may june july august september october november december monday tuesday wednesday thursday
    friday saturday sunday mother father sister brother son daughter aunt uncle cousin grandmother grandfather
    husband wife neighbour doctor dentist nurse hospital pharmacy medicine pain head hand foot back's knee tooth eye
    ear heart cold warm hot rain snow sun wind weather cloud storm red blue green yellow black white grey brown
    price cost pay paid bill bank account card cash euro euros cheap expensive shop store market bag box bottle cup
    plate knife fork spoon shirt coat shoes dress hat gloves clothes music song guitar piano film theatre museum
    park river lake sea beach mountain forest bridge road corner map left's north south east west country language
    english german french word words story news paper's radio television computer laptop screen keyboard printer
    file folder password internet website code program error battery charger camera picture photo video game team
    match goal win lose score birthday party gift wedding christmas easter invite guest guests visit stay leave
    arrive wait hurry late quiet loud happy sad angry tired hungry thirsty sick healthy strong weak easy hard
    difficult simple important useful strange funny serious possible ready careful lucky proud afraid short tall
    high low heavy light dark bright fast slow young empty full wrong true false real whole broken fixed repair
    build paint cut carry pull push throw catch hold drop break turn move stop begin finish continue return borrow
    lend sell order cancel confirm book's reserve promise agree decide choose hope believe understand explain mean
    guess wonder worry hurt laugh smile cry fight win's love hate miss enjoy prefer
    """
)

_ONSETS = listed(
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl l m n p pl pr qu r s sc sh sk sl sn sp st str t th tr v w z"
)
_VOWELS = listed("a e i o u ai ea ee ie oa oo ou")
_CODAS = ["", "", "", *listed("b ck d ft g l ll m n nd ng nt p r rd rk s sh st t th x")]
_ENDINGS = ["", "", "", "", *listed("s s ed ing er ly ness ation able ment ful")]

FIRST_NAMES = listed(
    """
    Ada Agnes Alma Anders Anton Arvid Astrid Aurelio Beate Bjarne Bruno Camille Carlos Cecilia Chiara Clara Dagmar
    Daniela Dimitri Edda Einar Elias Elin Emil Enzo Erika Esme Fabian Farah Felix Fiona Frida Gesa Gunnar Hana
    Harald Hedda Henrik Ida Ines Ingrid Irina Isak Ivo Jana Jarl Joachim Jonas Jorid Kaja Karim Kasper Katja Kenji
    Klara Lars Leila Lena Leopold Liv Lorenz Lucia Magnus Maja Malik Marit Matteo Mia Mikkel Milena Nadja Nils Noor
    Olaf Olga Oskar Otto Paula Pavel Petra Rafael Ragna Rasmus Rita Rosa Ruben Runa Salma Sander Selma Signe Silje
    Simon Sofie Sten Svea Tarik Thea Tomas Torvald Ulla Una Viggo Vilde Wanda Yara Yusuf Zofia
    """
)
PLACES = listed(
    """
    Aarhus Alta Antwerp Arendal Basel Bergen Bilbao Bodø Bordeaux Bremen Bruges Cádiz Cork Dresden Dundee Esbjerg
    Faro Freiburg Galway Gdańsk Geneva Ghent Girona Göteborg Graz Hamar Hasselt Inverness Kalmar Kiruna Kraków
    Leipzig Lille Linz Lund Lübeck Malmö Metz Molde Münster Namur Narvik Odense Oslo Ostrava Oulu Parma Porto
    Ravenna Ribe Riga Rouen Salzburg Siena Skagen Stavanger Tallinn Tampere Tartu Trento Tromsø Turku Uppsala
    Utrecht Vaasa Verona Vilnius Voss Zwolle
    """
)


def vocabulary(seed: int, size: int = 40_000) -> list[str]:
    """`size` distinct words by falling frequency."""
    chance = random.Random(seed)
    words = dict.fromkeys(COMMON)
    while len(words) < size:
        syllables = chance.choice((1, 1, 1, 2, 2))
        stem = "".join(
            chance.choice(_ONSETS) + chance.choice(_VOWELS) + chance.choice(_CODAS) for _ in range(syllables)
        )
        words.setdefault(stem + chance.choice(_ENDINGS))
    return list(words)


def pool(words: list[str], draws: int = 1 << 20) -> list[str]:
    """A list in which each word stands as often as Zipf's law says, at least once: a uniform draw from it is a draw
    by frequency."""
    weights = [1 / (rank + 3.7) ** 1.07 for rank in range(len(words))]
    scale = draws / sum(weights)
    return [word for word, weight in zip(words, weights, strict=True) for _ in range(max(1, round(weight * scale)))]
