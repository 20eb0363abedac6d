"""A moniker in Python: finds prime numbers, one step each. People can tell it where to go on while it runs.

Copy it into the folder that EVERSTEP_MONIKERS names, or run it as a worker of its own:
    PYTHONPATH=clients/python python3 examples/python/primes.py
    EVERSTEP_REMOTE_MONIKERS=http://127.0.0.1:9000 npx everstep serve
"""
from everstep import Problem, moniker, serve


@moniker(params={"type": "object", "properties": {"count": {"type": "integer", "minimum": 1, "description": "How many."}}, "required": ["count"]})
def primes(frame, context):
    """Finds prime numbers, one step each."""
    last, found = frame.state.get("last", 1), frame.state.get("found", 0)
    for said in frame.guidance:
        text = said.get("text", "") if isinstance(said, dict) else str(said)
        if not text.isdigit():
            raise Problem("no_number", f"{text!r} is no number to go on from", retryable=False)
        last = int(text)
    number = last + 1
    while any(number % divisor == 0 for divisor in range(2, int(number**0.5) + 1)):
        number += 1
    context.delta(str(number))
    return frame.out({"last": number, "found": found + 1}, text=str(number), done=found + 1 >= context.params["count"])


if __name__ == "__main__":
    serve()
