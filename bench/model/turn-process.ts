import { ModelServer } from "../../test/llm/model-server.ts";
import { askedToStop, say } from "../runtime/child.ts";

/** The address it listens on, then the body of each call it was told to report. */
export type TurnMessage = { url: string } | { body: string };

const TEXT = "I shall look into that file first, and then tell you what I found in it. ".repeat(4);

/** A provider whose model writes a few sentences and calls one tool, in any wire format. */
await using server = await ModelServer.open();
server.otherwise((call) => {
  if (call.headers["x-bench"] === undefined && server.calls.length === 1) say({ body: JSON.stringify(call.body) });
  if (server.calls.length > 1) server.calls.length = 1;
  call.turn({ text: TEXT, calls: [{ id: "call_1", name: "files__read", args: '{"path": "notes.md"}' }] });
});
say({ url: server.url });
await askedToStop();
