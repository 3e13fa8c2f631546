"""Numbers of a whole fleet for Prometheus, from its tables: no home is asked, so none is woken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from assistant.fleet.tables import FleetHome, FleetHostRow, FleetTables

_PREFIX = "nocturne_fleet_"
_MEGABYTE = 1_000_000


async def render_fleet_metrics(tables: FleetTables) -> bytes:
    """Raises `ReplicaUnavailable`."""
    return generate_latest(_FleetCollector(await tables.list_homes(), await tables.list_hosts()))


class _FleetCollector(Collector):
    def __init__(self, homes: list[FleetHome], hosts: list[FleetHostRow]) -> None:
        self._homes, self._hosts = homes, hosts

    def collect(self) -> Iterator[Metric]:
        states = dict.fromkeys(("runs", "sleeps", "stopped", "lost"), 0)
        for home in self._homes:
            states[_state(home)] += 1
        homes, hosts = self._homes, self._hosts
        yield _gauge("homes", "Homes by state: stopped by a quota; lost without a host.", "state", states.items())
        yield _gauge(
            "host_up", "Whether a host was seen within a lease.", "host", ((h.host, h.is_alive) for h in hosts)
        )
        yield _gauge("host_homes", "Homes that a host has.", "host", ((h.host, h.homes) for h in hosts))
        yield _gauge(
            "home_epoch",
            "How often a host took a home, be it to ask its networks.",
            "home",
            ((h.home, h.epoch) for h in homes),
        )
        running = [home for home in homes if home.is_held]
        memory = ((home.home, home.memory_bytes) for home in running)
        yield _gauge("home_memory_bytes", "Memory of a home's processes, of what is shared its part.", "home", memory)
        disk = ((home.home, home.disk_bytes) for home in homes)
        yield _gauge("home_disk_bytes", "Size of a home's folder, when it ran last.", "home", disk)
        limits = ((home.home, home.quota.memory_mb * _MEGABYTE) for home in homes if home.quota.memory_mb)
        yield _gauge("home_memory_limit_bytes", "Most memory of each process; no line for none.", "home", limits)
        limits = ((home.home, home.quota.disk_mb * _MEGABYTE) for home in homes if home.quota.disk_mb)
        yield _gauge("home_disk_limit_bytes", "Most that a folder may have; no line for none.", "home", limits)


def _state(home: FleetHome) -> str:
    if home.is_full:
        return "stopped"
    if home.is_held:
        return "runs"
    return "lost" if home.asleep_until is None else "sleeps"


def _gauge(name: str, description: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    gauge = GaugeMetricFamily(f"{_PREFIX}{name}", description, labels=(label,))
    for word, value in values:
        gauge.add_metric((word,), value)
    return gauge
