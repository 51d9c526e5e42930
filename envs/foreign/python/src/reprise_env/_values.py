"""Checks of the values that environments and judges return. Each names the value that is wrong."""
import difflib
import inspect
import math

from ._errors import Wrong

# The protocol's bounds.
MAX_TEXT, MAX_ACTION, MAX_REWARD = 64 << 10, 4 << 10, 1e6


def text(value, name, most=MAX_TEXT):
    if not isinstance(value, str):
        raise Wrong(f"{name} is {value!r:.100} of type {type(value).__name__}, want a str")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as e:
        raise Wrong(f"{name} is not valid Unicode: {e}") from None
    if size > most:
        raise Wrong(f"{name} has {size} bytes, want at most {most}")
    if "\x00" in value or "\ufffd" in value:
        raise Wrong(f"{name} is {value!r:.100}, want a text without U+0000 and U+FFFD")
    return str(value)


def number(value, name):
    """A finite number, an int if it is one."""
    try:
        value = int(value) if isinstance(value, int) else float(value)
    except (TypeError, ValueError):
        raise Wrong(f"{name} is {value!r:.100} of type {type(value).__name__}, want a number") from None
    if not math.isfinite(value) or abs(value) > MAX_REWARD:
        raise Wrong(f"{name} is {value}, want a finite number from {-MAX_REWARD:.0f} to {MAX_REWARD:.0f}")
    return value


def numbers(value, name, turns):
    """A list of finite numbers, one for each of so many turns."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__") or not hasattr(value, "__len__") or len(value) != turns:
        raise Wrong(f"{name} is {value!r:.100}, want a list of {turns} numbers, one for each turn")
    return [number(v, f"{name}, turn {k + 1},") for k, v in enumerate(value)]


def integer(value, name, least, most):
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Wrong(f"{name} is {value!r:.100}, want an integer from {least} to {most}")
    return value


def names(value, name):
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise Wrong(f"{name} is {value!r:.100}, want a list of texts")
    return [text(v, f"{name}[{i}]", MAX_ACTION) for i, v in enumerate(value)]


def make(factory, options):
    """An object with a spec's options, which are the keyword arguments of its class."""
    allowed = inspect.signature(factory).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in allowed.values()):
        for option in options:
            if option not in allowed:
                near = difflib.get_close_matches(option, allowed, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise Wrong(f"option {option!r} is unknown, want one of {sorted(allowed)}{hint}")
    return factory(**options)
