import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Receiver, verified } from "../webhooks/receiver.ts";
import { commandFor, type Ran, tableRows } from "./command.ts";
import { eventually, TIMEOUT } from "./server-fixture.ts";
import { sharedWorld } from "./world.ts";

const world = sharedWorld({ EVERSTEP_WEBHOOK_ALLOW: "127.0.0.1" });
const run = commandFor(() => world().server.url);
const ok = ({ code, stdout, stderr }: Ran): string => {
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, stdout);
  return stdout;
};

describe("everstep webhooks", () => {
  test("adds, lists, shows deliveries, sends one again, rotates and removes", TIMEOUT, async () => {
    await using receiver = await Receiver.start();
    assert.equal(ok(await run("webhooks", "list")), "no webhooks yet\n");
    const added = ok(await run("webhooks", "add", "ops", receiver.url, "--event", "session.ended"));
    const secret = /^added ops\nits secret, shown this once: (whsec_\S+)\n$/.exec(added)?.[1] ?? "";
    assert.deepEqual(tableRows(ok(await run("webhooks", "list"))), [
      { WEBHOOK: "ops", ADDRESS: receiver.url, EVENTS: "session.ended", AGENT: "(all)" },
    ]);
    assert.equal(ok(await run("webhooks", "deliveries", "ops")), "nothing sent yet\n");
    const { session_id } = await world().api.create("script", { params: { frames: [{}] } });
    const [first] = await receiver.until("it arrives", ({ length }) => length === 1);
    assert.ok(first && verified(secret, first));
    const [row] = await eventually("it is delivered", async () => {
      const rows = tableRows(ok(await run("webhooks", "deliveries", "ops")));
      return rows[0]?.["STATUS"] === "delivered" && rows;
    });
    const { DELIVERY, SESSION, EVENT, ATTEMPTS, ANSWER } = row ?? {};
    assert.deepEqual([DELIVERY, SESSION, EVENT, ATTEMPTS, ANSWER], [first.id, session_id, "session.ended", "1", "204"]);
    assert.equal(ok(await run("webhooks", "send-again", "ops", first.id)), `resending ${first.id}\n`);
    await receiver.until("it is sent again", ({ length }) => length === 2);
    assert.match(ok(await run("webhooks", "add", "ops", receiver.url)), /^changed ops; it keeps its secret\n$/);
    assert.match(ok(await run("webhooks", "rotate-secret", "ops")), /^the new secret of ops, shown this once: whsec_/);
    assert.equal(ok(await run("webhooks", "remove", "ops")), "removed ops\n");
    const refused = await run("webhooks", "add", "inside", "http://10.0.0.1/");
    assert.deepEqual([refused.code, /webhook_address_refused/.test(refused.stderr)], [1, true]);
  });
});
