"""Files that go out with the answer of a turn: kept while it runs, given to its answer, gone with its end.

What always holds: a tool that runs again after a crash adds its file once; a turn that fails sends none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from assistant.core.messages import Media, media_from_json, media_to_json
from assistant.core.ports import ToolContext
from assistant.core.records import OutgoingMessage
from assistant.store.database import Database
from assistant.store.text import dumps, plain


class TurnFiles:
    """Implements `ports.TurnFiles`."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, media: Media, context: ToolContext) -> None:
        with self._db.write() as db:
            db.execute(
                "INSERT INTO turn_files (key, turn, session, scope, media) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO NOTHING",
                (context.key, context.turn, context.session, context.scope, dumps(plain(media_to_json(media)))),
            )

    def of_turn(self, turn: str) -> tuple[Media, ...]:
        return _of(self._db, turn)


def given(db: Database, turn: str, outgoing: Sequence[OutgoingMessage]) -> list[OutgoingMessage]:
    """Inside the transaction that ends the turn: what goes out, its answers with the files, which are kept here no
    longer."""
    files = _of(db, turn)
    if not files:
        return list(outgoing)
    db.execute("DELETE FROM turn_files WHERE turn = ?", (turn,))
    return [replace(one, media=(*one.media, *files)) if one.kind == "reply" else one for one in outgoing]


def _of(db: Database, turn: str) -> tuple[Media, ...]:
    rows = db.rows("SELECT media FROM turn_files WHERE turn = ? ORDER BY id", (turn,))
    return tuple(media_from_json(json.loads(row["media"])) for row in rows)
