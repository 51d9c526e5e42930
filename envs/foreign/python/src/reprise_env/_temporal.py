"""Serves an environment or a judge as a worker of Temporal's."""
import asyncio
from concurrent.futures import ThreadPoolExecutor

from ._errors import report


def serve(server, name, address, namespace):
    """Serves the calls of server on the queue reprise-env.NAME until the program ends."""
    asyncio.run(_serve(server, name, address, namespace))


async def _serve(server, name, address, namespace):
    from temporalio.client import Client
    from temporalio.worker import Worker

    client = await Client.connect(address, namespace=namespace)
    # One call at a time, as over standard input: several at a time are several workers.
    with ThreadPoolExecutor(1) as thread:
        await Worker(client, task_queue="reprise-env." + name, activities=[_activity(server, call) for call in server.calls],
                     activity_executor=thread, max_concurrent_activities=1).run()


def _activity(server, call):
    from temporalio import activity
    from temporalio.exceptions import ApplicationError

    # Without no_thread_cancel_exception, a worker that stops would raise an error inside the environment,
    # which would be taken for an error of the environment's own.
    @activity.defn(name=call, no_thread_cancel_exception=True)
    def served(asked: dict) -> dict:
        try:  # a worker that stays silent is taken for one that ended: another one gets the call
            return server.calls[call](asked, activity.heartbeat)
        except (Exception, SystemExit) as e:
            found = report(e)
            raise ApplicationError(found["message"], type=found["kind"]) from None

    return served
