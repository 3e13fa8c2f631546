"""`make economy`: what a year of a person's life costs, without a call. `make economy ARGS=quality` lives a life with
the real app: what is remembered of it, by how the context is kept small (`tests/economy/quality.py`)."""

from __future__ import annotations

import sys

from tests.economy import quality, year

if __name__ == "__main__":
    if sys.argv[1:2] == ["quality"]:
        sys.exit(quality.main(sys.argv[2:]))
    year.main()
