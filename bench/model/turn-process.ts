import { ModelServer } from "../../test/llm/model-server.ts";
import { askedToStop, say } from "../runtime/child.ts";

/** Where it listens, and then the body of each call that it was asked to tell. */
export type TurnMessage = { url: string } | { body: string };

const TEXT = "I shall look into that file first, and then tell you what I found in it. ".repeat(4);

/** A provider whose model says a few sentences and asks for one tool, in whatever wire format it is asked. */
await using server = await ModelServer.open();
server.otherwise((call) => {
  if (call.headers["x-bench"] === undefined && server.calls.length === 1) say({ body: JSON.stringify(call.body) });
  if (server.calls.length > 1) server.calls.length = 1;
  call.turn({ text: TEXT, calls: [{ id: "call_1", name: "files__read", args: '{"path": "notes.md"}' }] });
});
say({ url: server.url });
await askedToStop();
