"""The page's modules joined into one: names stay apart, and a form that is not known is refused."""

from __future__ import annotations

import re

import pytest

from assistant.web.page_condense import condense_script
from assistant.web.page_files import PAGE_FOLDER
from assistant.web.page_modules import join_modules

MODULES = {
    "lib/small.js": "var a=1,b=2;export{a as one,b as two};",
    "words.js": 'import { one as first } from "./lib/small.js";\nconst P = first;\nexport const page = () => P;\n',
    "later.js": 'import { page } from "./words.js";\nconst P = 9;\nexport default function Later() { return page() }\n',
    "main.js": 'const load = () => import("./later.js");\nload().then((it) => done(it.default()));\n',
}


def test_each_module_runs_once_after_what_it_imports_and_keeps_its_names() -> None:
    joined = join_modules(MODULES, "main.js")
    order = ["lib_small", "words", "later", "main"]
    assert re.findall(r"^const \$(\w+)=", joined, re.MULTILINE) == order
    assert "let{one:first}=$lib_small;" in joined and "return{one:a}" in joined
    assert "return{default:Later}" in joined and "Promise.resolve($later)" in joined


def test_a_circle_and_an_unknown_form_are_refused() -> None:
    with pytest.raises(ValueError, match=r"words\.js -> later\.js -> words\.js"):
        join_modules({**MODULES, "words.js": 'import { it } from "./later.js";\n'}, "words.js")
    for form in (
        'import all from "./words.js";',
        'import "./words.js";',
        "export * from './words.js';",
        "export let a = 1;",
    ):
        with pytest.raises(ValueError, match="form of a module"):
            join_modules({"main.js": f"{form}\n"}, "main.js")


CONDENSED = {
    "const one = (it) => it ?? [1, 2]; // a remark": "let one=it=>it??[1,2];",
    'let text = "a, b // c /* d */ \\" e" ;': 'let text="a, b // c /* d */ \\" e";',
    "/** What it is. */\nfunction name(a, b) {\n  return a / 2 + b / 3;\n}\n": "function name(a,b){return a/2+b/3}",
    'const it = /^[/" ]+, (x)$/.test(a) && /\\/ {2}/.exec(b);': 'let it=/^[/" ]+, (x)$/.test(a)&&/\\/ {2}/.exec(b);',
    "const f = (it) => /^- (a|b): x/.exec(it) ?? [];": "let f=it=>/^- (a|b): x/.exec(it)??[];",
    'html`<p class="a b" id="c"><${ G } d="e" /><b\n  f="g">h</b></p></${ G }>`;'.replace("{ G }>", "{G}>"): (
        'html`<p class="a b" id=c><${G} d="e"/><b\nf="g">h</></></>`;'
    ),
    "html`<p>One, two: ${ a ? { b: 1 } : `c, ${ d }`} = e\n  f</p>\n  <${ G } />`;": (
        "html`<p>One, two: ${a?{b:1}:`c, ${d}`} = e\nf</><${G}/>`;"
    ),
    "const a = { b: true, c: d === false || undefined };": "let a={b:!0,c:d===!1||void 0};",
    "html`<a\n  class=${ b }\n  href=${ c }\n>\n  ${ d }\n</a>`": "html`<a\nclass=${b}\nhref=${c}>${d}</>`",
    "call((a), (b) => { const { c } = b; throw new Error(`\\`${c}`) });": (
        "call((a),b=>{let{c}=b;throw new Error(`\\`${c}`)});"
    ),
}


@pytest.mark.parametrize("script", CONDENSED)
def test_what_only_people_read_is_taken_out_of_code_and_no_text_is_changed(script: str) -> None:
    assert condense_script(script).strip() == CONDENSED[script]


def test_a_template_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="no end"):
        condense_script("html`<p>${a}")


def test_every_module_of_the_page_is_in_it() -> None:
    names = {path.name for path in PAGE_FOLDER.glob("*.js")} - {"worker.js"}
    texts = {name: (PAGE_FOLDER / name).read_text(encoding="utf-8") for name in names}
    joined = join_modules({**texts, "vendor/preact.js": "export{html};"}, "main.js")
    assert all(f"const ${name.removesuffix('.js')}=" in joined for name in names)
    used = [
        it
        for text in texts.values()
        for it in re.findall(r"(?<![\w)\]*/<])/(?![/*>]).+?/[a-z]*(?=\.(?:test|exec)\()", text)
    ]
    assert len(used) > 10 and all(pattern in joined for pattern in used)
