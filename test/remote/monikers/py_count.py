"""Monikers for the tests: one counts, one reports its input, one dies, one sleeps."""
import os, sys, time
from everstep import Problem, moniker, serve

COUNT = {"type": "object", "properties": {"to": {"type": "integer", "minimum": 0}, "delay_s": {"type": "number", "default": 0}}, "required": ["to"]}


@moniker(name="py-count", params=COUNT)
def count(frame, context):
    """Counts to a number."""
    time.sleep(context.params["delay_s"])
    n = frame.state.get("n", -1) + 1
    context.delta(str(n))
    context.usage(1)
    return frame.out({"n": n}, next_step=str(n + 1), text=str(n), data={"pid": os.getpid()}, done=n >= context.params["to"])


@moniker(name="py-tell")
def tell(frame, context):
    """Tells what it was given."""
    return frame.out(data={"env": sorted(os.environ), "key": context.key, "attempt": context.attempt, "deadline": context.deadline, "pid": os.getpid(), "args": sys.argv[1:]}, done=True)


@moniker(name="py-die")
def die(frame, context):
    """Dies in the middle of the first attempt."""
    context.delta("before")
    if context.attempt["number"] == 1:
        print("dying words", file=sys.stderr, flush=True)
        os._exit(3)
    return frame.out(text="alive", done=True)


@moniker(name="py-sleep", kind="reactive")
def sleep(frame, context):
    """Sleeps for long, unless it is told something else."""
    if frame.guidance[-1:] != ["wake"]:
        time.sleep(600)
    return frame.out(text="awake")


if __name__ == "__main__":
    serve()
