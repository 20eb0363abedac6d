import { AgentApi } from "../../src/agent-api/agent-api.ts";

/** A program that asks one question and exits by itself; with `unreachable` it only sees the refusal. */
const [url = "", what = ""] = process.argv.slice(2);
const api = new AgentApi("leaver", url);
if (what === "unreachable") await api.connect().catch((error: Error) => console.log(error.name));
else {
  await api.connect();
  let text = "";
  for await (const chunk of api.sendMessage("help")) text += chunk;
  console.log(text);
  await api.close();
}
