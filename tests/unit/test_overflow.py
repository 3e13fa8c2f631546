"""Which errors say that a request is too large: bodies as the providers send them."""

from __future__ import annotations

from typing import Any

import pytest

from assistant.models.errors import is_context_length_error, is_too_large


def openai_body(message: str, code: str | None = None, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": "messages", "code": code}}


def anthropic_body(message: str, kind: str = "invalid_request_error") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


OVERFLOWS: dict[str, Any] = {
    "anthropic": anthropic_body("prompt is too long: 213462 tokens > 200000 maximum"),
    "anthropic, prompt and answer": anthropic_body(
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again"
    ),
    "anthropic, stop reason": "model_context_window_exceeded",
    "anthropic on bedrock": {
        "message": "The model returned the following errors: prompt is too long: 903884 tokens > 200000 maximum"
    },
    "bedrock": {"__type": "ValidationException", "message": "Input is too long for requested model."},
    "openai, code": openai_body("Please shorten it.", "context_length_exceeded"),
    "openai, chat": openai_body(
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 8545 tokens. Please "
        "reduce the length of the messages."
    ),
    "openai, window": openai_body("Your input exceeds the context window of this model. Please adjust your input."),
    "gemini": [
        {
            "error": {
                "code": 400,
                "message": "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
                "status": "INVALID_ARGUMENT",
            }
        }
    ],
    "mistral": {
        "object": "error",
        "message": "Prompt contains 40213 tokens and 0 draft tokens, too large for model with 32768 maximum context "
        "length",
        "type": "invalid_request_prompt",
        "code": "3051",
    },
    "ollama": {"error": "the input length exceeds the context length"},
    "ollama, chat": openai_body("prompt too long; exceeded max context length by 1200 tokens", None, "api_error"),
    "llama.cpp, type": {
        "error": {
            "code": 400,
            "message": "the request exceeds the available context size. try increasing the context size or enable "
            "context shift",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 14429,
            "n_ctx": 8192,
        }
    },
    "llama.cpp, wording": "request (9219 tokens) exceeds the available context size (8192 tokens), try increasing it",
    "vllm": {
        "object": "error",
        "message": "This model's maximum context length is 4096 tokens. However, you requested 5104 tokens (4604 in "
        "the messages, 500 in the completion). Please reduce the length of the messages or completion.",
        "type": "BadRequestError",
        "code": 400,
    },
    "vllm, the prompt fills the window": {
        "message": "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length "
        "is 4096 tokens and your request has 3104 input tokens (2000 > 4096 - 3104).",
        "code": 400,
    },
    "vllm, engine": "The decoder prompt (length 25938) is longer than the maximum model length of 4096.",
    "vllm, older engine": "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    "openrouter": openai_body(
        "This endpoint's maximum context length is 32768 tokens. However, you requested about 42832 tokens (42832 of "
        "text input)."
    ),
    "xai": "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "groq": openai_body("Please reduce the length of the messages or completion.", "context_length_exceeded"),
    "github models": openai_body(
        "Request body too large for gpt-4o model. Max size: 8000 tokens.", "tokens_limit_reached"
    ),
    "dashscope": openai_body("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]"),
    "moonshot": openai_body("Invalid request: Your request exceeded model token limit: 8192"),
    "lm studio": "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with "
    "context length of only 4096 tokens, which is not enough.",
}

OTHERS: dict[str, Any] = {
    "rate limit in tokens": anthropic_body(
        "This request would exceed your organization's rate limit of 30,000 input tokens per minute", "rate_limit_error"
    ),
    "openai tokens per minute": openai_body(
        "Request too large for gpt-4 in organization org-1 on tokens per min (TPM): Limit 10000, Requested 12341. The "
        "input or output tokens must be reduced in order to run successfully.",
        "rate_limit_exceeded",
        "tokens",
    ),
    "rate limit with advice, in mid-stream": {
        "message": "Rate limit reached for gpt-oss on tokens per minute (TPM): Limit 8000, Used 7900, Requested 3000. "
        "Please reduce the length of the messages or completion, or try again in 21s."
    },
    "bedrock throttling": {"message": "Too many tokens, please wait before trying again."},
    "gemini quota": {
        "error": {
            "code": 429,
            "message": "You exceeded your current quota: generate_content_free_tier_input_token_count, limit: 250000",
            "status": "RESOURCE_EXHAUSTED",
        }
    },
    "anthropic, cap on the answer": anthropic_body(
        "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5-5"
    ),
    "openai, cap on the answer": openai_body(
        "max_tokens is too large: 90000. This model supports at most 16384 completion tokens, whereas you provided "
        "90000.",
        "invalid_value",
    ),
    "vllm, the answer does not fit": {
        "message": "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length "
        "is 4096 tokens and your request has 104 input tokens (4000 > 4096 - 104).",
        "code": 400,
    },
    "overload": anthropic_body("Overloaded", "overloaded_error"),
    "key": openai_body("Incorrect API key provided", "invalid_api_key"),
    "pairs": anthropic_body("messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: t1"),
    "an ordinary end": "end_turn",
    "nothing": None,
}

TOO_LARGE: dict[str, Any] = {
    "anthropic, bytes": anthropic_body("Request exceeds the maximum size", "request_too_large"),
    "anthropic, images": anthropic_body("Too much media: 0 document pages + 101 images > 100"),
    "anthropic, one image": anthropic_body(
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"
    ),
    "openai, images": openai_body("Too many images in request. Max is 50."),
    "vllm, images": {"message": "At most 1 image(s) may be provided in one prompt.", "code": 400},
    "a proxy": {"message": "413 Request Entity Too Large"},
    "by its status alone": {"status_code": 413, "message": "no"},
}


@pytest.mark.parametrize("error", OVERFLOWS.values(), ids=OVERFLOWS.keys())
def test_a_prompt_too_long_is_recognised_in_every_provider_s_words(error: Any) -> None:
    assert is_context_length_error(error)
    assert is_too_large(error)


@pytest.mark.parametrize("error", OTHERS.values(), ids=OTHERS.keys())
def test_other_errors_are_no_overflow(error: Any) -> None:
    assert not is_context_length_error(error)
    assert not is_too_large(error)


@pytest.mark.parametrize("error", TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_f17_too_many_bytes_or_images_are_too_large_but_no_matter_of_tokens(error: Any) -> None:
    assert is_too_large(error)
    assert not is_context_length_error(error)


def test_a_rate_limit_is_never_an_overflow_whatever_it_says() -> None:
    assert not is_context_length_error({"status_code": 429, "message": "prompt is too long"})


def test_an_exception_is_read_with_its_body() -> None:
    class ProviderError(Exception):
        status_code = 400
        body = OVERFLOWS["openai, code"]

    assert is_context_length_error(ProviderError("Error code: 400"))
