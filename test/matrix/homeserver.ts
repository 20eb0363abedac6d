import assert from "node:assert/strict";
import { after, before } from "node:test";
import { HOW_TO_GET_SYNAPSE, installedSynapse } from "./synapse/installation.ts";
import { SynapseProcess } from "./synapse/synapse-process.ts";

/** An existing homeserver that lets anybody register, used instead of a separate Synapse. */
const GIVEN = process.env["EVERSTEP_TEST_HOMESERVER"];
const hasSynapse = (await installedSynapse()) !== null;
const isNeeded = process.env["EVERSTEP_TEST_ALL"] === "1";

/** For suites that work with any homeserver. */
export const skipWithoutHomeserver = GIVEN === undefined && !hasSynapse && !isNeeded && HOW_TO_GET_SYNAPSE;
/** For suites that stop, limit or inspect their homeserver. */
export const skipWithoutSynapse = !hasSynapse && !isNeeded && HOW_TO_GET_SYNAPSE;

let shared: Promise<SynapseProcess> | undefined;
let users = 0;

/** One homeserver for all suites of the run: started with the first, stopped after the last. */
export function sharedHomeserver(): () => string {
  let url = GIVEN;
  before(async () => {
    if (GIVEN !== undefined) return;
    assert.ok(hasSynapse, HOW_TO_GET_SYNAPSE);
    users += 1;
    shared ??= SynapseProcess.start();
    url = (await shared).url;
  });
  return () => url ?? assert.fail("the homeserver is started before the tests run");
}

after(async () => {
  if (users > 0) await (await shared)?.[Symbol.asyncDispose]();
});
