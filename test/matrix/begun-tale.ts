import { modelEnvironment } from "../agent-ws/model-environment.ts";
import { ModelServer } from "../llm/model-server.ts";
import { ServerProcess } from "../server/server-fixture.ts";
import { agentEnvironment, Scene } from "./scene.ts";

/** A person asked the bot for a story, and the agent's model has written its beginning. All of it ends with its scope. */
export async function beginTale(homeserver: string) {
  await using opened = new AsyncDisposableStack();
  const model = opened.use(await ModelServer.open());
  const server = opened.use(await ServerProcess.start(modelEnvironment(model)));
  const scene = opened.use(new Scene(homeserver));
  const bot = await scene.bot(agentEnvironment(server.url));
  const anna = await scene.person("anna");
  const room = await anna.openRoom([bot.user_id]);
  await anna.say(room, "Tell me a tale.");
  const call = await model.next();
  call.say("Once upon");
  await anna.hears(room, /^Once upon …/);
  const kept = opened.move();
  return { model, server, bot, anna, room, call, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}
