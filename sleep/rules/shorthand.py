"""What people type for short, spelled out: "im", "u", "n", "w/", "cos" as the rules read them. Pure.

What always holds: only what stands for one thing wherever it is typed; what was said is kept as it was typed, this is
for reading alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

from assistant.core.text import lazy_regex

_SPELLED = {
    "im": "i'm", "ive": "i've", "dont": "don't", "doesnt": "doesn't", "didnt": "didn't", "cant": "can't",
    "wont": "won't", "isnt": "isn't", "arent": "aren't", "wasnt": "wasn't", "werent": "weren't",
    "havent": "haven't", "hasnt": "hasn't", "wouldnt": "wouldn't", "couldnt": "couldn't", "shouldnt": "shouldn't",
    "youre": "you're", "theyre": "they're", "theyve": "they've", "weve": "we've", "hes": "he's", "shes": "she's",
    "thats": "that's", "theres": "there's", "whats": "what's", "whos": "who's", "wheres": "where's", "hows": "how's",
    "lets": "let's", "u": "you", "ur": "your", "r": "are", "n": "and", "w": "with", "w/": "with", "w/o": "without",
    "b4": "before", "b/c": "because", "cos": "because", "coz": "because", "cuz": "because", "'cause": "because",
    "cause": "because", "pls": "please", "plz": "please", "thx": "thanks", "yr": "year", "yrs": "years",
    "wk": "week", "wks": "weeks", "mth": "month", "mths": "months", "hrs": "hours", "mins": "minutes",
    "bday": "birthday", "b-day": "birthday", "thru": "through", "til": "until", "ppl": "people", "abt": "about",
    "tho": "though", "tmrw": "tomorrow", "tmr": "tomorrow", "2day": "today", "2nite": "tonight", "tonite": "tonight",
    "gonna": "going to", "wanna": "want to", "gotta": "got to", "kinda": "kind of", "rn": "right now",
    "bf": "boyfriend", "gf": "girlfriend", "sis": "sister", "bro": "brother", "hubs": "husband", "em": "them",
    "'em": "them", "msg": "message", "msgs": "messages", "appt": "appointment", "appts": "appointments",
    "apt": "flat", "bc": "because",
    "n't": "not", "&": "and", "addy": "address", "pw": "password", "wfh": "work from home",
    "fave": "favourite", "fav": "favourite", "meds": "medication", "info": "information",
}  # fmt: skip
_FOR_SHORT = lazy_regex(
    r"(?<![\w'’/&+.-])(?:"
    + "|".join(re.escape(one) for one in sorted(_SPELLED, key=lambda word: (-len(word), word)))
    + r")(?![\w’/&+-]|'(?!s\b)\w|\.\w)",
    re.IGNORECASE,
)
# "its" is "it's" where no noun can follow; before a noun it stays what it is.
_ITS = lazy_regex(
    r"\bits(?= (?:a|an|the|my|our|his|her|not|no|on|in|at|from|for|with|about|called|only|now|all|just|been|[\d£$€]"
    r"|\w+day|mon|tue|wed|thu|fri|sat|sun)\b)",
    re.IGNORECASE,
)
_WERE = lazy_regex(r"^were(?= (?:\w+ing|not|all|both|at|in|on|with|from|off|moving)\b)", re.IGNORECASE)


@lru_cache(maxsize=4096)
def spelled_out(text: str) -> str:
    """The text with nothing in it for short."""
    plain = _FOR_SHORT.sub(lambda found: _SPELLED[found[0].lower()], text.replace("’", "'"))
    return _WERE.sub("we're", _ITS.sub("it's", plain))
