"""The keys of the settings, one class per section: their types and ranges, descriptions of what is allowed, and what
cannot be combined.

The defaults are in `config/default.toml`, with explanations. A field's `description`, if any, says what is allowed
better than its type and range would.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from msgspec import Meta

from assistant.core.checked_tables import CheckedTable, TableField, fields_of, whole
from assistant.core.permissions import Permissions, RoleGrant
from assistant.core.secret_text import SecretStr
from assistant.settings.calendar_sources import CalendarSettings
from assistant.settings.mcp import McpSettings
from assistant.settings.networks import (
    DiscordSettings,
    MailAccountSettings,
    MailSettings,
    MatrixSettings,
    SlackSettings,
    TelegramSettings,
)
from assistant.settings.outside_sections import NotifySettings, ReplicaSettings, VoiceSettings
from assistant.settings.validators import (
    AnyPath,
    ArchiveUrl,
    ContextSize,
    FolderList,
    HoursOfDay,
    ModelChoice,
    NameList,
    ProviderChain,
    Share,
    TimeOfDay,
    WebAddress,
    ZoneName,
    is_loopback,
)

ResetPolicyName = Literal["manual", "daily", "idle"]

# Used if `model.name` is empty.
DEFAULT_MODEL_NAMES = {"anthropic": "claude-sonnet-5-5"}


class HomeSettings(CheckedTable, frozen=True):
    timezone: ZoneName


class ModelSettings(CheckedTable, frozen=True):
    provider: Literal["auto", "anthropic", "openai", "offline"]
    name: str
    base_url: WebAddress
    api_key: SecretStr
    fallback: ProviderChain
    max_output_tokens: Annotated[int, Meta(ge=256, le=128_000)]
    thinking: Literal["off", "adaptive"]
    stall_seconds: Annotated[float, Meta(ge=1, le=600)]
    retries: Annotated[int, Meta(ge=0, le=10)]
    max_retry_wait_seconds: Annotated[float, Meta(ge=0, le=600)]


class ContextSettings(CheckedTable, frozen=True):
    max_context_tokens: ContextSize
    reserve_tokens: Annotated[int, Meta(ge=0, le=100_000)]
    emergency_threshold: Annotated[float, Meta(ge=0.60, le=0.95)]
    target: Annotated[float, Meta(ge=0.10, le=0.50)]
    preserve_messages: Annotated[int, Meta(ge=1, le=1000)]
    preserve_share: Annotated[float, Meta(ge=0.0, le=0.5)]
    max_request_bytes: Annotated[int, Meta(ge=0, le=1_000_000_000)]
    max_images: Annotated[int, Meta(ge=0, le=10_000)]
    cache_lifetime: Literal["auto", "5m", "1h"]


class CompactionSettings(CheckedTable, frozen=True):
    auto: bool
    economy: Literal["off", "balanced", "thrifty"]
    strategy: Literal["hybrid", "summary", "mask", "sliding_window", "deletion", "selective"]
    sleep_threshold: Annotated[float, Meta(ge=0.50, le=0.70)]
    max_messages: Annotated[int, Meta(ge=0, le=1_000_000)]
    user_messages_max_tokens: Annotated[int, Meta(ge=0, le=200_000)]
    protected_tools: Annotated[NameList, Meta(description='a list of tool names, as in ["manage_todo_list"]')]
    pins_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]
    summary_model: ModelChoice
    summary_max_tokens: Annotated[int, Meta(ge=200, le=20_000)]
    summary_seconds: Annotated[float, Meta(ge=1, le=3600)]
    restored_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]
    max_checkpoints: Annotated[int, Meta(ge=2, le=20)]
    undo_kept: Annotated[int, Meta(ge=1, le=1000)]
    breaker_failures: Annotated[int, Meta(ge=1, le=100)]
    breaker_minutes: Annotated[float, Meta(ge=0, le=10_080)]
    recall_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]


class SleepSettings(CheckedTable, frozen=True):
    at: Annotated[TimeOfDay, Meta(description='a time of day as in "03:30", or ""')]
    nap_minutes: Annotated[float, Meta(ge=0, le=1440)]
    max_usd: Annotated[float, Meta(ge=0, le=1_000_000)]
    imported_messages: Annotated[int, Meta(ge=0, le=1_000_000)]


class MemorySettings(CheckedTable, frozen=True):
    store: Literal["local", "pgvector", "qdrant"]
    store_url: Annotated[str, Meta(max_length=2_000)]
    embedder: Literal["wordllama", "fastembed", "openai", "ollama"]
    embedder_model: Annotated[str, Meta(max_length=200)]
    embedder_url: Annotated[str, Meta(pattern=whole(r"(https?://.*)?"), description='an address, or ""')]
    embedder_key: SecretStr
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600)]
    file_max_tokens: Annotated[int, Meta(ge=100, le=20_000)]
    day_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]
    profiles_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]
    recall_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]


class DelegationSettings(CheckedTable, frozen=True):
    max_helpers: Annotated[int, Meta(ge=1, le=16)]
    max_steps: Annotated[int, Meta(ge=1, le=100)]
    max_tokens: Annotated[int, Meta(ge=1000, le=2_000_000)]
    max_seconds: Annotated[float, Meta(ge=5, le=3600)]


class ToolSettings(CheckedTable, frozen=True):
    output_policy: Literal["tokens", "bytes", "none"]
    output_max_tokens: Annotated[int, Meta(ge=100, le=100_000)]
    output_max_bytes: Annotated[int, Meta(ge=400, le=10_000_000)]
    output_serialization_buffer: Annotated[float, Meta(ge=1.0, le=2.0)]
    output_split: Share
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600)]
    approval_hours: Annotated[float, Meta(ge=1, le=720)]
    approval_days: Annotated[int, Meta(ge=1, le=3650)]
    fetch_pages: bool
    fetch_private_hosts: Annotated[
        NameList, Meta(description='a list of names or addresses as in ["nas.local", "192.168.1.4"]')
    ]


class TurnSettings(CheckedTable, frozen=True):
    max_steps: Annotated[int, Meta(ge=1, le=200)]
    max_seconds: Annotated[float, Meta(ge=5, le=86_400)]
    on_message: Literal["wait", "steer"]
    overflow_retries: Annotated[int, Meta(ge=0, le=10)]


class BudgetSettings(CheckedTable, frozen=True):
    daily_usd: Annotated[float, Meta(ge=0, le=1_000_000)]
    monthly_usd: Annotated[float, Meta(ge=0, le=1_000_000)]
    daily_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
    monthly_tokens: Annotated[int, Meta(ge=0, le=1_000_000_000_000)]
    background_share: Share
    runaway_calls: Annotated[int, Meta(ge=2, le=1000)]


class PeopleSettings(CheckedTable, frozen=True):
    unknown: Literal["pair", "tell", "ignore"]
    pairing_minutes: Annotated[float, Meta(ge=1, le=1440)]
    pairing_pending: Annotated[int, Meta(ge=1, le=100)]
    pairing_tries: Annotated[int, Meta(ge=1, le=100)]


class RoleSettings(CheckedTable, frozen=True):
    """What one role may do."""

    tools: Annotated[NameList, Meta(description="a list of tool names")]
    commands: Annotated[NameList, Meta(description='a list of commands without the slash, as in ["help"]')]
    memory: bool
    budget_share: Share

    def grant(self) -> RoleGrant:
        return RoleGrant(frozenset(self.tools), frozenset(self.commands), self.memory, self.budget_share)


class RoomSettings(RoleSettings, frozen=True):
    answers: Literal["addressed", "everything"]


class ResetSettings(CheckedTable, frozen=True):
    main: ResetPolicyName
    thread: ResetPolicyName
    guest: ResetPolicyName
    room: ResetPolicyName
    at: Annotated[TimeOfDay, Meta(min_length=1, description='a time of day as in "04:00"')]
    idle_minutes: Annotated[float, Meta(ge=1, le=525_600)]
    learn_seconds: Annotated[float, Meta(ge=0, le=3600)]
    handover_max_tokens: Annotated[int, Meta(ge=0, le=20_000)]


class ArchiveSettings(CheckedTable, frozen=True):
    url: ArchiveUrl
    key: SecretStr
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600)]


class AgendaSettings(CheckedTable, frozen=True):
    quiet: HoursOfDay
    late_seconds: Annotated[float, Meta(ge=1, le=86_400)]
    catch_up: Literal["once", "all", "skip"]
    max_pending: Annotated[int, Meta(ge=1, le=1_000_000)]


class BriefSettings(CheckedTable, frozen=True):
    morning: Annotated[TimeOfDay, Meta(description='a time of day as in "07:30", or ""')]
    evening: Annotated[TimeOfDay, Meta(description='a time of day as in "20:00", or ""')]


class BackupSettings(CheckedTable, frozen=True):
    at: Annotated[TimeOfDay, Meta(description='a time of day as in "05:00", or ""')]
    folder: AnyPath
    keep: Annotated[int, Meta(ge=1, le=1000)]
    workspace: bool


class WebSettings(CheckedTable, frozen=True):
    port: Annotated[int, Meta(ge=0, le=65_535)]
    host: Annotated[
        str,
        Meta(pattern=whole(r"[^\s/@]+"), max_length=255, description='an address of this machine as in "127.0.0.1"'),
    ]
    token: SecretStr
    hosts: Annotated[NameList, Meta(description='a list of names as in ["nocturne.example.org"]')]
    behind_proxy: bool
    certificate: AnyPath
    certificate_key: AnyPath


class WebSearchSettings(CheckedTable, frozen=True):
    provider: Literal["", "searxng", "brave", "tavily"]
    url: str
    key: SecretStr


class RunCommandSettings(CheckedTable, frozen=True):
    enabled: bool
    sandbox: Literal["bubblewrap", "none"]
    allow: Annotated[NameList, Meta(description='a list of commands as in ["git status", "ls *"]')]
    timeout_seconds: Annotated[float, Meta(ge=1, le=3600)]
    max_memory_mb: Annotated[int, Meta(ge=16, le=1_000_000)]
    max_output_kb: Annotated[int, Meta(ge=1, le=1_000)]
    max_processes: Annotated[int, Meta(ge=1, le=10_000)]


class TelemetrySettings(CheckedTable, frozen=True):
    traces: Literal["off", "otlp"]
    endpoint: WebAddress


class DaemonSettings(CheckedTable, frozen=True):
    drain_seconds: Annotated[float, Meta(ge=0, le=600)]
    watch_seconds: Annotated[float, Meta(ge=1, le=30)]
    watchdog_seconds: Annotated[float, Meta(ge=30, le=3600)]


class LogSettings(CheckedTable, frozen=True):
    level: Literal["debug", "info", "warning", "error"]


class FileSettings(CheckedTable, frozen=True):
    folders: Annotated[
        FolderList, Meta(description='a list of whole paths with different names, as in ["~/Documents"]')
    ]


class SettingsValues(CheckedTable, frozen=True):
    """All sections of the settings files."""

    home: HomeSettings
    model: ModelSettings
    context: ContextSettings
    compaction: CompactionSettings
    sleep: SleepSettings
    memory: MemorySettings
    tools: ToolSettings
    files: FileSettings
    delegation: DelegationSettings
    turn: TurnSettings
    budget: BudgetSettings
    people: PeopleSettings
    guest: RoleSettings
    room: RoomSettings
    reset: ResetSettings
    archive: ArchiveSettings
    agenda: AgendaSettings
    brief: BriefSettings
    notify: NotifySettings
    voice: VoiceSettings
    calendar: CalendarSettings
    backup: BackupSettings
    replica: ReplicaSettings
    telegram: TelegramSettings
    matrix: MatrixSettings
    discord: DiscordSettings
    slack: SlackSettings
    mail: MailSettings
    web: WebSettings
    web_search: WebSearchSettings
    mcp: McpSettings
    run_command: RunCommandSettings
    mail_account: MailAccountSettings
    telemetry: TelemetrySettings
    daemon: DaemonSettings
    log: LogSettings

    def value_of(self, key: str) -> Any:
        """Return the value of a dotted key, such as "context.target"."""
        section, _, name = key.partition(".")
        return getattr(getattr(self, section), name)

    def permissions(self) -> Permissions:
        """Return what guests and rooms may do."""
        return Permissions({"guest": self.guest.grant(), "room": self.room.grant()})


SETTING_FIELDS: Mapping[str, TableField] = {
    f"{section}.{key}": field
    for section, outer in fields_of(SettingsValues).items()
    for key, field in fields_of(outer.kind).items()
}


def fields_of_entry(field: TableField) -> Mapping[str, TableField]:
    """Return what an entry of a setting that is a list of tables, or a table of tables, may have; else nothing."""
    for kind in get_args(field.kind):
        if isinstance(kind, type) and issubclass(kind, CheckedTable):
            return fields_of(kind)
    return {}


def is_text_setting(field: TableField) -> bool:
    """Return whether the setting is text, which an environment variable gives without quotes."""
    return field.kind in (str, SecretStr) or get_origin(field.kind) is Literal


def describe_allowed(field: TableField) -> str:
    """Describe what the setting may be: "a number from 0.10 to 0.50"."""
    if field.description:
        return field.description
    if get_origin(field.kind) is Literal:
        *first, last = (f'"{choice}"' for choice in get_args(field.kind))
        return f"{', '.join(first)} or {last}"
    if field.kind is bool:
        return "true or false"
    if (origin := get_origin(field.kind)) in (tuple, Mapping):
        return f"a {'table' if origin is Mapping else 'list'} of texts in quotes"
    if field.kind not in (int, float):
        return "text in quotes"
    kind = "a whole number" if field.kind is int else "a number"
    low, high = allowed_bounds(field)
    return f"{kind} from {low} to {high}"


def allowed_bounds(field: TableField) -> tuple[str, str]:
    """Return the smallest and the largest allowed number as text; "" if unbounded."""
    low, high = field.bounds
    share = isinstance(high, float) and high <= 1
    return _number(low, share), _number(high, share)


def _number(bound: Any, share: bool) -> str:
    if bound is None:
        return ""
    return f"{bound:.2f}" if share else str(int(bound))


MIN_TOKEN_LENGTH = 16
"""What the web API starts with at all."""
WEB_TOKEN_KEY = "web.token"
WEB_PORT_KEY = "web.port"
STRONG_TOKEN_LENGTH = 43
"""Characters of a token that is made here: 256 bits, in base64."""
_FEWEST_DIFFERENT = 10


def is_weak_token(token: str) -> bool:
    """Return whether a token is weaker than generated ones: shorter, or of a few repeated characters."""
    return len(token) < STRONG_TOKEN_LENGTH or len(set(token)) < _FEWEST_DIFFERENT


def web_exposure_problems(web: WebSettings, origins: Mapping[str, str]) -> Iterator[str]:
    """Return why the web API cannot listen as configured (F42), one line each; empty if it is off."""
    if not web.port:
        return
    if not (is_loopback(web.host) or web.behind_proxy or web.certificate):
        yield (
            f"{origins['web.host']}: `web.host` is {web.host!r}, which can be reached from beyond this machine without "
            "encryption; set web.certificate and web.certificate_key, or web.behind_proxy = true where a proxy "
            'encrypts, or "127.0.0.1".'
        )
    if bool(web.certificate) != bool(web.certificate_key):
        given, missing = ("certificate", "certificate_key") if web.certificate else ("certificate_key", "certificate")
        yield f"{origins[f'web.{given}']}: `web.{given}` is set and web.{missing} is not; set both."
    if 0 < len(web.token.get_secret_value()) < MIN_TOKEN_LENGTH:
        yield (
            f"{origins['web.token']}: `web.token` has fewer than {MIN_TOKEN_LENGTH} characters; "
            "`assistant config secret set web.token` takes a longer one."
        )
