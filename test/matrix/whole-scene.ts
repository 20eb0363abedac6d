import assert from "node:assert/strict";
import { after, before } from "node:test";
import { ServerProcess } from "../server/server-fixture.ts";
import type { Environment } from "../server/spawn-everstep.ts";
import type { BotProcess } from "./bot-process.ts";
import { sharedHomeserver } from "./homeserver.ts";
import { agentEnvironment, Scene } from "./scene.ts";

/** The whole product for the tests of a suite: the shared homeserver, a server with its agent, and a bot for it. */
export function wholeScene(
  environment: Environment = {},
): () => { scene: Scene; server: ServerProcess; bot: BotProcess } {
  const homeserver = sharedHomeserver();
  let whole: { scene: Scene; server: ServerProcess; bot: BotProcess } | undefined;
  before(async () => {
    const scene = new Scene(homeserver());
    const server = await ServerProcess.start();
    whole = { scene, server, bot: await scene.bot({ ...agentEnvironment(server.url), ...environment }) };
  });
  after(async () => {
    await whole?.bot.finish();
    await whole?.scene[Symbol.asyncDispose]();
    await whole?.server.finish();
  });
  return () => whole ?? assert.fail("the scene is set before the tests run");
}
