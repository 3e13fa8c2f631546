"""What a start does not load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from assistant.core.imports import hidden_modules, placeholder_modules, stand_in_modules

ASSISTANT = Path(__file__).parents[2] / "assistant"
_LOADED = "import sys\nimport assistant.cli.{}\nimport assistant.daemon\nprint(*sys.modules)"


def test_what_is_hidden_cannot_be_imported_until_it_is_shown_again() -> None:
    assert "mailbox" not in sys.modules
    with hidden_modules("mailbox", "sys"), pytest.raises(ImportError):
        import mailbox
    import mailbox
    import sys as shown

    assert mailbox.Mailbox and shown is sys


def test_a_placeholder_is_found_while_something_is_imported_and_the_real_module_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "sched", raising=False)
    with placeholder_modules(sched="scheduler", sys="Sys"):
        import sys as shown
        from sched import scheduler as placeholder
    from sched import scheduler

    assert placeholder("anything").enter(1, priority=2) is None
    assert scheduler is not placeholder and shown is sys


def test_a_stand_in_makes_instances_of_the_real_class_and_goes_without_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("sched", "mailcap"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with stand_in_modules("sched"):
        with stand_in_modules("mailcap", "package.never_imported", "sys"):
            import sys as shown
        from sched import scheduler as stand_in
    from sched import scheduler

    assert stand_in is not scheduler and isinstance(stand_in(), scheduler) and shown is sys
    assert {"mailcap", "package.never_imported"}.isdisjoint(sys.modules)


@pytest.mark.parametrize("known", [True, False])
def test_metadata_of_packages_is_found_again_after_what_was_imported_without(known: bool) -> None:
    code = (
        "import sys\nfrom assistant.core.imports import no_package_metadata\n"
        f"if {known}: import importlib.metadata\n"
        "with no_package_metadata():\n"
        "    import importlib.metadata as hidden\n    from importlib.metadata import entry_points\n"
        "    assert not entry_points(group='console_scripts')\n"
        "    try: hidden.version('pydantic')\n"
        "    except hidden.PackageNotFoundError: pass\n"
        "    else: raise AssertionError('a version was found')\n"
        "from importlib.metadata import entry_points, version\n"
        "assert entry_points(group='console_scripts') and version('pydantic')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_few_letters_say_is_no_large_automaton() -> None:
    """pydantic's expressions are compiled to automata: `[\\w-]{80,100}` takes 6 MB and 60 ms, each time."""
    repeated = re.compile(r"pattern=.*\\[wWdDsS]([^\]]*\])?\{\d")
    found = [
        f"{path.name}: {line.strip()}"
        for path in ASSISTANT.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if repeated.search(line)
    ]
    assert repeated.search(r'Field(pattern=r"^\w[\w .-]{0,39}$")')
    assert not found


def test_the_child_of_semantic_memory_loads_no_client_of_a_server_and_no_telemetry(tmp_path: Path) -> None:
    """Loading them took four fifths of its start and two thirds of its memory."""
    code = (
        f"import os, sys\nos.environ.update(MEM0_TELEMETRY='False', MEM0_DIR={str(tmp_path)!r})\n"
        "import assistant.mem0.adapter\nprint(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mem0" in loaded and {"qdrant_client", "posthog", "grpc"}.isdisjoint(loaded)


@pytest.mark.parametrize("command", ["chat.command", "serve"])
def test_a_start_loads_nothing_that_it_may_not_need(command: str) -> None:
    code = _LOADED.format(command)
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"numpy", "pandas", "rich", "fastapi", "anthropic", "openai", "mem0"}.isdisjoint(loaded)
    assert {"pydantic", "annotated_types"}.isdisjoint(loaded) or command == "serve"
    unwanted = (
        "assistant.replica",
        "assistant.fleet",
        "psycopg",
        "assistant.commands.catalog",
        "assistant.commands.pe",
    )
    assert not [name for name in loaded if name.startswith(unwanted)]


def test_a_first_answer_loads_no_more_modules_than_it_did(tmp_path: Path) -> None:
    """Each takes a quarter of a millisecond, and a person waits. Of the libraries, a slow machine loads the schedule's
    meanwhile, which is begun after a second."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "assistant.cli.main", "chat", "-m", "hi"],
        env={**os.environ, "ASSISTANT_HOME": str(tmp_path), "ASSISTANT_MODEL__PROVIDER": "offline"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", ran.stderr, re.MULTILINE)
    assert "Hello" in ran.stdout and "assistant.wire.app" in loaded
    assert {"pydantic", "annotated_types", "rich", "fastapi"}.isdisjoint(loaded)
    ours = [name for name in loaded if name.partition(".")[0] in ("assistant", "sleep", "tools")]
    assert len(ours) <= 491


@pytest.mark.parametrize(("adapter", "sdk", "most"), [("anthropic", "anthropic", 100), ("openai", "openai", 400)])
def test_an_adapter_loads_what_it_uses_of_its_sdk(adapter: str, sdk: str, most: int) -> None:
    """The whole SDKs have 3,300 and 700 modules."""
    code = f"import sys, assistant.models.{adapter}\nprint(*(name for name in sys.modules if name.startswith({sdk!r})))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sdk in loaded and len(loaded) < most


def test_names_that_an_sdk_reexports_are_the_same_objects_and_unknown_ones_are_missed() -> None:
    import anthropic
    import anthropic._exceptions
    import anthropic.types.beta.beta_text_block

    assert anthropic.APIStatusError is anthropic._exceptions.APIStatusError
    assert anthropic.types.beta.BetaTextBlock is anthropic.types.beta.beta_text_block.BetaTextBlock
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = anthropic.types.no_such_name
    with pytest.raises(ImportError):
        from anthropic.types import no_such_name  # noqa: F401


def test_types_that_an_adapter_never_makes_are_stand_ins_there_and_real_afterwards() -> None:
    """In a process of its own, in which the SDK was not imported yet."""
    code = (
        "import sys, assistant.models.anthropic\nimport anthropic\n"
        "from anthropic.lib._tracing import _utils, _streaming\n"
        "import anthropic.types.message_create_params as real\n"
        "from anthropic.types import Message, TextBlockParam\n"
        "stand_in = _utils.MessageCreateParamsBase\n"
        "assert stand_in is not real.MessageCreateParamsBase and _streaming.Message is not Message\n"
        "assert TextBlockParam.__annotations__ and Message.model_fields\n"
        "assert stand_in(model='m') == {'model': 'm'}\n"
        "assert anthropic.types.message_create_params is real\n"
        "import httpx2\n"
        "from anthropic._error_classes import ERROR_CLASSES\n"
        "assert not any(name.endswith('_error') for name in sys.modules if name.startswith('anthropic.'))\n"
        "for status, code in ERROR_CLASSES:\n"
        "    response = httpx2.Response(status, request=httpx2.Request('POST', 'http://here'))\n"
        "    made = ERROR_CLASSES[status, code]('no', response=response, body=None)\n"
        "    assert isinstance(made, anthropic.APIStatusError) and made.status_code == status"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("adapter", "model"), [("anthropic", "AnthropicModel"), ("openai", "OpenAIModel")])
def test_a_client_loads_no_loop_and_no_protocol_that_it_does_not_use(adapter: str, model: str) -> None:
    """Where trio and h2 are installed they took 6 MB and three quarters of the time."""
    code = (
        f"import sys\nfrom datetime import UTC, datetime\nfrom assistant.models.{adapter} import {model}\n"
        f"{model}('name', 'key', clock=lambda: datetime.now(UTC))\nprint(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "httpcore2" in loaded and {"trio", "h2"}.isdisjoint(loaded)
