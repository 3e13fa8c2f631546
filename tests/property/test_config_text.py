"""A property of config.toml: whatever stands in it, changing one key changes that key and no other word."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from assistant.settings.config_text import diff_keys, flatten_keys, remove_key, set_key

KEYS = ("context.target", "turn.max_steps", "home.timezone", "model.fallback", "log.level")
# Without "#": `comments` takes the first one of a line for the beginning of a comment. Lone surrogates, which UTF-8
# does not have, are refused.
TEXTS = st.characters(codec="utf-8", exclude_characters="#")
VALUES = st.one_of(
    st.integers(-5, 10**6),
    st.floats(0, 1),
    st.booleans(),
    st.text(TEXTS, max_size=20),
    st.lists(st.text(TEXTS, max_size=5)).map(tuple),
)
WORDS = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"), max_size=20)


@st.composite
def files(draw: st.DrawFn) -> str:
    """A file with comments everywhere, keys in any order, sections that are empty, and any ending."""
    lines = [f"# {draw(WORDS)}", ""] if draw(st.booleans()) else []
    for section in draw(st.permutations(["context", "turn", "home", "model", "log"]))[: draw(st.integers(0, 5))]:
        lines.append(f"[{section}]  # {draw(WORDS)}")
        for key in KEYS:
            if key.startswith(f"{section}.") and draw(st.booleans()):
                lines += [f"  # {draw(WORDS)}", f"{key.partition('.')[2]} = {draw(st.integers(0, 99))} # {draw(WORDS)}"]
        lines += [""] * draw(st.integers(0, 2))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return draw(st.sampled_from(["", "\ufeff"])) + end.join(lines) + draw(st.sampled_from(["", end]))


def meaning(text: str) -> dict[str, object]:
    return flatten_keys(tomllib.loads(text.removeprefix("\ufeff")))


def comments(text: str) -> list[str]:
    return [line.partition("#")[2].strip() for line in text.splitlines() if "#" in line]


@given(text=files(), key=st.sampled_from(KEYS), value=VALUES)
def test_a_value_is_set_and_every_comment_and_other_key_stays(text: str, key: str, value: object) -> None:
    after = set_key(text, key, value)
    wanted = list(value) if isinstance(value, tuple) else value
    assert meaning(after) == {**meaning(text), key: wanted}
    kept = comments(after)
    assert [word for word in comments(text) if word in kept] == comments(text)
    order = [name for name in meaning(after) if name in meaning(text)]
    assert order == list(meaning(text))
    assert after.startswith("\ufeff") == text.startswith("\ufeff")


@given(text=files(), key=st.sampled_from(KEYS), value=VALUES)
def test_taking_a_key_out_again_leaves_what_was_there(text: str, key: str, value: object) -> None:
    rest = {name: found for name, found in meaning(text).items() if name != key}
    taken = remove_key(text, key)
    assert meaning(taken) == rest
    assert meaning(remove_key(set_key(text, key, value), key)) == rest
    assert remove_key(taken, key) == taken
    assert [change.key for change in diff_keys(text, taken)] == [key] * (key in meaning(text))
