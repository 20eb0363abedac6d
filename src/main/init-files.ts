import { VERSION } from "../domain/version.ts";

/** The files of a new project by path, except `.env.example`, which comes from the package. */
export const projectFiles = (name: string): Readonly<Record<string, string>> => ({
  "package.json": `${JSON.stringify(manifest(name), null, 2)}\n`,
  "tsconfig.json": TSCONFIG,
  "monikers/countdown.ts": MONIKER,
  "test/countdown.test.ts": TEST,
  "mcp.json": `${JSON.stringify({ mcpServers: {} }, null, 2)}\n`,
  "AGENTS.md": AGENTS,
  ".gitignore": "node_modules/\n/data/\n/workspace/\n/matrix-state/\n.env\n*.log\n",
});

export const DEVELOPMENT = { "@types/node": "^24.0.0", typescript: "^7.0.0" };
export const SCRIPTS = { start: "everstep serve --watch", test: "node --test", types: "tsc" };

const manifest = (name: string): object => ({
  name,
  version: "0.1.0",
  private: true,
  type: "module",
  scripts: SCRIPTS,
  dependencies: { everstep: `^${VERSION}` },
  devDependencies: DEVELOPMENT,
});

const TSCONFIG = `{
  "compilerOptions": {
    "target": "es2024",
    "module": "nodenext",
    "types": ["node"],
    "noEmit": true,
    "strict": true,
    "erasableSyntaxOnly": true,
    "verbatimModuleSyntax": true,
    "allowImportingTsExtensions": true,
    "noUncheckedIndexedAccess": true
  },
  "include": ["monikers", "tools", "test"]
}
`;

const MONIKER = `import { defineMoniker, guidanceText, z } from "everstep/moniker";

/**
 * A step gets the state that the last one returned, and the guidance sent since. What it returns is on disk before the next one
 * begins.
 */
export default defineMoniker({
  name: "countdown",
  kind: "finite",
  description: "Counts down, one number per step; a number sent as guidance is where it continues.",
  params: z.object({ from: z.int().min(1).max(1000).default(5).describe("The first number.") }),
  options: { step_interval_ms: 1000 },
  step({ step, state, guidance = [] }, { params }) {
    const requested = guidance.map((item) => guidanceText(item) ?? "").findLast((text) => /^\\d{1,4}$/.test(text));
    const before = typeof state["left"] === "number" ? state["left"] : params.from + 1;
    const left = requested === undefined ? before - 1 : Number(requested);
    return { step, next_step: String(left), state: { left }, text: left > 0 ? \`\${left} …\` : "Liftoff!", done: left <= 0 };
  },
});
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import countdown from "../monikers/countdown.ts";

const context = {
  params: countdown.params.parse({ from: 2 }),
  signal: new AbortController().signal,
  ids: { agent_id: "agent", session_id: "session", conversation_id: null, iteration: 0 },
  attempt: { number: 1, after: null },
  llm: null,
  tools: {} as never,
  unread: async () => [],
  emit() {},
};

test("it counts down and lifts off", async () => {
  const first = await countdown.step({ step: "0", state: {} }, context);
  assert.equal(first.text, "2 …");
  const last = await countdown.step({ step: "1", state: { left: 1 } }, context);
  assert.deepEqual({ text: last.text, done: last.done }, { text: "Liftoff!", done: true });
});

test("it continues from the number sent as guidance", async () => {
  const next = await countdown.step({ step: "2", state: { left: 2 }, guidance: ["7"] }, context);
  assert.deepEqual(next.state, { left: 7 });
});
`;

const AGENTS = `# An Everstep project

Everstep runs long-lived agents that never lose a step and that people can steer while they run.

\`\`\`
npm start                                    # serve on http://127.0.0.1:4180 and reload changed monikers
npm test                                     # the monikers' tests, offline
npm run types                                # the compiler
npx everstep create countdown --param from=5 # start a session
npx everstep logs SESSION -f                 # watch it
npx everstep interrupt SESSION 9             # send guidance to its next step
npx everstep doctor                          # what is missing, and what to do
\`\`\`

- \`monikers/NAME.ts\` is a task: its default export is \`defineMoniker({...})\` of \`everstep/moniker\`. One call of \`step(frame, context)\` is one
  step. Everything it knows is in the frame (\`state\`, \`guidance\`) and \`context.params\`; everything it wants to keep it returns as \`state\`, in JSON.
- A step may be called again with the same frame, after a crash or an error: make its side effects idempotent, or return
  \`once: true\` in the frame before.
- Keep steps short: a pause, guidance and a crash take effect between two of them. Pass \`context.signal\` on to whatever waits.
- \`context.llm\` is the language model, or null if none is configured: handle both.
- \`tools/*.ts\` export tools made by \`defineTool\`; \`mcp.json\` names MCP servers. Agents with a model can use both.
- Every moniker has a test in \`test/\` that calls its \`step\`.
- Settings are environment variables or lines of \`.env\`; \`.env.example\` lists them all. Never commit \`.env\`.
- Node runs the TypeScript as it is: only types that can be erased, relative imports with \`.ts\`.
`;
