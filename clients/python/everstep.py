"""Monikers for Everstep in Python: one file, the standard library only, Python 3.9 or newer.

    from everstep import moniker, serve

    @moniker(params={"type": "object", "properties": {"to": {"type": "integer"}}, "required": ["to"]})
    def count(frame, context):
        '''Counts to a number.'''
        n = frame.state.get("n", -1) + 1
        return frame.out({"n": n}, text=str(n), done=n >= context.params["to"])

    serve()  # python3 count.py serves HTTP on port 9000; started by Everstep itself it uses stdin and stdout
"""
import base64, hashlib, hmac, inspect, json, os, select, socket, sys, time, traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional

LARGEST_REQUEST = 64 * 1024 * 1024
_monikers: Dict[str, Any] = {}  # the step and the description of each


class Problem(Exception):
    """Fails the step. Without retryable=False it is tried again, as it is after any other exception."""

    def __init__(self, code: str, message: str, retryable: bool = True):
        super().__init__(message)
        self.code, self.message, self.retryable = code, message, retryable


class Cancelled(BaseException):
    """Nobody waits for the step any more. Raised by context.delta, tool and usage; not caught by `except Exception`."""


class Frame:
    """What the step gets: its token, the state that the step before left, and what people said since."""

    def __init__(self, step: str, state: Dict[str, Any], guidance: Optional[List[Any]] = None):
        self.step, self.state, self.guidance = step, state, guidance or []

    def out(self, state: Optional[Dict[str, Any]] = None, next_step: Optional[str] = None, done: bool = False, **more: Any) -> Dict[str, Any]:
        """The frame to return; `more` is text, data, notes, wait, ask, once, actions."""
        return {"step": self.step, "next_step": self.step if next_step is None else next_step, "done": done,
                "state": self.state if state is None else state, **{key: value for key, value in more.items() if value is not None}}


class Context:
    """What stands beside the frame: params, ids, attempt and deadline, and ways to tell what happens meanwhile."""

    def __init__(self, context: Dict[str, Any], send: Callable[[bytes], None], is_cancelled: Callable[[], bool]):
        self.params: Dict[str, Any] = context.get("params") or {}
        self.ids: Dict[str, Any] = context["ids"]
        self.attempt: Dict[str, Any] = context.get("attempt") or {"number": 1, "after": None}
        self.deadline, self.traceparent = context.get("deadline"), context.get("traceparent")  # the latter to send along with requests
        self.is_rerun: bool = bool(context.get("is_rerun"))
        self.key = f'{self.ids["session_id"]}/{self.ids["iteration"]}'  # the same on every attempt
        self._send, self._is_cancelled = send, is_cancelled

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for the step any more; ask now and then in a long one."""
        return self._is_cancelled()

    def delta(self, text: str) -> None:
        """Shows text while the step runs."""
        self._send(_encode({"delta": text}))

    def tool(self, name: str) -> None:
        self._send(_encode({"tool": name}))

    def usage(self, tokens: int, cost_usd: Optional[float] = None) -> None:
        self._send(_encode({"usage": {"tokens": tokens, **({} if cost_usd is None else {"cost_usd": cost_usd})}}))


def moniker(name: Optional[str] = None, kind: str = "finite", params: Optional[Dict[str, Any]] = None, description: Optional[str] = None,
            first_step: Optional[str] = None, options: Optional[Dict[str, Any]] = None, version: Optional[str] = None) -> Callable[[Callable], Callable]:
    """Makes a function a moniker. Its name, description and version are the function's, its docstring and a hash of its file."""

    def register(step: Callable) -> Callable:
        with open(inspect.getsourcefile(step) or __file__, "rb") as file:
            source = hashlib.sha256(file.read()).hexdigest()[:12]
        own = name or step.__name__.replace("__", "-").strip("_")
        described = {"name": own, "kind": kind, "description": description or inspect.getdoc(step) or own,
                     "params_schema": params or {"type": "object"}, "version": version or source}
        described.update({key: value for key, value in (("first_step", first_step), ("options", options)) if value is not None})
        _monikers[own] = (step, described)
        return step

    return register


def describe() -> bytes:
    return _encode({"monikers": [described for _, described in _monikers.values()]})


def verify(secret: str, headers: Any, body: bytes, now: Optional[float] = None) -> bool:
    """Whether a request is signed by the Standard Webhooks scheme with the secret, not more than five minutes ago."""
    sent_id, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not sent_at.isdigit() or abs((time.time() if now is None else now) - int(sent_at)) > 5 * 60:
        return False
    key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
    signed = f"{sent_id}.{sent_at}.".encode("utf-8") + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    return any([hmac.compare_digest(expected, sent.encode("utf-8")) for sent in headers.get("webhook-signature", "").split(" ")])


def _run(request: Dict[str, Any], send: Callable[[bytes], None], is_cancelled: Callable[[], bool]) -> None:
    """Runs a step and sends its lines, of which the last is the frame or the problem."""
    try:
        if request["moniker"] not in _monikers:
            raise Problem("unknown_moniker", f'no moniker is named {request["moniker"]} here', retryable=False)
        step, _ = _monikers[request["moniker"]]
        frame = Frame(request["frame"]["step"], request["frame"]["state"], request["frame"].get("guidance"))
        last = _encode({"frame": step(frame, Context(request["context"], send, is_cancelled))})
    except Problem as problem:
        last = _encode({"problem": {"code": problem.code, "message": problem.message, "retryable": problem.retryable}})
    except Exception as error:  # any other error is tried again, as it is in TypeScript
        traceback.print_exc()
        last = _encode({"problem": {"code": type(error).__name__, "message": str(error)[:5000], "retryable": True}})
    send(last)


def _encode(line: Dict[str, Any]) -> bytes:
    return json.dumps(line, allow_nan=False).encode("utf-8") + b"\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # without it every step takes 40 ms longer
    secret: Optional[str] = None
    log_message = staticmethod(lambda *_: None)

    def do_GET(self) -> None:
        self._answer(200, describe())

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > LARGEST_REQUEST:
            self.close_connection = True
            return self._answer(413, b"")
        body = self.rfile.read(length)
        if self.secret is not None and not verify(self.secret, self.headers, body):
            return self._answer(401, b"")
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            _run(json.loads(body), self._line, self._is_closed)
            self.wfile.write(b"0\r\n\r\n")
        except (Cancelled, ConnectionError):
            self.close_connection = True

    def _line(self, line: bytes) -> None:
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        except OSError:
            raise Cancelled() from None

    def _is_closed(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve_http(host: str = "127.0.0.1", port: int = 9000, secret: Optional[str] = None) -> ThreadingHTTPServer:
    """Serves the monikers in threads; `serve_forever` of what is returned runs it. With a secret, unsigned steps are refused."""
    handler = type("Handler", (_Handler,), {"secret": secret})
    return type("Server", (ThreadingHTTPServer,), {"daemon_threads": True, "request_queue_size": 128})((host, port), handler)


def serve_stdio() -> None:
    """Answers each line of stdin with the lines of its step. What steps and their children print goes to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)

    def send(line: bytes) -> None:
        out.write(line)
        out.flush()

    for text in sys.stdin.buffer:
        request = json.loads(text)
        if request.get("describe"):
            send(describe())
        else:
            _run(request, send, lambda: False)


def serve() -> None:
    """Over stdio where Everstep started the program; else over HTTP, as EVERSTEP_REMOTE_HOST, _PORT and _SECRET say."""
    if os.environ.get("EVERSTEP_STDIO") == "1":
        return serve_stdio()
    host = os.environ.get("EVERSTEP_REMOTE_HOST", "127.0.0.1")
    server = serve_http(host, int(os.environ.get("EVERSTEP_REMOTE_PORT", "9000")), os.environ.get("EVERSTEP_REMOTE_SECRET") or None)
    print(f"Everstep finds {', '.join(_monikers)} at http://{host}:{server.server_address[1]}", file=sys.stderr, flush=True)
    server.serve_forever()
