import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { RuntimeEvent } from "../../../src/events/events.ts";
import type { Topic } from "../../../src/store/store.ts";
import { type MakeHome, sharedWorld, TIMEOUT, type World } from "../runtime-fixture.ts";

export function events(makeHome: MakeHome): void {
  describe("events", () => {
    const world = sharedWorld(makeHome);

    test("followed from a cursor give every step once, whenever the reader came", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 299 } });
      const readers: Promise<number[]>[] = [];
      for (const at of [-1, 20, 100, 250]) {
        await world().untilIteration(session_id, Math.max(0, at));
        for (const after_iteration of [-1, at])
          readers.push(iterationsAfter(world(), session_id, after_iteration, 299));
      }
      await world().untilStatus(session_id, "done");
      for (const after_iteration of [-1, 150, 298])
        readers.push(iterationsAfter(world(), session_id, after_iteration, 299));
      for (const seen of await Promise.all(readers)) {
        const [first = 0] = seen;
        assert.deepEqual(
          seen,
          Array.from({ length: 300 - first }, (_, index) => first + index),
        );
      }
    });

    test("go on through a pause", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 199 } });
      const reader = iterationsAfter(world(), session_id, -1, 199);
      for (const at of [10, 60, 110]) {
        await world().untilIteration(session_id, at);
        await world().act("agent_pause", session_id);
        await world().meanwhile();
        await world().act("agent_resume", session_id);
      }
      assert.deepEqual(
        await reader,
        Array.from({ length: 200 }, (_, index) => index),
      );
    });

    test("wait for a slow reader, who loses no step", TIMEOUT, async () => {
      const session_id = await world().create("count", { params: { to: 2499 } });
      const leaving = new AbortController();
      const reader = world().runtime.events.follow({ session_id, after_iteration: -1 }, leaving.signal);
      const seen: number[] = [];
      const read = async (): Promise<void> => {
        const { value } = await reader.next();
        if ((value as RuntimeEvent).kind === "step") seen.push((value as StepEvent).step.iteration);
      };
      await read();
      await world().untilStatus(session_id, "done");
      while (seen.at(-1) !== 2499) await read();
      leaving.abort();
      assert.deepEqual(
        seen,
        Array.from({ length: 2500 }, (_, index) => index),
      );
    });

    test("are received from the call on, before the first is requested", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const leaving = new AbortController();
      const heard = world().runtime.events.follow({ session_id }, leaving.signal);
      await world().tell(session_id, "a");
      const step = await world().held.next(session_id);
      step.context.emit({ kind: "delta", text: "early" });
      step.finish();
      await world().untilStatus(session_id, "waiting");
      const kinds = new Set<string>();
      for await (const event of heard) {
        kinds.add(event.kind);
        if (event.kind === "session" && event.session.status === "waiting" && event.session.iteration === 0) break;
      }
      assert.deepEqual(kinds, new Set(["delta", "step", "action", "session"]));
    });

    test("tell a step's text before the step, in order from 0, and it adds up", TIMEOUT, async () => {
      const conversation_id = await world().conversation();
      const options = { max_steps: 20, step_interval_ms: 0 };
      const start = () => world().create("joke", { conversation_id, params: { subject: "deltas" }, options });
      const bySession = new Map<string, RuntimeEvent[]>();
      const leaving = new AbortController();
      const reader = world().runtime.events.follow({ conversation_id }, leaving.signal);
      const sessions = await Promise.all(Array.from({ length: 5 }, start));
      let messages = 0;
      for await (const event of reader) {
        const of =
          event.kind === "delta" ? event.delta.session_id : event.kind === "message" ? event.message.session_id : null;
        if (of !== null) bySession.set(of, [...(bySession.get(of) ?? []), event]);
        if (event.kind === "message" && ++messages === 100) break;
      }
      for (const session_id of sessions) assertTextsAddUp(bySession.get(session_id) ?? []);
    });

    test("tell the text and the tools of a step that runs again from 0 again", TIMEOUT, async () => {
      const session_id = await world().create("held");
      const heard = follower(world(), { session_id });
      const cut = await world().held.next(session_id);
      for (const text of ["a", "b"]) cut.context.emit({ kind: "delta", text });
      await world().tell(session_id, "hurry", "now");
      const again = await world().held.next(session_id);
      cut.context.emit({ kind: "delta", text: "from beyond" });
      again.context.emit({ kind: "tool", name: "read_file" });
      again.context.emit({ kind: "delta", text: "c" });
      again.finish({ text: "c" });
      const all = await heard.until((event) => event.kind === "step");
      const deltas = all.flatMap((event) => (event.kind === "delta" ? [event.delta] : []));
      assert.deepEqual(
        deltas.map(({ event_seq, text, tool, iteration }) => [iteration, event_seq, tool ?? text]),
        [
          [0, 0, "a"],
          [0, 1, "b"],
          [0, 0, "read_file"],
          [0, 1, "c"],
        ],
      );
    });

    test("tell nothing of a step that has ended", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      await world().tell(session_id, 0);
      const step = await world().held.next(session_id);
      const heard = follower(world(), { session_id });
      step.finish();
      await world().untilStatus(session_id, "waiting");
      step.context.emit({ kind: "delta", text: "too late" });
      step.context.emit({ kind: "usage", tokens: 99 });
      await world().tell(session_id, 1);
      (await world().held.next(session_id)).finish();
      const all = await heard.until((event) => event.kind === "step" && event.step.iteration === 1);
      assert.equal(all.filter(({ kind }) => kind === "delta").length, 0);
      assert.equal((await world().session(session_id)).tokens_used, 0);
    });

    test("of everything include every session's steps", TIMEOUT, async () => {
      const heard = follower(world(), { all: true });
      const sessions = await Promise.all(
        Array.from({ length: 20 }, () => world().create("count", { params: { to: 4 } })),
      );
      const ended = new Set<string>();
      const all = await heard.until((event) => {
        if (event.kind === "session" && event.session.status === "done") ended.add(event.session.session_id);
        return sessions.every((id) => ended.has(id));
      });
      for (const id of sessions) {
        const own = all.flatMap((event) => (event.kind === "step" && event.step.session_id === id ? [event.step] : []));
        assert.deepEqual(
          own.map(({ iteration }) => iteration),
          [0, 1, 2, 3, 4],
        );
      }
    });

    test("end when the reader's signal aborts", TIMEOUT, async () => {
      const session_id = await world().create("held_reactive");
      const leaving = new AbortController();
      const reader = world().runtime.events.follow({ session_id }, leaving.signal);
      const next = reader.next();
      leaving.abort();
      assert.equal((await next).done, true);
      assert.equal((await reader.next()).done, true);
    });
  });
}

type StepEvent = Extract<RuntimeEvent, { kind: "step" }>;

/** Subscribes at once, and collects events until one fits. */
function follower(
  world: World,
  topic: Topic,
): { until(fits: (event: RuntimeEvent) => boolean): Promise<RuntimeEvent[]> } {
  const leaving = new AbortController();
  const reader = world.runtime.events.follow(topic, leaving.signal);
  return {
    async until(fits) {
      const all: RuntimeEvent[] = [];
      for await (const event of reader) {
        all.push(event);
        if (fits(event)) break;
      }
      return all;
    },
  };
}

async function iterationsAfter(
  world: World,
  session_id: string,
  after_iteration: number,
  last: number,
): Promise<number[]> {
  const all = await follower(world, { session_id, after_iteration }).until(
    (event) => event.kind === "step" && event.step.iteration === last,
  );
  const seen = all.flatMap((event) => (event.kind === "step" ? [event.step.iteration] : []));
  assert.equal(seen[0], after_iteration + 1);
  return seen;
}

/** A step's deltas precede its message, are numbered from 0, and add up to its text. */
function assertTextsAddUp(heard: RuntimeEvent[]): void {
  const texts = new Map<number, string[]>();
  let messageCount = 0;
  for (const event of heard) {
    if (event.kind === "delta") {
      const { iteration, event_seq, text } = event.delta;
      assert.ok(iteration >= messageCount, "no text comes after its step");
      const parts = texts.get(iteration) ?? [];
      assert.equal(event_seq, parts.length);
      texts.set(iteration, [...parts, text]);
    } else if (event.kind === "message") {
      assert.equal(event.message.iteration, messageCount);
      assert.equal((texts.get(messageCount) ?? []).join(""), event.message.text);
      messageCount += 1;
    }
  }
  assert.equal(messageCount, 20);
}
