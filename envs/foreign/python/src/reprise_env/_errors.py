"""What goes wrong, and how it is told."""
import functools
import inspect
import os
import sys
import traceback

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

# The most characters of a message and of a traceback's end.
_MESSAGE, _TRACEBACK = 1000, 4000


class Busy(Exception):
    """Raise it to be asked again later, for example while a model still loads."""


class Wrong(Exception):
    """A value of the environment's or the judge's that the protocol does not allow."""


def report(error):
    """The error of a reply. The traceback is printed to standard error too."""
    if isinstance(error, Busy):
        return {"kind": "busy", "message": _shown(str(error) or "busy", _MESSAGE)}
    told = traceback.TracebackException.from_exception(error)
    # The frames of this package are the same for every environment, and there are more of them when an
    # episode is replayed: without them a report does not depend on the cache.
    told.stack = traceback.StackSummary.from_list([f for f in told.stack if not _ours(f.filename)])
    lines = "".join(line for part in told.format() for line in part.splitlines(True) if line.strip(" ^~\n") or not line.strip())
    print(lines, end="", file=sys.stderr, flush=True)
    message = "".join(told.format_exception_only()).strip() if not isinstance(error, Wrong) else str(error)
    if told.stack:
        last = told.stack[-1]
        message += f" ({os.path.basename(last.filename)}, line {last.lineno}, in {last.name})"
    found = {"kind": "broken", "message": _shown(message, _MESSAGE)}
    if told.stack:
        found["traceback"] = _shown(lines, -_TRACEBACK)
    return found


def _ours(filename):
    return os.path.abspath(filename).startswith(_PACKAGE)


def _shown(text, most):
    """So many characters of a text, from its end for a negative number, without what the protocol refuses."""
    text = text[:most] if most > 0 else text[most:]
    return text.encode("utf-8", "replace").decode().replace("\x00", "?").replace("\ufffd", "?").strip()


def where(method):
    """The name of a method with its place, for a value that it returned."""
    return _where(getattr(method, "__func__", method))


@functools.lru_cache(maxsize=256)
def _where(function):
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or _ours(code.co_filename):
        return getattr(function, "__name__", repr(function))
    return f"{function.__qualname__} ({os.path.basename(code.co_filename)}, line {code.co_firstlineno})"
