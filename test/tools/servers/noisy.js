// Works, but prints lines that are not messages, and floods its log.
import { initialize, send, serve, text, tool } from "./json-rpc.js";

process.stdout.write("Welcome to the server!\n\n{}\n[1,2\n\u0000\u0001\n");
serve({
  initialize,
  "tools/list": () => ({ tools: [tool("chatter"), tool("huge")] }),
  "tools/call": ({ name }) => {
    if (name === "huge") return text("x".repeat(40 * 1024 * 1024));
    process.stdout.write("not a message\n");
    send({ id: 999_999, result: {} });
    send({ method: "notifications/unheard_of", params: {} });
    for (let line = 0; line < 5000; line++) process.stderr.write(`line ${line}\n`);
    process.stderr.write(`${"y".repeat(1024 * 1024)}\n`);
    return text(`the secret is ${process.env.SECRET}`);
  },
});
process.stderr.write(`started with ${process.env.SECRET}\n`);
