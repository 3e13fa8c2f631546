"""What looks like a secret, on a seeded table of secrets and of harmless words and numbers in four languages."""

from __future__ import annotations

import importlib
import random
import re
import string
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from assistant.core.text import find_in_windows
from assistant.daemon import compile_patterns
from sleep.rules import secrets as rules
from sleep.rules.secrets import asks_for_secret, find_secrets, has_secret, mask_secrets

RANDOM = random.Random(417)

# {pw}: a password, {pin}: digits, {key}: a long key, {card}: a card number with its check digit.
SECRETS = """
My wifi password is {pw}
my wifi password is {pw}.
The password for the router is {pw}, in case you need it
Wi-Fi password: {pw}
password={pw}
{pw} is the password of my laptop
My Netflix password is now {pw}
I changed my email password to {pw} today
The passcode of the tablet is {pin}
My PIN is {pin}
my bank pin is {pin}, don't tell anyone
The PIN for my bank card is {pin}
PIN: {pin}
The alarm code at home is {pin}
The code for the front door is {pin}
the gate code is {pin}#
The code is {pin}
The combination of the safe is 12-34-56
My API key is {key}
Here is the OpenAI key: sk-proj-{key}
use the token {key} for the build
My github token is ghp_{key}{key}
My card number is {card}
credit card {card}, expires 09/29
My Visa is {card}
the CVV is {pin}
My recovery phrase is apple river stone cloud monkey paper train glass winter orange lamp door
the password is swordfish
The password of the guest network is "blue horse".
Mein WLAN-Passwort ist {pw}
Das Passwort für den Router lautet {pw}
Passwort: {pw}
Das Kennwort vom Laptop ist jetzt {pw}
Ich habe das Passwort auf {pw} geändert
Meine PIN ist {pin}
Die PIN meiner Karte lautet {pin}
{pw} ist das WLAN-Passwort
Der Alarmcode ist {pin}
Der Code für die Haustür ist {pin}
Der Zugangscode lautet {pin}
Mein API-Schlüssel ist {key}
Meine Kreditkartennummer ist {card}
Das Passwort ist Schmetterling
Mon mot de passe est {pw}
Le mot de passe du wifi est {pw}
mot de passe : {pw}
Le code de l'alarme est {pin}
Mon code PIN est {pin}
Le code de la porte est {pin}
le digicode est 45B12
Ma clé API est {key}
Mon numéro de carte est {card}
la clé wifi est {pw}
J'ai changé le mot de passe, c'est maintenant : mot de passe = {pw}
Le mot de passe est papillon
Mi contraseña es {pw}
La contraseña del wifi es {pw}
contraseña: {pw}
La clave del wifi es {pw}
Mi PIN es {pin}
El código de la alarma es {pin}
El código de la puerta es {pin}
Mi clave de API es {key}
El número de mi tarjeta es {card}
La contraseña es mariposa
{pw} es la contraseña del correo
""".strip().splitlines()

HARMLESS = """
I was born in {year}
In {year} we moved to Bergen
My phone number is +49 170 {phone}
call the dentist at 0800 330 1000
Meine Nummer ist 0170 {phone}
Mon numéro est le 06 12 34 56 78
Mi número es 612 345 678
I live at {house} Main Street
Wir wohnen in der Lindenstraße {house}, {post} Berlin
J'habite 12 rue de la Paix, {post} Paris
Vivo en la calle Mayor {house}, {post} Madrid
The postal code is {post}
my zip code is 90210
Die Postleitzahl ist {post}
le code postal est {post}
el código postal es {post}
My order number is {order}
Order {order} arrives on Tuesday
Die Bestellnummer lautet {order}
Mon numéro de commande est {order}
El número de pedido es {order}
The booking code is X7K2P9
Der Buchungscode ist X7K2P9
le code promo est SAVE20
the error code is 404
the area code is 0170
My flight is LH4711 at 10:45
Mein Flug ist LH{house}
My locker is number {house}
zed-tau-417 is the locker at the north dock
The model is XK-2200
The pin fell off my jacket in {year}
Pin this message please
I forgot my password
My password is too weak
My password is wrong
the password expired on 12.03.{year}
My password manager is 1Password
The password reset took 20 minutes
my password should be 12 characters long
Mein Passwort ist abgelaufen
Ich habe mein Passwort vergessen
Das Passwort läuft am 12.03.{year} ab
J'ai oublié mon mot de passe
Mon mot de passe est trop court
He olvidado mi contraseña
Mi contraseña es segura
What is my wifi password?
Was ist meine PIN?
Quel est le code de la porte ?
¿Cuál es mi contraseña?
The key is under the mat
The key to success is patience
la clave es la paciencia
Der Schlüssel liegt unter der Matte
La clé est sous le paillasson
The source code has 4000 lines
the dress code is black tie
The code review is at 1400
ISBN 978-3-16-148410-0
the invoice is 2024-{order}
tracking number 1Z999AA10123456784
The parcel 1234567890123456 arrives tomorrow
My library has 20491 books
The house cost {house}000 euros
The meeting is on {year}-03-12 at 14:30
Our anniversary is 12 June {year}
Unser Hochzeitstag ist der 12.6.{year}
Notre anniversaire est le 12 juin {year}
Nuestro aniversario es el 12 de junio de {year}
I run 5000 metres in 25 minutes
My cat is called Mio and weighs 4711 grams
the token of appreciation was a mug from {year}
My IBAN starts with DE89 3704
Her email is ragna{house}@example.com
The repo is https://github.com/org/repo{house}
my card game starts at 2030
The code of conduct is from {year}
Mein Ticket hat die Nummer {order}
The wifi is called Fjord{house}
""".strip().splitlines()
ROUNDS = 5


def password() -> str:
    letters = "".join(RANDOM.choices(string.ascii_letters, k=RANDOM.randint(5, 9)))
    return RANDOM.choice(
        [
            f"{letters}{RANDOM.randint(1, 999)}",
            f"Hunter{RANDOM.randint(2, 99)}-blue",
            f"{letters[:4]}!{letters[4:]}{RANDOM.randint(1, 9)}",
            f"{letters.lower()}_{RANDOM.randint(10, 9999)}$",
            f"{RANDOM.randint(1, 9)}{letters}",
        ]
    )


def card_number() -> str:
    digits = [int(digit) for digit in RANDOM.choice(["4", "51", "55", "2221"])]
    digits += RANDOM.choices(range(10), k=15 - len(digits))
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[::-2]]
    digits.append(-(sum(digits[-2::-2]) + sum(doubled)) % 10)
    text = "".join(map(str, digits))
    return RANDOM.choice([text, " ".join(text[i : i + 4] for i in range(0, 16, 4))])


def filled(template: str) -> tuple[str, list[str]]:
    """A line, and the values in it."""
    values = {
        "pw": password(),
        "pin": "".join(RANDOM.choices(string.digits, k=RANDOM.choice([4, 4, 5, 6]))),
        "key": "".join(RANDOM.choices(string.ascii_letters + string.digits, k=22)) + "a7",
        "card": card_number(),
        "year": str(RANDOM.randint(1950, 2030)),
        "phone": f"{RANDOM.randint(1_000_000, 9_999_999)}",
        "house": str(RANDOM.randint(2, 999)),
        "post": str(RANDOM.randint(10_000, 99_999)),
        "order": f"{RANDOM.randint(100, 999)}-{RANDOM.randint(1_000_000, 9_999_999)}",
    }
    return template.format(**values), [value for name, value in values.items() if f"{{{name}}}" in template]


def test_what_is_secret_is_found_and_what_is_harmless_is_not() -> None:
    secrets = [filled(template) for template in SECRETS for _ in range(ROUNDS)]
    harmless = [filled(template)[0] for template in HARMLESS for _ in range(ROUNDS)]
    missed = [line for line, values in secrets if not has_secret(line) or any(v in mask_secrets(line) for v in values)]
    alarms = [line for line in harmless if has_secret(line)]
    assert len(missed) <= len(secrets) * 0.02, missed
    assert alarms == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("My wifi password is Hunter2-blue, ok?", "My wifi password is [password left out], ok?"),
        (
            "PIN 4711 and the card 4111 1111 1111 1111",
            "PIN [PIN left out] and the card [card number left out]",
        ),
        ("See https://ann:s3cret@example.com/x", "See https://[key left out]@example.com/x"),
        ("I moved in 2019.", "I moved in 2019."),
    ],
)
def test_what_is_secret_is_named_in_its_place(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


def test_two_readings_of_one_value_are_one_secret() -> None:
    text = "My API key is sk-proj-a7a7a7a7a7a7a7a7a7a7"
    [secret] = find_secrets(text)
    assert text[secret.start : secret.end] == "sk-proj-a7a7a7a7a7a7a7a7a7a7"


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What is my wifi password?", True),
        ("Wie lautet meine PIN?", True),
        ("Quel est le code de la porte ?", True),
        ("¿Cuál es la contraseña del wifi?", True),
        ("What was the code word?", True),
        ("Wie geht das Fahrradschloss auf?", True),
        ("¿Cuál es la palabra clave?", True),
        ("What do you know about my sister?", False),
        ("When do I see the dentist?", False),
    ],
)
def test_a_question_names_what_may_be_secret(question: str, asks: bool) -> None:
    assert asks_for_secret(question) == asks


# ------------------------------------------------------------------------------------------------------- of any length


def test_a_secret_is_found_wherever_it_stands_in_a_long_text() -> None:
    line = "My wifi password is Hunter2-blue and the alarm code of the house is 4711."
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7b9\n" * 390 + "-----END RSA PRIVATE KEY-----"
    for before in (*range(16_384 - len(line) - 5, 16_384 + 5, 3), 2 * 16_384 - 40, 60_000):
        text = f"{'word ' * (before // 5)}{'x' * (before % 5)} {line} {'more ' * 200}"
        assert [text[start:end] for _, start, end in find_secrets(text)] == ["Hunter2-blue", "4711"], before
    for before in range(16_384 - 20, 16_384, 2):
        text = f"{'word ' * (before // 5)}{'x' * (before % 5)} https://ann:s3cret@example.com {'more ' * 200}"
        assert [text[start:end] for _, start, end in find_secrets(text)] == ["ann:s3cret"], before
    for before in (10_000, 16_000, 16_384):
        text = f"{'word ' * (before // 5)}\n{key}\n{'more ' * 9_000}"
        [secret] = find_secrets(text)
        assert (secret.start, secret.end) == (text.index(key), text.index(key) + len(key))


def test_what_is_looked_through_at_once_is_bounded_however_long_a_text_is() -> None:
    class Looked:
        """Notes how much is looked through by a call."""

        def __init__(self) -> None:
            self.most = 0

        def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
            self.most = max(self.most, end - start)
            return re.compile("b").finditer(text, start, end)

    looked: Any = Looked()
    text = "a" * 500_000 + "b" + "a" * 500_000
    assert [match.start() for match in find_in_windows(looked, text, 1_000)] == [500_000]
    assert looked.most < 20_000


@pytest.mark.parametrize("length", [0, 1, 16_383, 16_384, 16_385, 50_000])
def test_windows_give_what_one_search_of_all_gives(length: int) -> None:
    chance = random.Random(length)
    text = "".join(chance.choices("ab  1", k=length))
    for pattern in map(re.compile, (r"a+", r"\b[ab]+\b", r"(?<!1)1(?=b)", r"a[^1]{0,40}1", r"b\s*$")):
        found = [match.span() for match in find_in_windows(pattern, text, 200)]
        assert found == [match.span() for match in pattern.finditer(text)]


def test_each_pattern_matches_nothing_without_one_of_the_words_that_it_needs() -> None:
    """A text without them is not searched for it."""
    parser: Any = importlib.import_module("re._parser")
    without = [
        pattern.pattern
        for _, pattern, needed in rules._PATTERNS
        if needed and not _always_has(parser.parse(pattern.pattern, re.IGNORECASE), rules._needed_words(needed))
    ]
    assert without == []


def _always_has(tree: Any, words: tuple[str, ...]) -> bool:
    """Whether all that an expression takes has one of the words in it. What has one as it is written has it in each way
    that it can be written out, of which there may be thousands."""
    return _has([*tree], words) or all(_has(branch, words) for branch in _written_out([*tree]))


def _written_out(parts: list[Any]) -> Iterator[list[Any]]:
    """An expression with each letter that may be missing there, and missing; and a choice of letters, or of words, as
    each of them."""
    choices: list[list[list[Any]]] = []
    for op, av in parts:
        name = str(op)
        inner = av[3] if name == "SUBPATTERN" else [(op, av)]
        branches = inner[0][1][1] if len(inner) == 1 and str(inner[0][0]) == "BRANCH" else []
        if name == "MAX_REPEAT" and av[:2] == (0, 1) and len(av[2]) == 1:
            choices.append([[], *([part] for part in _letters(*av[2][0]))])
        elif name == "IN" and len(_letters(op, av)) < 9:
            choices.append([[part] for part in _letters(op, av)])
        elif branches and _is_word_list(branches):
            choices.append([[*word] for word in branches])
        else:
            choices.append([[(op, av)]])
    for chosen in product(*choices):
        yield [part for piece in chosen for part in piece]


def _is_word_list(branches: Any) -> bool:
    return all(str(op) in ("LITERAL", "AT") for branch in branches for op, _ in branch)


def _letters(op: Any, av: Any) -> list[Any]:
    one = str(op) == "IN" and all(str(kind) == "LITERAL" for kind, _ in av)
    return list(av) if one else [(op, av)]


def _has(parts: list[Any], words: tuple[str, ...]) -> bool:
    run = "".join(chr(av).casefold() if str(op) == "LITERAL" else "\0" for op, av in parts if str(op) != "AT")
    if any(word in run for word in words):
        return True
    for op, av in parts:
        name = str(op)
        if name == "BRANCH" and all(_always_has(branch, words) for branch in av[1]):
            return True
        if name == "ASSERT" and _always_has(av[1], words):
            return True
        if name == "SUBPATTERN" and _always_has(av[3], words):
            return True
        if name == "MAX_REPEAT" and av[0] > 0 and _always_has(av[2], words):
            return True
    return False


def test_a_text_full_of_card_numbers_is_masked_once_through() -> None:
    text = "4111 1111 1111 1111, " * 20_000
    assert mask_secrets(text) == "[card number left out], " * 20_000


def test_once_the_daemon_has_started_no_message_compiles_a_pattern_on_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*pattern: object) -> None:
        raise AssertionError(pattern)

    compile_patterns()
    monkeypatch.setattr(re, "compile", refuse)
    for template in SECRETS:
        find_secrets(filled(template)[0])
