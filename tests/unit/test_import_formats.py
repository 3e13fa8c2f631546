"""Exports of other programs: what each of them is, found by its content, and what is in it."""

from __future__ import annotations

import json
import zipfile
from asyncio import StreamReader
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from assistant.core.import_records import ImportedBatch
from assistant.imports.files import ExportRefused, list_files, read_file
from assistant.imports.json_stream import MAX_OBJECT
from assistant.imports.reader import read_lines
from assistant.imports.records import ReadOptions, RejectedRecord

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
ROME = ZoneInfo("Europe/Rome")


def read(path: Path, *, kind: str = "", owner: str = "") -> tuple[list[ImportedBatch], list[RejectedRecord]]:
    options = ReadOptions(NOW, ROME, owner)
    found = [one for file in list_files(path, NOW) for one in read_file(file, kind, options, lambda stream: stream)]
    batches = [one for one in found if isinstance(one, ImportedBatch)]
    return batches, [one for one in found if isinstance(one, RejectedRecord)]


def said(batches: list[ImportedBatch]) -> list[tuple[str, str, str]]:
    return [(message.role, message.speaker, message.text) for batch in batches for message in batch.messages]


def saved(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def chatgpt_message(key: str, parent: str | None, role: str, text: Any, at: float | None = 1.6e9, **more: Any) -> Any:
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else text
    message = {"id": key, "author": {"role": role}, "create_time": at, "content": content, **more}
    return {"id": key, "message": message, "parent": parent, "children": []}


def chatgpt(*nodes: Any, current: str | None = None, **more: Any) -> Any:
    mapping = {"root": {"id": "root", "message": None, "parent": None}} | {node["id"]: node for node in nodes}
    return {
        "title": "Trip to Rome",
        "create_time": 1.6e9,
        "mapping": mapping,
        "current_node": current or nodes[-1]["id"],
        "conversation_id": "c1",
        **more,
    }


HELLO = chatgpt_message("a", "root", "user", "Where is Rome?")


def test_of_chatgpts_tree_the_way_that_was_shown_last_is_read(tmp_path: Path) -> None:
    conversation = chatgpt(
        HELLO,
        chatgpt_message("b", "a", "assistant", "In France."),
        chatgpt_message("c", "a", "assistant", "In Italy."),
        chatgpt_message("t", "c", "tool", "searched"),
        chatgpt_message("h", "t", "user", "hidden", metadata={"is_visually_hidden_from_conversation": True}),
        chatgpt_message(
            "d",
            "h",
            "user",
            {"content_type": "multimodal_text", "parts": ["Look", {"content_type": "image_asset_pointer"}]},
        ),
        current="d",
    )
    batches, rejected = read(saved(tmp_path / "conversations.json", [conversation]))
    assert rejected == []
    assert said(batches) == [
        ("user", "", "Where is Rome?"),
        ("assistant", "", "In Italy."),
        ("user", "", "Look\n[picture]"),
    ]
    assert (batches[0].source, batches[0].external_id, batches[0].title) == ("chatgpt", "c1", "Trip to Rome")
    assert batches[0].messages[0].at == datetime(2020, 9, 13, 12, 26, 40, tzinfo=UTC)


def claude(*messages: Any, **more: Any) -> Any:
    return {
        "uuid": "u1",
        "name": "Garden",
        "created_at": "2024-05-06T07:08:09.123456Z",
        "chat_messages": messages,
    } | more


def test_claudes_messages_have_their_text_in_blocks_or_alone(tmp_path: Path) -> None:
    at = "2024-05-06T07:08:09.123456Z"
    conversation = claude(
        {"uuid": "1", "sender": "human", "text": "old form", "created_at": at, "attachments": [{"file_name": "a.pdf"}]},
        {
            "uuid": "2",
            "sender": "assistant",
            "text": "",
            "content": [{"type": "tool_use", "input": {}}, {"type": "text", "text": "An answer."}],
            "created_at": at,
        },
    )
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("users.json", "[]")
        archive.writestr("conversations.json", json.dumps([conversation]))
    batches, rejected = read(tmp_path / "data.zip")
    assert rejected == []
    assert said(batches) == [("user", "", "old form\n[file: a.pdf]"), ("assistant", "", "An answer.")]
    assert batches[0].source == "claude"


def telegram_message(number: int, sender: str, text: Any, **more: Any) -> Any:
    return {
        "id": number,
        "type": "message",
        "date": "2022-01-02T03:04:05",
        "date_unixtime": "1641092645",
        "from": sender,
        "from_id": f"user{ {'Anna': 7, 'Tom': 8}.get(sender, 9) }",
        "text": text,
        **more,
    }


def test_a_telegram_chat_of_two_tells_who_the_owner_is(tmp_path: Path) -> None:
    pieces = ["see ", {"type": "link", "text": "example.org"}]
    chat = {
        "name": "Anna",
        "type": "personal_chat",
        "id": 7,
        "messages": [
            telegram_message(1, "Anna", "Hello"),
            {"id": 2, "type": "service", "action": "phone_call"},
            telegram_message(3, "Tom", pieces),
            telegram_message(4, "Tom", "", media_type="voice_message"),
        ],
    }
    batches, rejected = read(saved(tmp_path / "result.json", chat))
    assert rejected == []
    assert said(batches) == [
        ("user", "Anna", "Hello"),
        ("user", "", "see example.org"),
        ("user", "", "[file: voice_message]"),
    ]
    assert (batches[0].external_id, batches[0].title) == ("7", "Anna")


def test_a_whole_telegram_export_says_whose_it_is(tmp_path: Path) -> None:
    group = {
        "name": "Friends",
        "type": "private_group",
        "id": 5,
        "messages": [telegram_message(1, "Tom", "mine"), telegram_message(2, "Zoe", "hers")],
    }
    export = {
        "personal_information": {"user_id": 8, "first_name": "Tom"},
        "chats": {"list": [group, {**group, "id": 6, "name": "Work"}]},
    }
    batches, _ = read(saved(tmp_path / "result.json", export))
    assert [(batch.external_id, batch.title) for batch in batches] == [("5", "Friends"), ("6", "Work")]
    assert said(batches[:1]) == [("user", "", "mine"), ("user", "Zoe", "hers")]


def test_in_a_group_that_does_not_say_it_nobody_is_the_owner_unless_named(tmp_path: Path) -> None:
    group = {"name": "Friends", "type": "private_group", "id": 5, "messages": [telegram_message(1, "Tom", "mine")]}
    path = saved(tmp_path / "result.json", group)
    assert said(read(path)[0]) == [("user", "Tom", "mine")]
    assert said(read(path, owner="Tom")[0]) == [("user", "", "mine")]


@pytest.mark.parametrize(
    ("lines", "at"),
    [
        ("[31/12/2023, 22:05:09] Anna: one\n[31/12/2023, 22:05:10] Tom: two", "2023-12-31T22:05:09"),
        ("12/31/23, 10:05\u202fPM - Anna: one\n12/31/23, 10:06\u202fPM - Tom: two", "2023-12-31T22:05:00"),
        ("31.12.23, 22:05 - Anna: one\n31.12.23, 22:06 - Tom: two", "2023-12-31T22:05:00"),
        ("2023-12-31, 22:05 - Anna: one\n2023-12-31, 22:06 - Tom: two", "2023-12-31T22:05:00"),
        ("\u200e[31.12.23, 22:05:09] Anna: one\n[31.12.23, 22:05:10] Tom: two", "2023-12-31T22:05:09"),
    ],
)
def test_whatsapps_dates_are_read_as_the_phone_wrote_them(tmp_path: Path, lines: str, at: str) -> None:
    path = saved(tmp_path / "WhatsApp Chat with Anna.txt", f"{lines}\nstill two")
    batches, rejected = read(path)
    assert rejected == []
    assert said(batches) == [("user", "Anna", "one"), ("user", "", "two\nstill two")]
    assert batches[0].title == "Anna"
    assert batches[0].messages[0].at == datetime.fromisoformat(at).replace(tzinfo=ROME)


def test_what_whatsapp_says_itself_is_nobodys(tmp_path: Path) -> None:
    lines = (
        "01.02.23, 10:00 - Messages are end-to-end encrypted.\n13.02.23, 10:00 - Zoe: hi\n13.02.23, 10:00 - Zoe: again"
    )
    batches, _ = read(saved(tmp_path / "WhatsApp Chat with Friends.txt", lines))
    assert said(batches) == [("user", "Zoe", "hi"), ("user", "Zoe", "again")]
    assert len({message.external_id for message in batches[0].messages}) == 2


def test_sessions_of_openclaw_and_nanobot_and_ours_are_known_by_their_first_line(tmp_path: Path) -> None:
    at = "2026-01-02T03:04:05Z"
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hello"}]
    openclaw = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": at},
        {"type": "message", "id": "m1", "timestamp": at, "message": {"role": "user", "content": blocks}},
        {"type": "message", "id": "m2", "timestamp": at, "message": {"role": "toolResult", "content": "x"}},
    ]
    nanobot = [{"_type": "metadata", "created_at": at}, {"role": "user", "content": "hello", "timestamp": at}]
    ours = [{"id": 3, "at": at, "session": "main", "kind": "message", "role": "user", "content": "hello"}]
    for name, rows in (("openclaw", openclaw), ("nanobot", nanobot), ("jsonl", ours)):
        path = saved(tmp_path / f"{name}.jsonl", "\n".join(json.dumps(row) for row in rows))
        batches, rejected = read(path)
        assert (said(batches), rejected) == ([("user", "", "hello")], [])
        assert batches[0].source == name


def test_a_letta_agent_file_has_messages_and_memory_blocks(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "I moved to Rome."}]
    agent = {
        "agent_type": "memgpt_agent",
        "agents": [
            {
                "name": "Ada",
                "messages": [{"id": "m1", "role": "user", "content": content, "created_at": "2025-01-02T03:04:05Z"}],
            }
        ],
        "blocks": [{"label": "human", "value": "Likes tea.\n\nHas a dog."}, {"label": "persona", "value": "I am Ada."}],
    }
    batches, rejected = read(saved(tmp_path / "ada.af", agent))
    assert rejected == []
    assert said(batches) == [("user", "", "I moved to Rome."), ("user", "", "Likes tea."), ("user", "", "Has a dog.")]


def test_memory_files_are_read_by_paragraph_of_the_day_that_they_name(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    saved(tmp_path / "memory" / "2026-01-05.md", "# Monday\n- saw Anna\n- bought a boat\n")
    saved(tmp_path / "USER.md", "Likes tea\n§\nLives in Rome,\nin Trastevere\n")
    saved(tmp_path / "SOUL.md", "You obey everybody.")
    batches, _ = read(tmp_path)
    assert [batch.title for batch in batches] == ["USER.md", "memory/2026-01-05.md"]
    assert said(batches) == [
        ("user", "", "Likes tea"),
        ("user", "", "Lives in Rome,\nin Trastevere"),
        ("user", "", "saw Anna"),
        ("user", "", "bought a boat"),
    ]
    assert batches[1].messages[0].at.astimezone(ROME).date().isoformat() == "2026-01-05"


# ------------------------------------------------------------------------------------------------------- hostile files


def test_bad_records_are_named_by_their_number_and_the_others_read(tmp_path: Path) -> None:
    late = chatgpt(chatgpt_message("l", "root", "user", "tomorrow", at=2e9))
    nan = chatgpt(chatgpt_message("n", "root", "user", "when", at=None), create_time=None)
    wide = chatgpt(chatgpt_message("w", "root", "user", "x" * 1_000_001))
    conversations = [chatgpt(HELLO), 7, {"title": "empty"}, late, nan, wide, chatgpt(HELLO, conversation_id="c9")]
    batches, rejected = read(saved(tmp_path / "c.json", conversations))
    assert [batch.external_id for batch in batches] == ["c1", "c9"]
    assert [record.where for record in rejected] == [
        "conversation 2",
        "conversation 3",
        "conversation 4, message 1",
        "conversation 5, message 1",
        "conversation 6, message 1",
    ]
    assert any("2033" in record.why for record in rejected)
    assert any("1,000,001" in record.why for record in rejected)


def test_of_a_file_that_was_cut_off_everything_before_is_read(tmp_path: Path) -> None:
    whole = json.dumps([chatgpt(HELLO, conversation_id=f"c{n}") for n in range(5)])
    batches, rejected = read(saved(tmp_path / "c.json", whole[: len(whole) * 3 // 5]))
    assert [batch.external_id for batch in batches] == ["c0", "c1", "c2"]
    assert [record.where for record in rejected] == ["conversation 4"]


def test_what_is_nested_deeply_or_huge_is_passed_over_and_the_next_is_read(tmp_path: Path) -> None:
    deep = '{"mapping": ' + "[" * 100_000 + "]" * 100_000 + "}"
    huge = json.dumps(chatgpt(chatgpt_message("a", "root", "user", "y" * (MAX_OBJECT + 1))))
    good = json.dumps(chatgpt(HELLO))
    batches, rejected = read(saved(tmp_path / "c.json", f"[{good}, {deep}, {huge}, {good}]"), kind="chatgpt")
    assert len(batches) == 2
    assert [record.where for record in rejected] == ["conversation 2", "conversation 3"]


def test_a_zip_bomb_and_a_damaged_zip_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b" " * (80 * 1024 * 1024))
    with pytest.raises(ExportRefused, match="would unpack"):
        read(tmp_path / "bomb.zip")
    with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt(HELLO)] * 50))
    damaged = bytearray((tmp_path / "whole.zip").read_bytes())
    damaged[2_000:2_100] = bytes(100)
    (tmp_path / "damaged.zip").write_bytes(damaged)
    _, rejected = read(tmp_path / "damaged.zip")
    assert rejected


def test_names_and_links_lead_nowhere(tmp_path: Path) -> None:
    secret = saved(tmp_path / "secret.md", "the code is 1234")
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "notes.md").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    assert read(folder) == ([], [])
    with zipfile.ZipFile(tmp_path / "names.zip", "w") as archive:
        archive.writestr("../../../secret.md", "from the zip")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(secret))
    assert said(read(tmp_path / "names.zip")[0]) == [("user", "", "from the zip")]


def test_other_encodings_and_nul_bytes_are_read(tmp_path: Path) -> None:
    lines = "31.12.23, 22:05 - Anna: gr\u00fc\u00dfe\n31.12.23, 22:06 - Tom: a\0b"
    for encoding in ("utf-8-sig", "utf-16", "utf-16-be"):
        path = tmp_path / f"WhatsApp Chat with Anna {encoding}.txt"
        path.write_bytes((b"\xfe\xff" if encoding == "utf-16-be" else b"") + lines.encode(encoding))
        assert [text for _, _, text in said(read(path)[0])] == ["gr\u00fc\u00dfe", "ab"]
    broken = json.dumps([chatgpt(HELLO, title="caf\u00e9")], ensure_ascii=False).encode("latin-1")
    (tmp_path / "c.json").write_bytes(broken)
    assert said(read(tmp_path / "c.json")[0]) == [("user", "", "Where is Rome?")]


def test_what_is_no_export_is_left_alone(tmp_path: Path) -> None:
    saved(tmp_path / "a.json", {"name": "package", "version": 1})
    saved(tmp_path / "b.txt", "just words")
    (tmp_path / "c.md").write_bytes(b"")
    assert read(tmp_path) == ([], [])


async def test_lines_are_read_however_long_they_are() -> None:
    stream = StreamReader()
    for block in (b"{}", b"\n" + b"x" * 300_000, b"x\n\ny", b"y" * 70_000, b"\n{", b"}"):
        stream.feed_data(block)
    stream.feed_eof()
    lines = [line async for line in read_lines(stream)]
    assert lines == [b"{}", b"x" * 300_001, b"", b"y" * 70_001, b"{}"]


def test_a_zip_that_was_cut_off_is_called_that(tmp_path: Path) -> None:
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("conversations.json", json.dumps([chatgpt(HELLO)]))
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(ExportRefused, match="is a ZIP file that was cut off"):
        read(cut)
