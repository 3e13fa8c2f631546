"""Takes out of a script of ours what only people read: comments, and spaces and line breaks that mean nothing.

A script is read as code and as texts (strings, templates, regular expressions), and its code alone is changed. The
page ends each statement with a semicolon or a block, and has no two signs apart that together are another one
(`a + +b`).
"""

from __future__ import annotations

import re

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
# Where a value may begin, and a division may not.
_PATTERN = r"(?:(?<=[(,=:&|!?{;>])|(?<=[,=:&|?>] )|(?<=\breturn ))/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*+\])++/[a-z]*"
_TOKEN = re.compile(rf"(?P<comment>//[^\n]*|/\*[\s\S]*?\*/)|(?P<text>{_STRING}|{_PATTERN})|[`{{}}]")
# What a template says, up to its end or to the code in it.
_SAID = re.compile(r"(?:[^`\\$]|\\[\s\S]|\$(?!\{))*+(?P<end>`|\$\{)")
# Spaces that a template does not need around its elements.
_BREAK = re.compile(r"(?<=[>}])\n\s*(?=[<$])|(?<=>)\n\s*|\n\s*(?=[<>/])| (?=/>)")
_INDENT = re.compile(r"\n\s+")
# An end closes what was opened last, whatever it is called (htm); a value of one word needs no quotation marks.
_END = re.compile(r"</(?:\$\{\w+\}|\w+)>")
_WORD = re.compile(r'(?<= )([a-z-]+)="([\w-]+)"(?=[ >\n])')
_SPACE = re.compile(r"\s++")
_AROUND = re.compile(r" ?([^\w$ ]) ?")
_CONSTANT = re.compile(r"\bconst(?=[ {\[])")
_ALONE = re.compile(r"(?<![\w$])\((\w+)\)(?==>)")
_SHORTER = {"true": "!0", "false": "!1", "undefined": "void 0"}
# As a value, and no key.
_VALUE = re.compile(rf"(?<=[:=(,&|?>])(?:{'|'.join(_SHORTER)})\b(?!:)")
_LAST_SEMICOLON = re.compile(r";(?=\})")


def condense_script(script: str) -> str:
    """Return a script that does the same. Raises `ValueError` where a template has no end."""
    script = _END.sub("</>", script)
    done: list[str] = []
    code: list[str] = []
    # The braces that are open; "${" where one ends with the code of a template.
    opened: list[str] = []
    place = 0

    def add_text(text: str) -> None:
        done.append(_condense_code("".join(code)))
        code.clear()
        done.append(text)

    while (token := _TOKEN.search(script, place)) is not None:
        code.append(script[place : token.start()])
        place = token.end()
        sign = token[0]
        if token["comment"]:
            continue
        if token["text"]:
            add_text(sign)
        elif sign == "{" or (sign == "}" and opened.pop() == "{"):
            opened += [sign] if sign == "{" else []
            code.append(sign)
        else:
            said = _SAID.match(script, place)
            if said is None:
                raise ValueError(f"this template has no end: {script[place : place + 40]!r}")
            place = said.end()
            opened += ["${"] if said["end"] == "${" else []
            add_text(_WORD.sub(r"\1=\2", _INDENT.sub("\n", _BREAK.sub("", sign + said[0]))))
    add_text("")
    return "".join([*done, _condense_code(script[place:])])


def _condense_code(code: str) -> str:
    spaced = _AROUND.sub(r"\1", _SPACE.sub(" ", code)).strip()
    spaced = _VALUE.sub(lambda found: _SHORTER[found[0]], spaced)
    return _LAST_SEMICOLON.sub("", _CONSTANT.sub("let", _ALONE.sub(r"\1", spaced)))
