"""The recipes for Homebrew and Debian, from what pyproject.toml, the Dockerfile and the command table say.

Both make a virtual environment of the program's own and put its commands, man pages and shell completions where the
system looks for them. `make docs` writes them to `packaging/`. The checksum of a release is known after its archive was
built: `python -m docs.system_packages dist/nocturne_assistant-0.1.0.tar.gz` prints the formula with it.
"""

from __future__ import annotations

import hashlib
import re
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from assistant import __version__

_ROOT = Path(__file__).parents[1]
_SHELLS = ("bash", "zsh", "fish")
_PYTHON = "3.13"
_DEBIAN_PYTHON = "/usr/bin/python3"
# Of everything in a package; the same each time, so that two builds are alike.
_DATE = "Thu, 01 Jan 2026 00:00:00 +0000"


def render_formula(sha256: str = "") -> str:
    """The Homebrew formula; `sha256` of the source archive, "" before there is one."""
    project, commands = _project(), _commands()
    archive = f"{project['name'].replace('-', '_')}-{__version__}.tar.gz"
    lines = [
        "# Made by `make docs` from pyproject.toml. Do not edit.",
        "class Nocturne < Formula",
        "  include Language::Python::Virtualenv",
        "",
        f'  desc "{_short_description(project)}"',
        f'  homepage "https://pypi.org/project/{project["name"]}/"',
        f'  url "https://files.pythonhosted.org/packages/source/{project["name"][0]}/{project["name"]}/{archive}"',
        *([f'  sha256 "{sha256}"'] if sha256 else []),
        f'  license "{project["license"]}"',
        "",
        f'  depends_on "python@{_PYTHON}"',
        "",
        "  def install",
        f'    virtualenv_create(libexec, "python{_PYTHON}", without_pip: false)',
        f'    system libexec/"bin/python", "-m", "pip", "install", "--no-cache-dir", "#{{buildpath}}[{_extras()}]"',
        *(f'    bin.install_symlink libexec/"bin/{name}"' for name in commands),
        '    man1.install Dir["docs/man/*.1"]',
    ]
    for name in commands:
        for shell in _SHELLS:
            place = {"zsh": f"_{name}", "fish": f"{name}.fish"}.get(shell, name)
            asked = f'bin/"{commands[0]}", "completion", "{shell}", "--program", "{name}"'
            lines.append(f'    ({shell}_completion/"{place}").write Utils.safe_popen_read({asked})')
    lines += [
        "  end",
        "",
        "  service do",
        f'    run [opt_bin/"{commands[0]}", "run"]',
        "    keep_alive true",
        "  end",
        "",
        "  test do",
        '    ENV["ASSISTANT_HOME"] = testpath/"home"',
        f'    assert_match version.to_s, shell_output("#{{bin}}/{commands[0]} --version")',
        f'    system bin/"{commands[0]}", "chat", "-m", "The boiler code is 4711."',
        f'    assert_match "4711", shell_output("#{{bin}}/{commands[0]} chat -m \'What is the boiler code?\'")',
        "  end",
        "end",
    ]
    return "\n".join(lines)


def render_debian_control() -> str:
    project = _project()
    about = textwrap.wrap(
        "It runs in the background and answers in a terminal, in a page in the browser and on the networks that you "
        "connect. Everything stays in one folder of yours.",
        76,
    )
    return "\n".join(
        [
            "Source: nocturne",
            "Section: utils",
            "Priority: optional",
            f"Maintainer: {project['authors'][0]['name']} <root@localhost>",
            f"Build-Depends: python3 ({project['requires-python'].replace('>=', '>= ')}), python3-venv",
            "Standards-Version: 4.7.0",
            "Rules-Requires-Root: no",
            "",
            "Package: nocturne",
            "Architecture: any",
            "Depends: ${nocturne:Python}",
            "Recommends: bubblewrap, man-db",
            f"Description: {_short_description(project)}",
            *(f" {line}" for line in about),
        ]
    )


def render_debian_rules() -> str:
    commands, tree = _commands(), "debian/nocturne"
    steps = [
        f"rm -rf {tree} && mkdir -p {tree}/usr/bin {tree}/usr/share/man/man1 {tree}/DEBIAN",
        # Debian's own interpreter, whichever comes first on PATH, and a link to it: an update of it counts here too.
        f"{_DEBIAN_PYTHON} -m venv --without-pip --symlinks {tree}/opt/nocturne",
        f"rm {tree}/opt/nocturne/bin/[Aa]ctivate*",
        f"{_DEBIAN_PYTHON} -m venv debian/pip",
        f"debian/pip/bin/pip --python {tree}/opt/nocturne install --no-cache-dir --no-compile '.[{_extras()}]'",
        # Scripts name the folder that they were made in, and so does a note of pip's.
        f"find {tree}/opt/nocturne/lib -name direct_url.json -delete",
        f"grep -rlI '^#!.*$(CURDIR)' {tree}/opt/nocturne/bin | xargs -r sed -i '1s,^#!.*,#!/opt/nocturne/bin/python3,'",
        f"sed -i '/^command = /d' {tree}/opt/nocturne/pyvenv.cfg",
    ]
    # Who starts it may not write beside it, and would compile it each time.
    compiled = f"-m compileall -qq --invalidation-mode unchecked-hash -s {tree} -p / {tree}/opt/nocturne/lib"
    steps.append(f"{tree}/opt/nocturne/bin/python3 {compiled} || true")
    for name in commands:
        steps += [
            f"ln -s ../../opt/nocturne/bin/{name} {tree}/usr/bin/{name}",
            f"gzip -9n < docs/man/{name}.1 > {tree}/usr/share/man/man1/{name}.1.gz",
        ]
        for shell in _SHELLS:
            folder, file = {
                "bash": ("bash-completion/completions", name),
                "zsh": ("zsh/vendor-completions", f"_{name}"),
                "fish": ("fish/vendor_completions.d", f"{name}.fish"),
            }[shell]
            asked = f"-c 'from assistant.cli.main import main; main()' completion {shell} --program {name}"
            steps += [
                f"mkdir -p {tree}/usr/share/{folder}",
                f"{tree}/opt/nocturne/bin/python3 -PB {asked} > {tree}/usr/share/{folder}/{file}",
            ]
    steps += [
        f"install -Dm 644 LICENSE {tree}/usr/share/doc/nocturne/copyright",
        # The environment is of one minor version of Python.
        f"{_DEBIAN_PYTHON} -c 'import sys; minor = sys.version_info[1]; "
        'print(f"nocturne:Python=python3 (>= 3.{minor}), python3 (<< 3.{minor + 1})")\' > debian/substvars',
        f"dpkg-gencontrol -Tdebian/substvars -P{tree}",
        f"dpkg-deb --root-owner-group --build {tree} ..",
    ]
    body = "\n".join(f"\t{step}" for step in steps)
    return (
        "#!/usr/bin/make -f\n# Made by `make docs` from pyproject.toml. Do not edit.\nclean:\n"
        "\trm -rf debian/nocturne debian/pip debian/substvars debian/files\n\n"
        f"build build-arch build-indep binary-indep:\n\nbinary binary-arch:\n{body}\n\n"
        ".PHONY: clean build build-arch build-indep binary binary-arch binary-indep"
    )


def render_debian_changelog() -> str:
    project = _project()
    return (
        f"nocturne ({__version__}) unstable; urgency=medium\n\n  * CHANGELOG.md says what changed.\n\n"
        f" -- {project['authors'][0]['name']} <root@localhost>  {_DATE}"
    )


def _project() -> dict[str, Any]:
    found = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return dict(found["project"])


def _commands() -> list[str]:
    """The programs, the main one first."""
    return list(_project()["scripts"])


def _extras() -> str:
    """Those that the container has."""
    (extras,) = re.findall(r"\.\[([\w,]+)\]", (_ROOT / "packaging" / "Dockerfile").read_text(encoding="utf-8"))
    return str(extras)


def _short_description(project: dict[str, Any]) -> str:
    """As both want it: without the name, without an article and a full stop, 80 characters at most."""
    text = str(project["description"]).partition(": ")[2].removeprefix("a ").rstrip(".")
    return f"{text[:1].upper()}{text[1:]}"


if __name__ == "__main__":
    print(render_formula(hashlib.sha256(Path(sys.argv[1]).read_bytes()).hexdigest()))
