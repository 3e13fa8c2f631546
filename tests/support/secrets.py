"""Secrets as people tell them: twelve kinds in four languages, each with a value that nothing else says; and a search
for values in every byte below a folder, in every form, that shares no code with the one it tests."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from assistant.store.erasure.byte_search import open_beside_sqlite

LANGUAGES = ("en", "de", "fr", "es")
_SENTENCES = {
    "en": "The {what} of {owner} is {value}.",
    "de": "{what} von {owner} ist {value}.",
    "fr": "{what} de {owner} est {value}.",
    "es": "{what} de {owner} es {value}.",
}
_WHAT = {
    "password": ("password", "Das Passwort", "Le mot de passe", "La contraseña"),
    "pin": ("PIN", "Die PIN", "Le code PIN", "El PIN"),
    "card": ("card number", "Die Kartennummer", "Le numéro de carte", "El número de tarjeta"),
    "iban": ("IBAN", "Die IBAN", "L'IBAN", "El IBAN"),
    "phone": ("phone number", "Die Telefonnummer", "Le téléphone", "El teléfono"),
    "mail": ("e-mail address", "Die E-Mail-Adresse", "L'adresse e-mail", "El correo"),
    "address": ("address", "Die Anschrift", "L'adresse", "La dirección"),
    "date": ("birthday", "Der Geburtstag", "L'anniversaire", "El cumpleaños"),
    "person": ("notary", "Die Notarin", "Le notaire", "La notaria"),
    "quoted": ("motto", "Das Motto", "La devise", "El lema"),
    "path": ("link", "Der Link", "Le lien", "El enlace"),
    "code": ("order code", "Die Bestellnummer", "Le code de commande", "El código de pedido"),
}
KINDS = tuple(_WHAT)
_MONTHS = {
    "en": ("March", "June", "August"),
    "de": ("März", "Juni", "August"),
    "fr": ("mars", "juin", "août"),
    "es": ("marzo", "junio", "agosto"),
}


@dataclass(frozen=True)
class Secret:
    number: int
    kind: str
    language: str
    owner: str  # a name that only this one has
    value: str

    @property
    def sentence(self) -> str:
        what = _WHAT[self.kind][LANGUAGES.index(self.language)]
        return _SENTENCES[self.language].format(
            what=what, owner=self.owner, value=f'"{self.value}"' * self.is_quoted or self.value
        )

    @property
    def is_quoted(self) -> bool:
        return self.kind == "quoted"

    @property
    def about(self) -> str:
        """Its words before the value."""
        return self.sentence[: self.sentence.index(self.owner) + len(self.owner)]


def make_secrets(count: int, seed: int) -> list[Secret]:
    rng = random.Random(seed)
    taken: set[str] = set()
    return [_make(rng, number, taken) for number in range(count)]


def _make(rng: random.Random, number: int, taken: set[str]) -> Secret:
    kind, language = KINDS[number % len(KINDS)], LANGUAGES[number // len(KINDS) % len(LANGUAGES)]
    while (value := _value(rng, kind, language)) in taken:
        pass
    while (owner := _name(rng)) in taken:
        pass
    taken |= {value, owner}
    return Secret(number, kind, language, owner, value)


def _value(rng: random.Random, kind: str, language: str) -> str:
    digits = "".join(str(rng.randrange(10)) for _ in range(30))
    match kind:
        case "password":
            return rng.choice(
                [f"{_name(rng)}{digits[:2]}-{_word(rng)}", _word(rng) + _word(rng), f"{_word(rng)}#{digits[:3]}"]
            )
        case "pin":
            return f"{rng.randrange(3, 10)}{digits[:5]}"
        case "card":
            return " ".join((f"4{digits[:3]}", digits[3:7], digits[7:11], digits[11:15]))
        case "iban":
            return " ".join((f"DE{digits[:2]}", digits[2:6], digits[6:10], digits[10:14], digits[14:18], digits[18:20]))
        case "phone":
            return f"+49 {digits[:3]} {digits[3:6]} {digits[6:10]}"
        case "mail":
            return f"{_word(rng)}.{_word(rng)}@{_word(rng)}.example"
        case "address":
            street = {"en": "{0} Street {1}", "de": "{0}straße {1}", "fr": "{1} rue {0}", "es": "Calle {0} {1}"}[
                language
            ]
            return street.format(_name(rng), rng.randrange(2, 99))
        case "date":
            year, month = rng.randrange(1900, 2000), rng.choice(_MONTHS[language])
            day = rng.randrange(1, 29)
            return {
                "en": f"{day} {month} {year}",
                "de": f"{day}. {month} {year}",
                "fr": f"{day} {month} {year}",
                "es": f"{day} de {month} de {year}",
            }[language]
        case "person":
            return f"{_name(rng)} {_name(rng)}"
        case "quoted":
            return " ".join(_word(rng) for _ in range(3))
        case "path":
            return rng.choice(
                [f"https://{_word(rng)}.example/{_word(rng)}?k={digits[:5]}", f"/srv/{_word(rng)}/{_word(rng)}.txt"]
            )
    return f"{_name(rng)[:2].upper()}-{digits[:4]}-{_word(rng)[:3].upper()}{digits[4:6]}"


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(4))


def _name(rng: random.Random) -> str:
    return _word(rng).capitalize()


# ------------------------------------------------------------------------------------------------------------- search


class HomeBytes:
    """Every byte below a folder, compressed files unpacked, in small letters."""

    def __init__(self, *folders: Path) -> None:
        self.pieces = [
            (path.name, piece.lower())
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
            for piece in _unpacked(_read(path))
        ]

    def places(self, value: str) -> list[str]:
        needles = {needle.lower() for needle in _needles(value)}
        found = [(name, piece, needle) for name, piece in self.pieces for needle in needles if needle in piece]
        return sorted({name for name, piece, needle in found if not needle.isdigit() or _has_number(piece, needle)})


def _read(path: Path) -> bytes:
    """Read as another process does: an app in this one would lose its locks, and find its databases damaged."""
    with open_beside_sqlite(path) as file:
        return file.read()


def _has_number(piece: bytes, digits: bytes) -> bool:
    """A few digits are in one of the log's many hashes by chance: a number stands where no such digit is beside it."""
    return re.search(rb"(?<![0-9a-f])%s(?![0-9a-f])" % digits, piece) is not None


def _needles(value: str) -> Iterator[bytes]:
    for text in (value, json.dumps(value)[1:-1], quote(value, safe=""), quote(value)):
        yield text.encode()
    for encoding in ("utf-16-le", "utf-16-be"):
        yield value.encode(encoding)
    if len(value) > 8:
        for before in range(3):
            yield base64.b64encode(b"x" * before + value.encode())[4 if before else 0 : -4]


def _unpacked(data: bytes) -> Iterable[bytes]:
    yield data
    if data[:2] == b"\x1f\x8b":
        plain = gzip.decompress(data)
        yield plain
        if plain[257:262] == b"ustar":
            with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
                for member in archive:
                    file = archive.extractfile(member)
                    yield from _unpacked(file.read()) if file is not None else ()
    at = data.find(b"\x78\x9c")
    while at >= 0:
        try:
            yield zlib.decompressobj().decompress(data[at:])
        except zlib.error:
            pass
        at = data.find(b"\x78\x9c", at + 1)
