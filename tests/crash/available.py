"""Whether crashes can be tried here. Where tests count (CI is set) a missing strace is a failure, not a skip."""

from __future__ import annotations

import os
import shutil
import warnings

import pytest

MISSING = "strace is not installed, so no crash was tried: apt install strace"
HAS_STRACE = shutil.which("strace") is not None

if not HAS_STRACE:
    warnings.warn(MISSING, stacklevel=1)

needs_strace = pytest.mark.skipif(not HAS_STRACE and not os.environ.get("CI"), reason=MISSING)
