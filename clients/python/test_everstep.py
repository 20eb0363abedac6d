"""python3 -m unittest discover -s clients/python"""
import base64, hashlib, hmac, http.client, io, json, os, socket, subprocess, sys, threading, time, unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import everstep

SECRET = "whsec_" + base64.b64encode(b"a secret of the tests, long enough").decode()


@everstep.moniker(params={"type": "object"}, options={"max_steps": 3}, first_step="a")
def tally(frame, context):
    """Adds up."""
    context.delta("so ")
    context.tool("calculator")
    context.usage(3, 0.5)
    return frame.out({"n": frame.state.get("n", 0) + 1}, text="ё", done=True, notes=None)


@everstep.moniker()
def refuse(frame, context):
    raise everstep.Problem("no_way", "not like this", retryable=False)


@everstep.moniker()
def divide(frame, context):
    return 1 / 0


@everstep.moniker(name="not-json")
def nan(frame, context):
    return frame.out({"n": float("nan")})


waited = threading.Event()


@everstep.moniker()
def wait_for_cancel(frame, context):
    context.delta("waiting")
    while not context.cancelled:
        time.sleep(0.01)
    waited.set()
    return frame.out()


def request(name, **more):
    ids = {"agent_id": "a", "session_id": "s", "conversation_id": None, "iteration": 2}
    return {"moniker": name, "frame": {"step": "0", "state": {}, **more}, "context": {"params": {}, "ids": ids, "attempt": {"number": 1, "after": None}, "deadline": None}}


def signed(body, key=b"a secret of the tests, long enough", at=None, sent_id="s/2"):
    sent_at = str(int(time.time() if at is None else at))
    digest = hmac.new(key, f"{sent_id}.{sent_at}.".encode() + body, hashlib.sha256).digest()
    return {"webhook-id": sent_id, "webhook-timestamp": sent_at, "webhook-signature": "v1a,x v1," + base64.b64encode(digest).decode()}


class Steps(unittest.TestCase):
    def lines(self, name, **more):
        sent = io.BytesIO()
        everstep._run(request(name, **more), sent.write, lambda: False)
        return [json.loads(line) for line in sent.getvalue().splitlines()]

    def test_a_step_sends_what_happens_and_then_its_frame(self):
        frame = {"step": "0", "next_step": "0", "state": {"n": 1}, "text": "ё", "done": True}
        self.assertEqual(self.lines("tally"), [{"delta": "so "}, {"tool": "calculator"}, {"usage": {"tokens": 3, "cost_usd": 0.5}}, {"frame": frame}])

    def test_problems_and_errors_are_the_last_line(self):
        self.assertEqual(self.lines("refuse"), [{"problem": {"code": "no_way", "message": "not like this", "retryable": False}}])
        self.assertEqual(self.lines("divide")[-1]["problem"]["code"], "ZeroDivisionError")
        self.assertTrue(self.lines("divide")[-1]["problem"]["retryable"])
        self.assertEqual(self.lines("not-json")[-1]["problem"]["code"], "ValueError")
        self.assertEqual(self.lines("nobody")[-1]["problem"]["code"], "unknown_moniker")

    def test_it_says_what_it_has(self):
        described = json.loads(everstep.describe())["monikers"][0]
        version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
        self.assertEqual(described, {"name": "tally", "kind": "finite", "description": "Adds up.", "params_schema": {"type": "object"}, "first_step": "a", "options": {"max_steps": 3}, "version": version})

    def test_it_fits_a_page_and_an_old_python(self):
        import ast
        text = Path(everstep.__file__).read_text()
        self.assertLess(len(text.splitlines()), 200)
        ast.parse(text, feature_version=(3, 9))


class Http(unittest.TestCase):
    def setUp(self):
        self.server = everstep.serve_http(port=0, secret=SECRET)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.server.server_address[1], timeout=30)

    def tearDown(self):
        self.connection.close()
        self.server.shutdown()
        self.server.server_close()

    def post(self, body, headers):
        self.connection.request("POST", "/", body, headers)
        response = self.connection.getresponse()
        return response.status, response.read()

    def test_signed_steps_run_on_one_connection(self):
        body = json.dumps(request("tally")).encode()
        for _ in range(3):
            status, text = self.post(body, signed(body))
            self.assertEqual(status, 200)
            self.assertEqual(json.loads(text.splitlines()[-1])["frame"]["state"], {"n": 1})

    def test_wrong_signatures_are_refused(self):
        body = json.dumps(request("tally")).encode()
        now = time.time()
        for headers in [{}, signed(b"other"), signed(body, key=b"another"), signed(body, at=now - 400), signed(body, at=now + 400),
                        {**signed(body), "webhook-id": "s/3"}, {**signed(body), "webhook-timestamp": "x"}, {**signed(body), "webhook-signature": "v1,\u00e9"}]:
            self.assertEqual(self.post(body, headers)[0], 401)

    def test_a_step_notices_that_nobody_waits(self):
        body = json.dumps(request("wait_for_cancel")).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in {**signed(body), "content-length": len(body)}.items())
        with socket.create_connection(self.server.server_address[:2]) as raw:
            raw.sendall(f"POST / HTTP/1.1\r\nhost: x\r\n{head}\r\n".encode() + body)
            while b"waiting" not in raw.recv(4096):
                pass
        self.assertTrue(waited.wait(30))


class Stdio(unittest.TestCase):
    def test_what_a_step_prints_does_not_end_up_in_its_answer(self):
        code = "import everstep, os\n@everstep.moniker()\ndef loud(frame, context):\n  print('loud'); os.system('echo louder')\n  return frame.out()\neverstep.serve()"
        path = Path(os.environ.get("TMPDIR", "/tmp")) / f"loud-{os.getpid()}.py"
        path.write_text(code)
        try:
            lines = '{"describe":true}\n' + json.dumps(request("loud")) + "\n"
            env = {**os.environ, "EVERSTEP_STDIO": "1", "PYTHONPATH": str(Path(__file__).parent)}
            ran = subprocess.run([sys.executable, str(path)], input=lines.encode(), env=env, capture_output=True, timeout=60)
        finally:
            path.unlink()
        described, frame = [json.loads(line) for line in ran.stdout.splitlines()]
        self.assertEqual(described["monikers"][0]["name"], "loud")
        self.assertFalse(frame["frame"]["done"])
        self.assertIn(b"louder", ran.stderr)


if __name__ == "__main__":
    unittest.main()
