"""Which functions are given a long text on the loop, while it is accepted, recalled for, sent to the model, answered,
indexed, asked for over the web API and sent over each bridge: these, each of which goes through it once in C or looks
at its ends. Everything else is done beside the loop, in a thread that gives the interpreter back or in a child.

Counted, not timed: a function that is added to the loop's way of a long text fails here until somebody has measured it
(`make bench`, "holds") and put it into the list.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assistant.bridges.telegram.bridge import TelegramBridge
from tests.strict.telegram import StrictTelegram
from tests.support.hostile_texts import hostile_text
from tests.support.loop_texts import long_texts_on_the_loop, texts_parsed_on_the_loop
from tests.support.running_app import run_app
from tests.support.telegram_bridge import make_telegram_bridge, outgoing_telegram_part

SIZE = 200_000

# By what it does with the text.
KNOWN = {
    "copies it": {
        "assistant/context/normalise.py _with",
        "assistant/context/truncate.py _Truncation._assembled",
        "assistant/core/messages.py Message.with_content",
        "assistant/runtime/turn.py TurnRunner._finish",
        "assistant/runtime/turn_deliveries.py deliveries_of_turn",
        "sleep/cycle/extract.py _shown",
    },
    "looks at its beginning or end": {
        "assistant/context/truncate.py _Truncation._reference",
        "assistant/context/truncate.py _Truncation._removed",
        "assistant/context/truncate.py _boundary",
        "assistant/context/truncate.py _longest",
        "assistant/context/truncate.py _prefix",
        "assistant/context/truncate.py _suffix",
        "assistant/core/approvals.py read_answer",
        "assistant/core/profiles.py fold_name",
        "assistant/runtime/recall.py ProfileRecall.recall",
        "assistant/runtime/recall.py _without_unasked_secrets",
        "assistant/store/character/profiles.py StoredProfiles.find_in_text",
        "sleep/rules/classifier.py classify_request",
        "assistant/runtime/secret_notice.py find_message_secrets",
    },
    "counts, encodes or hashes it once": {
        "assistant/context/pressure.py utf8_length",
        "assistant/context/tokens.py TokenCounter.count_text",
        "assistant/context/tokens.py estimate_tokens",
        "assistant/core/quoting.py escape_own_tags",
        "assistant/core/quoting.py replace_unsendable",
        "assistant/store/log/format.py compute_commitment",
        "assistant/store/rows.py _stored",
        "assistant/store/rows.py clean_text",
    },
    "writes or reads it as JSON": {
        "assistant/store/files.py write_all",
        "assistant/store/log/format.py decode_record",
        "assistant/store/log/reader.py _parse_line",
        "assistant/store/log/writer.py MessageLog._write",
    },
}


@pytest.mark.parametrize("kind", ["sentences", "brackets", "emoji", "Markdown tables"])
async def test_a_long_text_is_given_to_known_functions_alone_on_the_loop(tmp_path: Path, kind: str) -> None:
    text = hostile_text(kind, SIZE)
    async with run_app(tmp_path, "Good.", *[text] * 3) as it:
        await it.say("Hello")
        await it.wait_idle()
        with long_texts_on_the_loop() as texts:
            for said in (text, "What did I say?"):
                await it.say(said)
                await it.wait_idle()
                await it.app.background_compaction.wait_until_idle()
            await it.app.maintenance.index_new_messages()
        assert texts.seen.keys() <= set().union(*KNOWN.values())
        assert "assistant/store/log/writer.py MessageLog._write" in texts.seen, "it looks where texts pass"
        # Of the message, its answer and the answer after it: no more than so many times each.
        assert max(texts.seen.values()) <= 3 * 10, texts.seen.most_common(3)


async def test_a_long_answer_is_cut_into_parts_beside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_app(tmp_path, hostile_text("brackets", 30_000), "Short.") as it:
        it.bridge.capabilities = TelegramBridge.capabilities
        with texts_parsed_on_the_loop(monkeypatch) as lengths:
            await it.say("Hello")
            await it.wait_idle()
        assert len(it.bridge.bodies) > 5 and max(lengths, default=0) <= 2_000


async def test_a_long_part_is_formatted_for_telegram_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    server = StrictTelegram()
    await server.go_online()
    bridge = make_telegram_bridge(server)
    with texts_parsed_on_the_loop(monkeypatch) as lengths:
        for text in ("Short.", hostile_text("brackets", 3_900)):
            await bridge.send(outgoing_telegram_part(text))
    await bridge.aclose()
    await server.go_offline()
    assert lengths == [len("Short.")]
