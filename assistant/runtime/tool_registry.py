"""The tools of a home: which exist, which are offered to whom, and how they are run.

`run` never raises except for cancellation: failures are returned as text that begins with "Error: " and says what the
model can do. `assistant.core.permissions` decides who may use what, both when tools are offered and when one runs
(I10), so prompts and quoted text have no influence. Tools with a topic are found by search (`find_tools`, `use_tool`),
so that many tools do not lengthen the prompt.
"""

from __future__ import annotations

import asyncio
import difflib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import replace

from assistant.core.errors import AssistantError, OutcomeUnknown, ReplicaUnavailable, StoreError
from assistant.core.logger import get_logger
from assistant.core.messages import Message, ToolCall
from assistant.core.model_api import ToolSpec
from assistant.core.permissions import OWNER_ONLY_PERMISSIONS, Permissions
from assistant.core.ports import Barrier, Tool, ToolContext, ToolEffects
from assistant.core.quoting import FAILURE_PREFIX, quote_text, replace_unsendable
from assistant.core.telemetry import NULL_TRACER, Tracer
from assistant.core.text import parse_json

log = get_logger()

FIND_TOOLS, USE_TOOL = "find_tools", "use_tool"


class ToolRegistry:
    """A registry of tools, fixed except for `replace_deferred`."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        timeout_seconds: float,
        without_timeout_cap: frozenset[str] = frozenset(),
        authority: Permissions = OWNER_ONLY_PERMISSIONS,
        tracer: Tracer = NULL_TRACER,
    ) -> None:
        """`timeout_seconds` caps the timeouts that tools declare, except for `without_timeout_cap`, which limit
        themselves. Raises `ValueError` if two tools share a name."""
        self.barrier: Barrier | None = None
        self._tools: dict[str, Tool] = {}
        self._replaceable: dict[str, list[str]] = {}
        for tool in tools:
            self.add(tool)
        self._timeout_seconds = timeout_seconds
        self._without_timeout_cap = without_timeout_cap
        self._permissions = authority
        self._tracer = tracer

    def add(self, tool: Tool) -> None:
        """Append a tool; the order is part of the cached prompt. Raises `ValueError` if the name is taken."""
        if tool.spec.name in self._tools:
            raise ValueError(f"two tools are called {tool.spec.name}")
        self._tools[tool.spec.name] = tool

    def replace_deferred(self, origin: str, tools: Iterable[Tool]) -> None:
        """Replace all tools of a dynamic origin. They must have topics, so that prompts do not change."""
        for name in self._replaceable.pop(origin, ()):
            del self._tools[name]
        for tool in tools:
            self.add(tool)
            self._replaceable.setdefault(origin, []).append(tool.spec.name)

    @property
    def protected(self) -> frozenset[str]:
        """Names of tools whose results survive compaction."""
        return frozenset(name for name, tool in self._tools.items() if tool.protected)

    @property
    def allowed_roles(self) -> dict[str, frozenset[str]]:
        """The roles that each tool admits."""
        return {name: tool.roles for name, tool in self._tools.items()}

    @property
    def silent_tools(self) -> frozenset[str]:
        """Names of tools whose results never quote stored text."""
        return frozenset(name for name, tool in self._tools.items() if "reads" not in tool.touches)

    def find(self, name: str, role: str) -> Tool | None:
        """Return the tool if it exists and the role may use it."""
        tool = self._tools.get(name)
        return tool if tool is not None and self._may_use(role, tool) else None

    def specs(self, role: str) -> tuple[ToolSpec, ...]:
        """Return the tools in the prompt of a role ("owner", "guest", "room"), in a stable order (prompt cache)."""
        topics = ", ".join(self.topics(role))
        return tuple(
            replace(tool.spec, description=f"{tool.spec.description} Topics: {topics}.")
            if name == FIND_TOOLS
            else tool.spec
            for name, tool in self._tools.items()
            if not tool.topic and self._may_use(role, tool)
        )

    def topics(self, role: str) -> tuple[str, ...]:
        """Return the topics of the tools that are not in the prompt."""
        return tuple(sorted({tool.topic for tool in self.deferred(role)}))

    def deferred(self, role: str) -> list[Tool]:
        """Return the tools a role may use that are not in the prompt."""
        return [
            tool
            for name, tool in self._tools.items()
            if tool.topic and self._permissions.may_use_tool(role, name, tool.roles)
        ]

    def with_direct_calls(self, message: Message) -> Message:
        """Convert calls through `use_tool` to direct calls. Invalid ones are unchanged, and answered with an error."""
        return replace(message, tool_calls=tuple(map(self._direct_call, message.tool_calls)))

    def _direct_call(self, call: ToolCall) -> ToolCall:
        name, arguments = call.arguments.get("name"), call.arguments.get("arguments") or {}
        if call.name != USE_TOOL or not isinstance(name, str) or name not in self._tools or name == USE_TOOL:
            return call
        if isinstance(arguments, str):  # some models send them as a JSON string
            try:
                arguments = parse_json(arguments)
            except ValueError:
                return call
        return replace(call, name=name, arguments=arguments) if isinstance(arguments, Mapping) else call

    def effects(self, name: str) -> ToolEffects:
        """Return a tool's effects. An unknown tool may have existed before a restart; its effects are unknown, so
        "once"."""
        tool = self._tools.get(name)
        return tool.effects if tool else "once"

    def changes(self, call: ToolCall, context: ToolContext) -> bool:
        """Return whether a call does more than read. What an unknown tool does is not known, so it counts."""
        tool = self._tools.get(call.name)
        return tool is None or (tool.effects != "none" and tool.needs_word(call.arguments, context))

    async def run(
        self, call: ToolCall, context: ToolContext, role: str, *, raise_store_errors: bool = False
    ) -> tuple[str, bool]:
        """Return (result text, ok). Raises only for cancellation: an unknown tool, invalid arguments, missing
        permission, failure or timeout is returned as text for the model, with ok False. With `raise_store_errors`, an
        unwritable data folder raises `StoreError`, for callers that retry, and an unknown outcome raises
        `OutcomeUnknown`."""
        tool = self.find(call.name, role)
        if tool is None:
            return FAILURE_PREFIX + self._not_offered(call.name, role), False
        try:
            await self.keep(call.name)
        except ReplicaUnavailable as error:
            return f"{FAILURE_PREFIX}{error} {call.name} was not run.", False
        with self._tracer.span("tool", tool=call.name, role=role) as span:
            text, ok = await self._attempt(tool, call, context, raise_store_errors)
            span.set_attributes(ok=ok)
        return replace_unsendable(text), ok

    async def keep(self, name: str) -> None:
        """Before a tool that must not run twice, and after its result was stored: have another machine know of it, if
        there is one. Raises `ReplicaUnavailable`."""
        if self.barrier is not None and self.effects(name) == "once":
            await self.barrier(0)

    def _may_use(self, role: str, tool: Tool) -> bool:
        if tool.spec.name in (FIND_TOOLS, USE_TOOL):
            return bool(self.deferred(role))
        return self._permissions.may_use_tool(role, tool.spec.name, tool.roles)

    async def _attempt(
        self, tool: Tool, call: ToolCall, context: ToolContext, raise_store_errors: bool
    ) -> tuple[str, bool]:
        seconds = tool.timeout_seconds
        if call.name not in self._without_timeout_cap:
            seconds = min(seconds, self._timeout_seconds)
        try:
            async with asyncio.timeout(seconds) as limit:
                return await tool.run(call.arguments, context), True
        except AssistantError as error:
            if raise_store_errors and isinstance(error, StoreError | OutcomeUnknown):
                raise
            return f"{FAILURE_PREFIX}{error}", False
        except OSError as error:
            if isinstance(error, TimeoutError) and limit.expired():
                failure = f"took longer than {seconds:g} s and was stopped."
            else:
                failure = f"failed: {error.strerror or type(error).__name__}."
        # Tools are an extension point, and the port promises that none can end a turn: a bug is logged with its
        # location (never with the text it processed) and reported to the model.
        except Exception as error:  # noqa: BLE001
            log.error("tool failed", tool=call.name, error=type(error).__name__, at=_place(error))
            failure = f"failed unexpectedly ({type(error).__name__}); this is a fault of the tool."
        if tool.effects != "none":
            failure += " Whether it took effect is not known: look before you repeat it."
        return f"{FAILURE_PREFIX}{call.name} {failure}", False

    def _not_offered(self, name: str, role: str) -> str:
        offered = [spec.name for spec in self.specs(role)]
        available = f"Available: {', '.join(offered)}." if offered else "None is available."
        if name in self._tools:
            return f"{name} may not be used in this conversation. {available}"
        near = difflib.get_close_matches(name, offered, n=2, cutoff=0.5)
        suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
        return f"there is no tool {quote_text(name[:64])}.{suggestion} {available}"


def _place(error: BaseException) -> list[str]:
    return [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-3:]]
