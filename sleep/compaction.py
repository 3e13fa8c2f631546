"""Carrying out a plan: what was planned purely is committed in one step that leaves a valid view (I4)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import structlog

from assistant.compactions import Checkpoint, Compaction
from assistant.ports import Conversation
from sleep.plan import Plan

log = structlog.get_logger()


def carry_out(conversation: Conversation, plan: Plan, now: datetime) -> Checkpoint | None:
    """Shorten and compact; the checkpoint where the plan changes anything. Raises `StaleView` when the view has changed
    since the plan was made: nothing took effect, and a new plan can be made."""
    if not plan.changes:
        return None
    checkpoint = conversation.compact(_compaction(plan), now)
    log.warning("context shortened", session=plan.session, plan=plan.describe())
    return checkpoint


def _compaction(plan: Plan) -> Compaction:
    """All that the plan changes, as one."""
    if plan.compaction is not None:
        return replace(plan.compaction, shorten=plan.shorten)
    ids = [message.id or 0 for message in plan.shorten]
    return Compaction(
        session=plan.session,
        prefix_rev=plan.prefix_rev,
        trigger=plan.trigger,
        tier=plan.tier,
        from_message_id=ids[0],
        to_message_id=ids[-1],
        messages_compressed=len(ids),
        prefix=(),
        summary="",
        original_tokens=plan.before.prompt_tokens,
        compressed_tokens=plan.after.prompt_tokens,
        shorten=plan.shorten,
    )
