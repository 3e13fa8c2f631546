"""Property tests try the same examples in every run of CI, so that a change is judged and not luck; run by hand they
look further each time."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
