"""Every command of docs/health.md does what the page says, beside a running assistant; every name in it is there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from assistant.core.telemetry import Metrics
from assistant.health.problems import LOW_DISK_BYTES
from assistant.web.metrics import render_metrics
from tests.support.command_line import ROOT, command_environment, run_daemon, run_in_process
from tests.unit.test_metrics import MetricsStatus

PAGE = (ROOT / "docs" / "health.md").read_text(encoding="utf-8")


def shown() -> list[str]:
    return [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def run(line: str, home: Path) -> str:
    if line.startswith("curl "):
        done = subprocess.run(
            ["sh", "-c", line], capture_output=True, text=True, env=command_environment(home), check=True
        )
        return done.stdout
    done_here = run_in_process(home, *shlex.split(line)[1:])
    assert done_here.returncode == 0, (line, done_here.out, done_here.err)
    return done_here.out


def test_every_command_of_the_page_works(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with run_daemon(home) as running:
        assert run_in_process(home, "chat", "-m", "hello").returncode == 0
        printed = {line: run(line, home) for line in shown()}
    assert len(printed) == 10
    (alive,) = (out for line, out in printed.items() if line.endswith("/healthz"))
    assert alive == '{"alive":true,"problems":[]}'
    assert "Green" in printed["assistant status"] and "All is well." in printed["assistant doctor"]
    assert f"process {running.process.pid} runs the assistant" in printed["assistant doctor"]
    report = json.loads(printed["assistant status --json"])
    assert report["daemon"]["uptime_seconds"] >= 0 and report["sessions"][0]["pressure"] > 0
    (metrics,) = (out for line, out in printed.items() if line.endswith("/metrics"))
    values = {one.name: one.value for family in text_string_to_metric_families(metrics) for one in family.samples}
    assert values["nocturne_turns_total"] == 1 and values["nocturne_open_descriptors"] > 3


def test_every_metric_that_the_page_names_is_exposed() -> None:
    exposed = set(re.findall(r"^# TYPE (\w+)", render_metrics(MetricsStatus(Metrics())).decode(), re.MULTILINE))
    named = set(re.findall(r"\bnocturne_\w+", PAGE))
    assert len(named) > 15
    assert named <= exposed


def test_the_bound_of_the_page_is_the_one_that_holds() -> None:
    assert f"red below {LOW_DISK_BYTES // 1024**2} MB" in PAGE
