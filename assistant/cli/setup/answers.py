"""What people type in answer to a question of `assistant setup`, as settings want it: "4am" is 04:00, "$3" is 3. Pure.

What is not understood is given back as it was typed, so that the setting says itself what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit
from zoneinfo import available_timezones

from assistant.cli.prompts import NO_ANSWERS, YES_ANSWERS
from assistant.core.errors import UsageError
from assistant.core.text import lazy_regex
from assistant.settings.validators import zone_of_city

_CLOCK = lazy_regex(
    r"(?:at |um |à |a las? |gegen |around )?(?P<hour>\d{1,2})(?:\s?[:.h]\s?(?P<minute>\d{2}))?"
    r"(?:\s?(?P<half>[ap])\.?m\.?|\s?(?:uhr|h|o['’]?clock))?(?P<part> in the (?:morning|afternoon|evening)| at night)?"
)
_CLOCK_WORDS = {"midnight": "00:00", "noon": "12:00", "mitternacht": "00:00", "minuit": "00:00", "medianoche": "00:00"}
_NEVER = ("never", "no", "none", "off", "not at all", "manually", "only manually", "nie", "jamais", "nunca")
_NO_WISH = {"no", "none", "nothing", "skip", "no preference", "keine", "nada", "rien", *NO_ANSWERS}
_COURTESY = (" please", " thanks", " thank you", " bitte", " danke", " merci", " gracias")
_AMOUNT = lazy_regex(
    r"(?:us)?\s?[$]?\s?(?:usd )?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)(?:[.,](?P<cents>\d{1,2}))?\s?"
    r"(?:us)?(?:[$]|usd|us dollars?|dollars?|bucks)?(?:\s?(?:a|per|/|each)\s?(?:day|month))?"
)
_NO_LIMIT = ("no limit", "unlimited", "none", "no cap", "no", "off")
_OTHER_MONEY = lazy_regex(r"[€£¥₹]|\b(?:eur|euros?|gbp|pounds?|chf|franken|yen)\b")
_KEY_BEGINNING = "sk-"  # of Anthropic's, OpenAI's and many servers' keys
_INTRODUCTION = lazy_regex(
    r"(?:hi|hello|hallo|hey)?[,!. ]*(?:my name is|my name's|i am|i'm|i’m|im|call me|it's|it’s|mein name ist|"
    r"ich hei(?:ß|ss)e|ich bin|je m['’]appelle|je suis|me llamo|soy)\s++(?P<name>.+)",
    re.IGNORECASE,
)


def read_clock_answer(text: str) -> str:
    """A time of the day as HH:MM; "" for never."""
    folded = text.casefold().strip(" .!")
    if folded in _NEVER:
        return ""
    if folded in _CLOCK_WORDS:
        return _CLOCK_WORDS[folded]
    clock = _CLOCK.fullmatch(folded)
    if clock is None:
        return text
    hour, minute, half = int(clock["hour"]), int(clock["minute"] or 0), clock["half"]
    if half and not 1 <= hour <= 12:
        return text
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif clock["part"] and 1 <= hour <= 12:
        # "4 at night" is after midnight, "11 at night" before it.
        is_late = clock["part"].endswith(("noon", "evening")) or (clock["part"] == " at night" and 6 <= hour < 12)
        hour = hour % 12 + (12 if is_late else 0)
    return f"{hour:02}:{minute:02}" if hour < 24 and minute < 60 else text


def read_hours_answer(text: str) -> str:
    """Hours of the day as HH:MM-HH:MM; "" for none."""
    if text.casefold().strip(" .!") in _NEVER:
        return ""
    from_to = re.split(r"-|–|\bto\b|\buntil\b", text.strip().removeprefix("from "))
    return "-".join(map(read_clock_answer, from_to)) if len(from_to) == 2 else text


def read_dollars_answer(text: str) -> str:
    """An amount of US dollars as a number; "0" for no limit. Raises `UsageError` for other money."""
    folded = text.casefold().strip(" .!")
    if folded in _NO_LIMIT:
        return "0"
    if _OTHER_MONEY.search(folded):
        raise UsageError("Providers charge in US dollars: type a number of dollars, such as 3.")
    amount = _AMOUNT.fullmatch(folded)
    if amount is None:
        return text
    return amount["whole"].replace(",", "") + (f".{amount['cents']}" if amount["cents"] else "")


def read_zone_answer(text: str) -> str:
    """A time zone by its name or its city, whatever the case."""
    city = text.partition(",")[0].strip().casefold().removesuffix(" city")
    wanted = re.sub(r"\s+", "_", city)
    zones = sorted(available_timezones())
    exact = [zone for zone in zones if zone.casefold() == wanted]
    by_city = [zone for zone in zones if "/" in zone and zone.rpartition("/")[2].casefold() == wanted]
    found = exact or [zone for zone in by_city if not zone.startswith(("Etc/", "SystemV/", "US/", "posix"))]
    return zone_of_city(text) or (found[0] if found else text)


_READERS: Mapping[str, Callable[[str], str]] = {
    "home.timezone": read_zone_answer,
    **dict.fromkeys(("sleep.at", "backup.at", "reset.at"), read_clock_answer),
    "agenda.quiet": read_hours_answer,
    **dict.fromkeys(("budget.daily_usd", "budget.monthly_usd"), read_dollars_answer),
}


def read_setting_answer(key: str, text: str) -> str:
    """What was typed for a setting, as the setting wants it. Raises `UsageError`."""
    read = _READERS.get(key)
    return read(text) if read and text else text


def read_name_answer(text: str) -> str:
    """A name without what introduces it ("my name is ..."). Raises `UsageError` for a yes or no."""
    introduced = _INTRODUCTION.fullmatch(text.strip())
    name = (introduced["name"] if introduced else text).strip(" .!")
    if _is_yes(name) or _wants_nothing(name):
        raise UsageError("Type a name; Enter keeps the value in brackets, - skips this step.")
    return name


def read_manner_answer(text: str) -> str:
    """How the assistant should be; "" for no wish. Raises `UsageError` for a yes, which says nothing of it."""
    if _is_yes(text):
        raise UsageError('Type a few words, such as "dry, patient"; Enter leaves it as it is.')
    return "" if _wants_nothing(text) else text


def read_model_answer(text: str) -> str:
    """The name of a model. Raises `UsageError` for a yes or no, or a key."""
    if _is_yes(text) or _wants_nothing(text):
        raise UsageError("Type the name of a model; Enter takes what is in brackets, - skips this step.")
    if text.startswith(_KEY_BEGINNING):
        raise UsageError("That looks like a key; this question is for the name of a model.")
    return text


def read_address_answer(text: str) -> str:
    """The address of a server, of which "localhost:11434" is enough: with what every address of this kind has. Raises
    `UsageError` for a key, which no refusal may show."""
    if text.startswith(_KEY_BEGINNING):
        raise UsageError("That looks like a key; the next question is for it. Enter takes the address in brackets.")
    address = f"http://{text}" if _is_host(text) else text
    parts = urlsplit(address)
    return f"{address.rstrip('/')}/v1" if parts.scheme in ("http", "https") and parts.path in ("", "/") else address


def _is_host(text: str) -> bool:
    """Whether it is a server without a scheme: localhost, four numbers, or any name with a port."""
    host, _, port = text.partition("/")[0].partition(":")
    if " " in text or not host:
        return False
    if port:
        return port.isdecimal()
    return host == "localhost" or (host.count(".") == 3 and host.replace(".", "").isdecimal())


def _is_yes(text: str) -> bool:
    return _without_courtesy(text) in ("yes", *YES_ANSWERS)


def _wants_nothing(text: str) -> bool:
    return _without_courtesy(text) in _NO_WISH


def _without_courtesy(text: str) -> str:
    folded = text.casefold().replace(",", "").strip(" .!")
    return next((folded.removesuffix(it) for it in _COURTESY if folded.endswith(it)), folded)
