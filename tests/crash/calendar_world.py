"""A calendar server of a crash scenario, played in the process that is killed: one calendar, `COLLECTION`.

All that it knows is the witness: what was put and deleted is noted outside of the home before the app hears of it. So
every kill is one between the app and its server, and a restarted server goes on as a real one would. No socket is
opened, for homes that are broken at the same time have the same address in their settings. What speaks to the server
does so in this process, not in a child of its own: its writes into the home are broken like all others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx2

from assistant.calendars import worker
from assistant.calendars.dav import DavClient, DavError
from assistant.calendars.service import CalendarError, CalendarWorker
from assistant.core.errors import StoreError
from tests.crash.witness import EffectLog

_SERVER = "http://127.0.0.1:5232"
_PATH = "/ada/family/"
COLLECTION = f"{_SERVER}{_PATH}"
_HREF = re.compile(r"<d:href>([^<]+)</d:href>")
_CALENDAR = "<d:resourcetype><d:collection/><c:calendar/></d:resourcetype><d:displayname>family</d:displayname>"


CONFIG = f"""\
[[calendar.sources]]
name = "Server"
kind = "caldav"
url = "{COLLECTION}"
user = "ada"
private = true
"""
"""What config.toml has of it; `PASSWORD` is among the settings."""
PASSWORD = {"ASSISTANT_CALENDAR__PASSWORDS": json.dumps({"Server": "a password of tests"})}


class RecordedCalendar:
    """What is in the calendar, by path, and how often it was put there."""

    def __init__(self, witness: EffectLog) -> None:
        self._witness = witness

    def entries(self) -> dict[str, str]:
        """The texts, by path."""
        found: dict[str, str] = {}
        for seen in self._witness.recorded("calendar"):
            found = {path: text for path, text in found.items() if path != seen["path"]}
            if seen["text"]:
                found[seen["path"]] = seen["text"]
        return found

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        path, text = urlsplit(str(request.url)).path, request.content.decode()
        entries = self.entries()
        match request.method:
            case "PUT" | "DELETE":
                if request.headers.get("If-None-Match") == "*" and path in entries:
                    return httpx2.Response(412)
                if request.headers.get("If-Match", _tag(entries.get(path, ""))) != _tag(entries.get(path, "")):
                    return httpx2.Response(412)
                self._witness.record("calendar", path=path, text=text if request.method == "PUT" else "")
                return httpx2.Response(201)
            case "GET":
                there = entries.get(path)
                return httpx2.Response(404) if there is None else httpx2.Response(200, text=there, headers=_etag(there))
            case "REPORT":
                wanted = {path: entries[path] for path in _HREF.findall(text) if path in entries}
                return _multistatus({path: _entry(there, whole=True) for path, there in wanted.items()})
        members = {path: _entry(there) for path, there in entries.items()} if request.headers["Depth"] == "1" else {}
        return _multistatus({_PATH: _CALENDAR, **members})


def _tag(text: str) -> str:
    return f'"{len(text)}"'


def _etag(text: str) -> dict[str, str]:
    return {"ETag": _tag(text)}


def _entry(text: str, *, whole: bool = False) -> str:
    data = f"<c:calendar-data>{text}</c:calendar-data>" if whole else ""
    return f"<d:getetag>{_tag(text)}</d:getetag>{data}"


def _multistatus(properties: Mapping[str, str]) -> httpx2.Response:
    responses = "".join(
        f"<d:response><d:href>{path}</d:href><d:propstat><d:prop>{found}</d:prop>"
        "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        for path, found in properties.items()
    )
    names = 'xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"'
    return httpx2.Response(207, text=f"<d:multistatus {names}>{responses}</d:multistatus>")


@contextmanager
def calendar_server(witness: EffectLog) -> Iterator[None]:
    """While it is open, calendars are read and changed in this process, and this server answers."""
    transport = httpx2.MockTransport(RecordedCalendar(witness).answer)

    async def run(self: CalendarWorker, action: str, now: datetime, **order: Any) -> Mapping[str, Any]:
        order |= {"action": action, "home": str(self.home), "zone": str(self.zone), "now": now.isoformat()}
        try:
            return await worker._run(order | {"max_bytes": self.max_bytes})
        except DavError as error:
            raise CalendarError(str(error), unsure=error.unsure) from None
        except StoreError as error:
            raise CalendarError(f"What was read cannot be stored: {error}") from None

    with (
        patch.object(CalendarWorker, "run", run),
        patch.object(DavClient, "_new_client", lambda self: httpx2.AsyncClient(transport=transport)),
    ):
        yield
