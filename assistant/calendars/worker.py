"""The child process that reads and changes calendars, `python -m assistant.calendars.worker`: one request on standard
input, one answer on standard output, both JSON.

Everything that talks to a calendar server, or parses its data, happens here, with limited memory and time, so a
malicious calendar cannot affect the assistant. No environment is inherited, and so no proxy and no key.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from assistant.calendars.dav import DavClient, DavError
from assistant.core.calendar_events import CalendarChange
from assistant.core.errors import AssistantError, StoreError
from assistant.core.text import pluralize, shorten
from assistant.settings.calendar_sources import CalendarSource
from assistant.settings.home import Home
from assistant.store.calendars import CalendarWriter

_MAX_MEMORY = 2 * 1024 * 1024 * 1024
_LONGEST_REASON = 500


async def _run(order: Mapping[str, Any]) -> dict[str, Any]:
    home, now = Path(order["home"]), datetime.fromisoformat(order["now"])
    if order["action"] == "forget":
        with closing(CalendarWriter(home, now)) as store:
            store.keep_only(order["names"])
        return {}
    source = CalendarSource.from_values(order["source"])
    if order["action"] == "test":
        return await _test(source, order)
    from assistant.calendars.sync import SourceReading  # icalendar is slow to import

    with closing(CalendarWriter(home, now)) as store:
        zone, workspace = ZoneInfo(order["zone"]), Home(home).workspace
        reading = SourceReading(source, order["password"], store, now, zone, workspace, order["max_bytes"])
        if order["action"] == "change":
            await reading.change(CalendarChange(**order["change"]))
            return {}
        try:
            return {"remark": await reading.run()}
        except DavError as error:
            store.save_failure(source.name, reading.made_of, shorten(str(error), _LONGEST_REASON), now)
            raise


async def _test(source: CalendarSource, order: Mapping[str, Any]) -> dict[str, Any]:
    """Describe what is in a source without storing it."""
    if source.kind in ("ics", "vcard"):
        from assistant.calendars.sync import event_context, parse_text, read_text  # icalendar is slow to import

        text, _ = await read_text(
            source, order["password"], Home(Path(order["home"])).workspace, order["max_bytes"], {}
        )
        now, zone = datetime.fromisoformat(order["now"]), ZoneInfo(order["zone"])
        resource, skipped = parse_text(source, text or "", event_context(source, source.name, now, zone))
        count = len({it.uid for it in resource.events}) or len(resource.contacts)
        entries = pluralize(count, "event" if source.kind == "ics" else "contact")
        unreadable = [f"{pluralize(len(skipped), 'entry', 'entries')} unreadable"] if skipped else []
        return {"found": [entries, *unreadable], "entries": count, "skipped": skipped}
    from assistant.calendars.collections import find_collections

    client = DavClient(source, order["password"], order["max_bytes"], timeout_seconds=None)
    try:
        found = await find_collections(client)
    finally:
        await client.aclose()
    return {"found": [it.name for it in found.collections]}


def _limit() -> None:
    for kind, most in ((resource.RLIMIT_AS, _MAX_MEMORY), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):  # macOS has no limit for the address space
            continue


def main() -> int:
    """Do what standard input orders, with little memory, and write the answer as JSON; errors are in it, so that the
    exit code is 0."""
    _limit()
    order = json.load(sys.stdin)
    try:
        answer = asyncio.run(_run(order))
    except DavError as error:
        answer = {"error": shorten(str(error), _LONGEST_REASON), "unsure": error.unsure}
    except StoreError as error:
        answer = {"error": f"What was read cannot be stored: {error}"}
    except AssistantError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": f"It needs more than {_MAX_MEMORY // 2**20} MB of memory to read."}
    # A calendar may cause any error in its library.
    except Exception as error:  # noqa: BLE001
        answer = {"error": f"It is damaged, or of a form that is not known here ({type(error).__name__})."}
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
