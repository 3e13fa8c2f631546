"""Joins the JavaScript modules of the page into one file: one request, and a quarter less to transfer.

Each module becomes a function that is called once, after the modules it imports, so its top-level names stay its own.
The supported forms (see `tests/unit/test_page_modules.py`) are imports of names from a file in the same folder, and
exports of functions, constants and classes; anything else is a `ValueError`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from assistant.web.page_condense import condense_script

_NAMED = re.compile(r'^import \{([^{}]+)\} from "\./([\w/-]+\.js)";\n', re.MULTILINE)
_LATER = re.compile(r'\bimport\("\./([\w/-]+\.js)"\)')
_DECLARED = re.compile(r"^export (default )?((?:async )?function|const|class) (\w+)", re.MULTILINE)
# The form at the end of minified libraries.
_LISTED = re.compile(r"\bexport ?\{([^{}]+)\};?")
# An import or export in none of these forms.
_LEFT = re.compile(r"^(?:import\b(?!\.meta)|export\b).*", re.MULTILINE)


def join_modules(modules: Mapping[str, str], entry: str) -> str:
    """Return one module that does what `entry` does. `modules` has the texts by name. Raises `ValueError`."""
    done: dict[str, str] = {}
    _add(modules, entry, done, (), _used_names(modules.values()))
    return "".join(done.values())


def _used_names(texts: Iterable[str]) -> frozenset[str]:
    """The names that any module imports: a library exports many that the page does not use."""
    lists = [it[1] for text in texts for it in _NAMED.finditer(text)]
    return frozenset(it.split(" as ")[0].strip() for names in lists for it in names.split(",")) | {"default"}


def _add(
    modules: Mapping[str, str], name: str, done: dict[str, str], above: tuple[str, ...], used: frozenset[str]
) -> None:
    if name in done:
        return
    if name in above:
        raise ValueError(f"the modules {' -> '.join([*above, name])} import one another")
    text = modules[name]
    for needed in [*(it[1] for it in _NAMED.findall(text)), *_LATER.findall(text)]:
        _add(modules, needed, done, (*above, name), used)
    done[name] = _wrapped(name, text, used)


def _wrapped(name: str, text: str, used: frozenset[str]) -> str:
    exported = [f"default:{it}" if default else it for default, _, it in _DECLARED.findall(text)]
    for names in _LISTED.findall(text):
        exported += [":".join(reversed(it.split(" as "))) for it in names.split(",")]
    exported = [it for it in exported if it.split(":")[0] in used]
    text = _NAMED.sub(lambda it: f"const{{{_names(it[1])}}}={_variable(it[2])};\n", text)
    text = _LATER.sub(lambda it: f"Promise.resolve({_variable(it[1])})", text)
    text = _LISTED.sub("", _DECLARED.sub(r"\2 \3", text))
    if left := _LEFT.search(text):
        raise ValueError(f"{name}: this form of a module is not known: {left[0]}")
    if not name.startswith("vendor/"):
        text = condense_script(text)  # libraries come condensed
    given = f"return{{{','.join(exported)}}}" if exported else ""
    return f"const {_variable(name)}=(()=>{{\n{text}\n{given}}})();\n"


def _names(imported: str) -> str:
    """The names of an import, as a pattern that takes them out of an object."""
    return ",".join(it.strip().replace(" as ", ":") for it in imported.split(","))


def _variable(name: str) -> str:
    return "$" + re.sub(r"\W", "_", name.removesuffix(".js"))
