"""The program of an environment or a judge."""
import argparse
import json
import multiprocessing
import os
import sys

from ._errors import Wrong, report
from ._judge import Judge, Judges
from ._play import Environments


def run(served, arguments=None):
    """Serves an environment or a judge: its class, or what makes an object from a spec's options.

    Without arguments of the command line it answers on standard input and output, for --env-process. With
    --temporal NAME it is a worker of Temporal's, for --env-temporal.
    """
    if multiprocessing.parent_process() is not None:
        return  # a process that the environment itself started imports this program
    flags = argparse.ArgumentParser(description="Serves an environment or a judge of Reprise's: reprise env check --help")
    flags.add_argument("--temporal", metavar="NAME", help="serve over Temporal, on the queue reprise-env.NAME (pip install temporalio)")
    flags.add_argument("--address", default="127.0.0.1:7233", help="of the Temporal server (%(default)s)")
    flags.add_argument("--namespace", default="default", help="of the Temporal server (%(default)s)")
    flags = flags.parse_args(arguments)
    server = (Judges if isinstance(served, type) and issubclass(served, Judge) else Environments)(served)
    if flags.temporal:
        from ._temporal import serve
        serve(server, flags.temporal, flags.address, flags.namespace)
        return
    if sys.stdin.isatty():
        print("waiting for requests of Reprise's, a line of JSON each; to try it: reprise env check NAME --env-process "
              f"NAME={sys.argv[0]}", file=sys.stderr)
    requests, replies = _own_streams()
    answer_lines(server, requests, replies)


def _own_streams():
    """Standard input and output for the protocol alone.

    What the environment, its libraries or its child processes print goes to standard error, and they read
    nothing of the requests.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    sys.stdout.flush()  # what was printed while the program was imported, if its buffer has it still
    sys.stdout = sys.stderr
    return requests, replies


def answer_lines(server, requests, replies):
    """Answers each line of requests with one line."""
    for line in requests:
        request = json.loads(line)
        reply = {"id": request["id"]}
        try:
            reply["output"] = answer(server, request["call"], request["input"])
        except (Exception, SystemExit) as e:
            reply["error"] = report(e)
        try:
            replies.write(json.dumps(reply, allow_nan=False).encode() + b"\n")
            replies.flush()
        except BrokenPipeError:
            return


def answer(server, call, asked, alive=lambda: None):
    """The output of a call. alive is called now and then."""
    if call not in server.calls:
        raise Wrong(f"{call} was asked of what answers {' and '.join(server.calls)}: an environment is no judge")
    return server.calls[call](asked, alive)
