"""An agent with the openai client: plays against the server of openai_test.go, and checks what it gets.

The worker there answers by the last message: "say X" with X, "add" with two calls of add, the result of a tool
with "sum X", "fail" with a refusal, "slow X" with X after a while, "once X" with X, the first time after a while.
"""

import asyncio
import json
import os

import openai

client = openai.OpenAI(max_retries=0)
MODEL = client.models.list().data[0].id
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "adds",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
}


def ask(text, on=client, **settings):
    return on.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}], **settings)


def refused(kind, call):
    try:
        call()
    except kind as e:
        return e
    raise AssertionError(f"no {kind.__name__}")


def plain():
    got = ask("say hé", temperature=1, max_tokens=5, stop=["\n"], user="u")
    assert got.id.startswith("chatcmpl-") and got.object == "chat.completion" and got.model == MODEL, got
    assert got.choices[0].message.content == "hé" and got.choices[0].finish_reason == "stop", got
    assert got.choices[0].message.tool_calls is None and got.choices[0].logprobs is None, got
    assert (got.usage.prompt_tokens, got.usage.completion_tokens, got.usage.total_tokens) == (3, 2, 5), got
    parts = [{"type": "text", "text": "say "}, {"type": "text", "text": "parts"}]
    assert ask(parts).choices[0].message.content == "parts"


def logprobs():
    tokens = ask("say hé", logprobs=True).choices[0].logprobs.content
    assert bytes(b for t in tokens for b in t.bytes).decode() == "hé", tokens
    assert [t.logprob for t in tokens] == [-0.5] * len(tokens) and tokens[0].top_logprobs == [], tokens


def stream():
    text, finish, usage, tokens = "", None, None, []
    for chunk in ask("say " + "hé " * 3000, stream=True, logprobs=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            tokens += choice.logprobs.content if choice.logprobs else []
    assert (text, finish, usage.total_tokens) == ("hé " * 3000, "stop", 5), (text[:50], finish, usage)
    assert bytes(b for t in tokens for b in t.bytes).decode() == text
    # The client's own way to put a stream together.
    with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": "add"}], tools=[ADD]) as s:
        got = s.get_final_completion()
    calls = got.choices[0].message.tool_calls
    assert [json.loads(c.function.arguments) for c in calls] == [{"a": 1}, {"a": 2}], got
    assert got.choices[0].finish_reason == "tool_calls", got


def tools():
    for form in (lambda m: m, lambda m: m.model_dump(), lambda m: m.model_dump(exclude_none=True)):
        messages = [{"role": "system", "content": "You add."}, {"role": "user", "content": "add"}]
        got = client.chat.completions.create(
            model=MODEL, messages=messages, tools=[ADD], tool_choice="auto", parallel_tool_calls=True
        )
        reply = got.choices[0].message
        assert got.choices[0].finish_reason == "tool_calls" and reply.content is None, got
        assert [c.function.name for c in reply.tool_calls] == ["add", "add"], reply
        messages.append(form(reply))
        for call in reply.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": call.function.arguments})
        got = client.chat.completions.create(model=MODEL, messages=messages, tools=[ADD])
        assert got.choices[0].message.content == 'sum {"a":2}', got
        messages.append(form(got.choices[0].message))
        messages.append({"role": "user", "content": "say bye"})
        assert client.chat.completions.create(model=MODEL, messages=messages).choices[0].message.content == "bye"


def errors():
    for field, value in {
        "seed": 1, "top_p": 1, "n": 2, "temperature": 1.5, "max_completion_tokens": 10**6, "tool_choice": "required",
        "response_format": {"type": "json_object"}, "reasoning_effort": "low", "frequency_penalty": 0, "top_logprobs": 3,
    }.items():
        more = {"tools": [ADD]} if field == "tool_choice" else {}
        e = refused(openai.BadRequestError, lambda: ask("say x", **{field: value}, **more))
        assert e.param == field and field in e.message and e.code and e.type == "invalid_request_error", (field, e)
    e = refused(openai.BadRequestError, lambda: ask("say x", extra_body={"best_of": 1}))
    assert e.param == "best_of", e
    e = refused(openai.BadRequestError, lambda: ask("fail"))
    assert (e.code, e.param) == ("context_length_exceeded", "messages"), e
    e = refused(openai.BadRequestError, lambda: ask("fail", stream=True))
    assert e.code == "context_length_exceeded", e
    e = refused(openai.AuthenticationError, lambda: ask("say x", on=client.with_options(api_key="wrong")))
    assert e.code == "invalid_api_key", e
    refused(openai.NotFoundError, lambda: client.embeddings.create(model=MODEL, input="x"))
    e = refused(openai.APIStatusError, lambda: ask("say " + "x" * (4 << 20)))
    assert e.status_code == 413, e


def patience():
    """Signs of life: an answer comes later than the client would wait for a byte."""
    hasty = client.with_options(timeout=0.4)
    assert ask("slow a", on=hasty).choices[0].message.content == "a"
    assert "".join(c.choices[0].delta.content or "" for c in ask("slow b", on=hasty, stream=True)) == "b"


def retries():
    """A client that gives up and asks again gets the answer of its first attempt."""
    deaf = client.with_options(timeout=0.05, max_retries=20)
    assert ask("once c", on=deaf).choices[0].message.content == "c 0"
    assert ask("once c").choices[0].message.content == "c 1"


async def parallel():
    async with openai.AsyncOpenAI(max_retries=0) as many:
        got = await asyncio.gather(*(ask("say x", on=many) for _ in range(16)), *(ask(f"say {i}", on=many) for i in range(16)))
    assert [g.choices[0].message.content for g in got] == ["x"] * 16 + [str(i) for i in range(16)], got
    assert len({g.id for g in got}) == 32, "each call is one of its own"


plain()
logprobs()
stream()
tools()
errors()
patience()
retries()
asyncio.run(parallel())
client.close()
print("played with openai", openai.__version__, "base", os.environ["OPENAI_BASE_URL"].count("/v1"))
