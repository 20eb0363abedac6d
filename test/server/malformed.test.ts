import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { repetitions } from "../repetitions.ts";
import { randomFor } from "../store/random.ts";
import { Api } from "./api.ts";
import { sendMalformedFrames, sendMalformedRequests } from "./malformed-load.ts";
import { eventually, sharedServer, TIMEOUT } from "./server-fixture.ts";
import { heldMb, INSPECTABLE } from "./server-heap.ts";

const REQUESTS = repetitions("EVERSTEP_FUZZ_REQUESTS", { few: 6000, many: 20_000 });
const FRAMES = repetitions("EVERSTEP_FUZZ_FRAMES", { few: 2000, many: 5000 });
/** Requests that must have been understood well enough to be told what is wrong with them. */
const LEAST_ANSWERED = REQUESTS / 40;
const TOKEN = "a-secret-that-nobody-guesses";
/** What the program keeps permanently after having seen everything: compiled code, interned texts, rows of the chat. */
const MOST_KEPT_MB = 12;

for (const token of [undefined, TOKEN])
  describe(`a server ${token === undefined ? "without" : "with"} a token outlives`, () => {
    const server = sharedServer({ ...INSPECTABLE, ...(token === undefined ? {} : { EVERSTEP_TOKEN: token }) });
    const target = () => ({ url: server().url, ...(token === undefined ? {} : { token }) });
    // Otherwise the wrong tokens sent would lock out the right one as well.
    before(async () => {
      const api = new Api(server().url, token === undefined ? {} : { authorization: `Bearer ${token}` });
      assert.equal((await api.get("/api/agents")).status, 200);
    });
    const isWell = async (held_before: number) => {
      assert.ok(server().isAlive, server().stderr);
      assert.equal((await new Api(server().url).get("/health")).status, 200);
      const kept = await eventually("connections to be gone", async () => {
        const more = (await heldMb(server())) - held_before;
        return more < MOST_KEPT_MB && more;
      });
      assert.deepEqual(server().loggedErrors, []);
      return kept;
    };

    test(
      `${REQUESTS / 2} malformed requests and upgrades, answers none with 5xx, and keeps none`,
      TIMEOUT,
      async (t) => {
        const random = randomFor(t);
        await sendMalformedRequests(target(), random, 500);
        const held = await heldMb(server());
        const statuses = await sendMalformedRequests(target(), random, REQUESTS / 2);
        // A server that is slow at the moment has answered few before its connections were left.
        while ((statuses.get(400) ?? 0) <= LEAST_ANSWERED)
          for (const [status, count] of await sendMalformedRequests(target(), random, REQUESTS / 10))
            statuses.set(status, (statuses.get(status) ?? 0) + count);
        t.diagnostic([...statuses].map(([status, count]) => `${status}: ${count}`).join(", "));
        for (const status of statuses.keys()) assert.ok(status < 500, `${status} was answered`);
        t.diagnostic(`${(await isWell(held)).toFixed(1)} MB more are held`);
      },
    );

    test(`${FRAMES / 2} malformed frames of Socket.IO and the chat`, TIMEOUT, async (t) => {
      const random = randomFor(t);
      await sendMalformedFrames(target(), random, 200);
      const held = await heldMb(server());
      const opened = await sendMalformedFrames(target(), random, FRAMES / 2);
      assert.ok(opened > FRAMES / 40, `${opened} connections were opened`);
      t.diagnostic(`${opened} connections, ${(await isWell(held)).toFixed(1)} MB more are held`);
    });
  });
