"""Carrying out a plan: what was planned purely is committed in steps that each leave a valid view (I4)."""

from __future__ import annotations

from datetime import datetime

import structlog

from assistant.compactions import Checkpoint
from assistant.ports import Conversation
from sleep.plan import Plan

log = structlog.get_logger()


def carry_out(conversation: Conversation, plan: Plan, now: datetime) -> Checkpoint | None:
    """Shorten, then compact; the checkpoint if there is one. Raises `StaleView` when the view has changed since the
    plan was made: nothing of the step that failed took effect, and a new plan can be made."""
    revision = plan.prefix_rev
    if plan.shorten:
        revision = conversation.shorten(plan.session, revision, plan.shorten, now).prefix_rev
    compaction = plan.compaction_at(revision)
    checkpoint = conversation.compact(compaction, now) if compaction else None
    if plan.changes:
        log.warning("context shortened", session=plan.session, plan=plan.describe())
    return checkpoint
