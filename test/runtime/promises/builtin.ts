import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { JsonObject, JsonValue } from "../../../src/domain/json.ts";
import type { Step } from "../../../src/domain/step.ts";
import { type MakeHome, sharedWorld, TIMEOUT } from "../runtime-fixture.ts";

/** The built-in monikers without a model. */
export function builtIn(makeHome: MakeHome): void {
  describe("the built-in moniker", () => {
    const world = sharedWorld(makeHome);
    const file = async (path: string, text: string): Promise<void> => {
      await mkdir(join(world().workspace, path, ".."), { recursive: true });
      await writeFile(join(world().workspace, path), text);
    };
    const ran = async (moniker: string, params: JsonObject) => {
      const session_id = await world().create(moniker, {
        params,
        options: { retry: { max_attempts: 3, backoff_ms: 1 } },
      });
      const session = await world().untilStatus(session_id, "done", "error");
      return { session, steps: await world().steps(session_id) };
    };

    test("joke names its subject, and guidance changes it", TIMEOUT, async () => {
      const options = { step_interval_ms: 3_600_000, max_steps: 5 };
      const session_id = await world().create("joke", { params: { subject: "penguins" }, options });
      await world().untilIteration(session_id, 0);
      const wishes: JsonValue[] = ["  turnips ", { subject: "kettles" }, { text: "lamps" }, "   "];
      for (const said of wishes) await world().ended(await world().tell(session_id, said));
      const texts = (await world().steps(session_id)).map(({ text }) => text ?? "");
      for (const [index, subject] of ["penguins", "turnips", "kettles", "lamps", "lamps"].entries())
        assert.match(texts[index] ?? "", new RegExp(subject));
      assert.equal(new Set(texts).size, 5, "a different joke each time");
    });

    test("count counts, with as much filler as asked for", TIMEOUT, async () => {
      const { session, steps } = await ran("count", { to: 3, payload_bytes: 1000 });
      assert.equal(session.status, "done");
      assert.deepEqual(
        steps.map(({ text, state }) => [text, state["n"], (state["filler"] as string).length]),
        [0, 1, 2, 3].map((n) => [String(n), n, 1000]),
      );
    });

    test("count fails where it is told to, always or as often as told", TIMEOUT, async () => {
      const always = await ran("count", { to: 5, fail_at: 2 });
      assert.equal(always.session.status, "error");
      assert.match(always.session.last_error ?? "", /told to fail at 2/);
      assert.equal(always.session.iteration, 1);
      assert.equal((await ran("count", { to: 5, fail_at: 2, fail_times: 2 })).session.status, "done");
    });

    test("echo says what it is told", TIMEOUT, async () => {
      const session_id = await world().create("echo");
      await world().do("agent_pause", session_id);
      for (const said of ["one", { text: "two" }, { other: [3] }, 4] as JsonValue[])
        await world().settled(await world().tell(session_id, said));
      await world().do("agent_resume", session_id);
      const { iteration } = await world().until(session_id, (session) => session.iteration >= 0);
      assert.equal(iteration, 0);
      const [step] = await world().steps(session_id);
      assert.equal(step?.text, 'one\ntwo\n{"other":[3]}\n4');
    });

    test("script replays its frames, and fills in what they leave out", TIMEOUT, async () => {
      const { session, steps } = await ran("script", {
        frames: [{ text: "a", state: { kept: 1 }, next_step: "middle" }, { data: [1] }, { text: "c", notes: "n" }],
      });
      assert.equal(session.status, "done");
      assert.deepEqual(
        steps.map(({ step_token, text, data, state, notes }) => [step_token, text, data, state["kept"], notes]),
        [
          ["0", "a", null, 1, null],
          ["middle", null, [1], 1, null],
          ["2", "c", null, 1, "n"],
        ],
      );
      const early = await ran("script", { frames: [{ done: true }, { text: "never" }] });
      assert.equal(early.steps.length, 1);
    });

    const story = Array.from({ length: 200 }, (_, n) => `Sentence ${n} tells of durable queues and of the otter ${n}.`);

    test("summarize picks sentences of a text, a chunk per step", TIMEOUT, async () => {
      const text = story.join(" ");
      const { session, steps } = await ran("summarize", { text });
      assert.equal(session.status, "done");
      assert.ok(steps.length > 1);
      assert.deepEqual(
        steps.map(({ step_token }) => step_token),
        steps.map((_, index) => `chunk/${index + 1}`),
      );
      const { summary, chunks } = lastData(steps) as { summary: string; chunks: number };
      assert.equal(chunks, steps.length);
      assert.equal(session.result, summary);
      assert.ok(summary.length < text.length / 4);
      for (const sentence of summary.split(/(?<=\.)\s+/)) assert.ok(text.includes(sentence), sentence);
    });

    test("summarize reads a file of the workspace, by either name", TIMEOUT, async () => {
      await file("notes/otters.md", "Otters hold hands. Otters sleep afloat. The weather was fine.");
      for (const path of ["notes/otters.md", "/workspace/notes/otters.md"]) {
        const { session, steps } = await ran("summarize", { path });
        assert.equal(session.status, "done", session.last_error ?? "");
        assert.match(steps.at(-1)?.text ?? "", /Otters/);
      }
    });

    test("summarize fails once and with the reason where there is nothing to read", TIMEOUT, async () => {
      await file("empty.txt", "");
      const cases: [JsonObject, RegExp][] = [
        [{ path: "empty.txt" }, /nothing_to_do/],
        [{ text: " \n\n " }, /nothing_to_do/],
        [{ path: "missing.txt" }, /file_missing/],
        [{ path: "../outside.txt" }, /file_refused/],
        [{ path: "/etc/passwd" }, /file_refused/],
        [{ path: "notes" }, /file_refused/],
      ];
      await mkdir(join(world().workspace, "notes"), { recursive: true });
      for (const [params, reason] of cases) {
        const { session, steps } = await ran("summarize", params);
        assert.equal(session.status, "error", JSON.stringify(params));
        assert.match(session.last_error ?? "", reason);
        assert.equal(steps.length, 1);
      }
      for (const params of [{}, { text: "a", path: "b" }, { text: "" }]) {
        const request = { action_type: "agent_create", agent_id: "a", payload: { moniker: "summarize", params } };
        assert.equal((await world().runtime.queue.submit(request)).kind, "invalid");
      }
    });

    test("research searches, reads each file it found, and reports quotes with their paths", TIMEOUT, async () => {
      await file("contexts/otters.md", "# Notes\n\nThe giant otter lives in Brazil.\nIt eats fish.");
      await file("field/report.txt", "Day one: rain.\nDay two: a giant otter was seen near the river.");
      await file("unrelated.txt", "Nothing to see here.");
      const { session, steps } = await ran("research", { question: "Where does the giant otter live?" });
      assert.equal(session.status, "done");
      const tokens = steps.map(({ step_token }) => step_token);
      assert.equal(tokens[0], "search/1");
      assert.equal(tokens.at(-1), "report");
      assert.deepEqual(
        tokens.slice(1, -1),
        tokens.slice(1, -1).map((_, index) => `read/${index + 1}`),
      );
      const { quotes } = lastData(steps) as { quotes: { path: string; line: number; text: string }[] };
      assert.ok(quotes.some((quote) => quote.path === "contexts/otters.md" && quote.line === 3));
      assert.ok(quotes.some((quote) => quote.path === "field/report.txt" && quote.line === 2));
      assert.ok(quotes.every(({ path }) => path !== "unrelated.txt"));
      assert.match(steps.at(-1)?.text ?? "", /> The giant otter lives in Brazil\.\n {2}\(contexts\/otters\.md:3\)/);
    });

    test("research says so where the workspace has nothing", TIMEOUT, async () => {
      const { session, steps } = await ran("research", { question: "quantum chromodynamics" });
      assert.equal(session.status, "done");
      assert.deepEqual(
        steps.map(({ step_token }) => step_token),
        ["search/1", "report"],
      );
      assert.match(steps.at(-1)?.text ?? "", /says nothing/);
    });
  });
}

const lastData = (steps: Step[]): JsonValue => steps.at(-1)?.data ?? null;
