"""The choice of a model for as long as the daemon runs (`/model`)."""

from __future__ import annotations

from assistant.core.ports import Model
from assistant.models.factory import ModelDeps, build_model_chain, build_summary_model
from assistant.runtime.current_models import CurrentModels
from assistant.runtime.running_turns import RunningTurns
from assistant.runtime.token_estimates import TokenEstimates
from assistant.settings.settings import Settings


class ModelChoice:
    def __init__(
        self,
        settings: Settings,
        deps: ModelDeps,
        models: CurrentModels,
        estimates: TokenEstimates,
        running: RunningTurns,
    ) -> None:
        self._settings = settings
        self._deps = deps
        self._models = models
        self._estimates = estimates
        self._running = running

    def describe(self) -> str:
        """The model that answers, and how its tokens are counted."""
        model = self._models.answering
        return f"{model_label(model)}; tokens: {self._estimates.describe(model.name)}"

    def choose(self, choice: str) -> str:
        """Have `provider` or `provider:name` answer until the daemon is restarted. Raises `UsageError`."""
        settings = self._settings.with_model(choice)
        self._models.replace(build_model_chain(settings, self._deps), build_summary_model(settings, self._deps))
        since = "From the next message on" if self._running.any_running else "From now on"
        return f"{since}: {self.describe()}"


def model_label(model: Model) -> str:
    """The model that answers, for a person."""
    return f"{model.provider} {model.name}" if model.provider != model.name else model.name
