"""Voice messages that are heard, and answers that are spoken."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from assistant.core.jobs import DeliveryTarget
from assistant.core.notices import Notice, NoticeAddress, NoticePlace
from assistant.core.records import InboxItem
from assistant.runtime.spoken import Speaker, SpokenAnswers
from assistant.runtime.voice import Transcriber, VoiceMessages

if TYPE_CHECKING:
    from assistant.wire.turns import Base


def build_voice_messages(base: Base) -> VoiceMessages:
    """Without `voice.url` nobody listens. The SDK is loaded with the first message."""
    voice, stores = base.settings.values.voice, base.stores

    def load() -> Transcriber:
        from assistant.models.speech import SpeechToText, SpeechToTextConfig  # importing the SDK takes a second

        config = SpeechToTextConfig(voice.url, _key(base), voice.model, voice.minute_usd, voice.timeout_seconds)
        return SpeechToText(config, stores.ledger, base.clock)

    return VoiceMessages(
        load if voice.url else None, stores.voice_messages, stores.workspace, partial(_tell, base), base.clock
    )


def build_spoken_answers(base: Base) -> SpokenAnswers:
    """Without `voice.url` nobody speaks. The SDK is loaded with the first answer."""
    voice, stores = base.settings.values.voice, base.stores

    def load() -> Speaker:
        from assistant.models.speech import TextToSpeech, TextToSpeechConfig

        config = TextToSpeechConfig(
            voice.url, _key(base), voice.speech_model, voice.speech_voice, voice.speech_usd, voice.timeout_seconds
        )
        return TextToSpeech(config, stores.ledger, base.clock)

    return SpokenAnswers(load if voice.url else None, voice.speak, stores.outbox, partial(_tell, base), base.clock)


def _key(base: Base) -> str:
    return base.settings.values.voice.key.get_secret_value() or base.settings.openai_key.get_secret_value()


def _tell(base: Base, item: InboxItem, notice: Notice) -> None:
    incoming = item.incoming
    place = DeliveryTarget(incoming.session, incoming.scope, incoming.bridge, incoming.target)
    base.notices.send(NoticeAddress((NoticePlace(place, item.id),)), notice)
