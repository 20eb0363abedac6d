import assert from "node:assert/strict";
import { posix } from "node:path";
import { describe, test } from "node:test";
import { brokenImportRules, type ImportRules, importsOf } from "./import-rules.ts";
import { readFolder } from "./repository-files.ts";

const NETWORK_CLIENT = ["agent-api", "client", "concurrency", "domain"];

/** Which layer may import which. Anything not listed is forbidden; a layer may always import itself. */
const RULES: ImportRules = {
  layers: {
    domain: [],
    files: [],
    concurrency: [],
    signing: [],
    // Spans: names, ids, and the port that creates them.
    tracing: ["domain"],
    "tracing/opentelemetry": ["domain", "tracing"],
    // Renders untrusted text for the bot and the console.
    markdown: [],
    store: ["domain", "concurrency"],
    "store/embedded": ["domain", "concurrency", "files", "store"],
    "store/postgres": ["domain", "concurrency", "store"],
    "store/open-store.ts": ["domain", "store", "store/embedded", "store/postgres"],
    // Files of history that left the store's tables: the embedded engine's rows, read and written by both engines.
    archive: ["domain", "files", "store", "store/embedded"],
    // A request names a moniker, whose parameters are validated before the request is accepted.
    actions: ["domain", "concurrency", "store", "sessions", "monikers", "monikers/catalog.ts", "tracing"],
    // Surfaces submit actions; only the runtime has them carried out.
    "actions/dispatcher.ts": ["actions", "domain", "store", "sessions"],
    sessions: ["domain", "concurrency", "store", "monikers", "monikers/catalog.ts", "tools/tool.ts", "tracing"],
    // Steps receive tools, and a user's own file may define one.
    monikers: ["domain", "tools/tool.ts", "tools/define-tool.ts", "monikers/llm/provider-models.ts"],
    // The packages it imports change often; nothing else may depend on them.
    "monikers/llm/provider-models.ts": ["monikers"],
    "monikers/catalog.ts": ["domain", "concurrency", "monikers"],
    // Steps that run outside this process.
    "monikers/remote": ["domain", "concurrency", "signing", "monikers", "monikers/catalog.ts"],
    "tools/tool.ts": ["domain", "monikers"],
    "tools/define-tool.ts": ["domain", "monikers"],
    tools: ["domain", "concurrency", "store", "monikers", "tools/tool.ts", "tools/define-tool.ts"],
    events: ["domain", "store"],
    // Sent by the runtime on its own initiative.
    webhooks: ["domain", "signing", "store"],
    surfaces: ["domain", "concurrency", "events", "store"],
    "surfaces/http": [
      "surfaces",
      "domain",
      "actions",
      "archive",
      "events",
      "store",
      "webhooks",
      "monikers/catalog.ts",
      "tools/tool.ts",
      "tracing",
    ],
    // Other protocols on top of the HTTP API's parts; there is no second way to write.
    "surfaces/openai": ["surfaces", "surfaces/http", "domain", "actions", "events", "store", "monikers/catalog.ts"],
    "surfaces/mcp": ["surfaces", "surfaces/http", "domain", "actions", "events", "store"],
    "surfaces/socket": ["surfaces", "domain", "concurrency", "events", "store"],
    "surfaces/agent-ws": ["surfaces", "domain", "concurrency", "actions", "events", "store", "agent-api"],
    "surfaces/matrix": [...NETWORK_CLIENT, "files", "markdown"],
    "surfaces/cli": NETWORK_CLIENT,
    "agent-api": ["domain", "concurrency"],
    // It also runs in browsers.
    client: ["domain", "concurrency"],
    main: ["*"],
  },
  packages: {
    "@lancedb/lancedb": ["store/embedded", "archive"],
    "apache-arrow": ["store/embedded"],
    // The bot keeps its own small state and never sees the runtime's.
    "node:sqlite": ["store/embedded", "surfaces/matrix"],
    postgres: ["store/postgres"],
    "@boundaryml/baml": ["monikers"],
    "@modelcontextprotocol/client": ["tools", "surfaces/cli"],
    "@modelcontextprotocol/server": ["surfaces/mcp", "surfaces/cli"],
    "@ai-sdk": ["monikers/llm/provider-models.ts"],
    "@opentelemetry": ["tracing/opentelemetry"],
    tokenlens: ["monikers"],
    "matrix-js-sdk": ["surfaces/matrix"],
    marked: ["markdown"],
  },
  only_packages: { domain: ["zod", "ulid"], markdown: ["marked"], client: [] },
  // Loads users' own monikers.
  computed_imports: ["monikers/import-own.ts"],
};

const CODE = /\.(?:[cm]?[jt]sx?|css|sql)$/;

/** Folders of one person's machine, and the hosts that packages were fetched from. */
const MACHINE_TRACES = [
  /(?<![\w.])\/(?:home|Users)\/\w+/,
  /(?<![\w.])\/(?:root|work|mnt)\//,
  /\b[A-Z]:\\Users\\/,
  /\bregistry\.[a-z0-9-]+\.[a-z]{2,}/i,
  /\b(?:artifactory|jfrog|npmmirror|verdaccio)[.:]/i,
  /\b_authToken\b/,
];
const hasMachineTrace = (line: string): boolean => MACHINE_TRACES.some((trace) => trace.test(line));

describe("the source tree", () => {
  test("imports only what its layer may", async () => {
    const files = await readFolder("src");
    const read = files.filter((file) => importsOf(file.text).length > 0);
    assert.ok(
      read.length >= 5,
      `imports were found in ${read.length} of ${files.length} files, so nothing was checked`,
    );
    assert.deepEqual(brokenImportRules(files, RULES), []);
  });

  test("lets the console know of the server only the shapes of its rows, and share its client and how Markdown is read", async () => {
    const files = (await readFolder("console")).filter((file) => CODE.test(file.path));
    const reaching = files.flatMap(({ path, text }) =>
      text.split("\n").flatMap((line) => (/from "(?:\.\.\/)+src\//.test(line) ? [{ path, line }] : [])),
    );
    assert.ok(reaching.length > 0, "no import was found, so nothing was checked");
    const allowed = /^import (?:type .* from "(?:\.\.\/)+src\/domain\/|.* from "(?:\.\.\/)+src\/(?:markdown|client)\/)/;
    const broken = reaching.filter(({ line }) => !allowed.test(line));
    assert.deepEqual(broken, []);
  });

  test("lets the client load nothing but files of its own and of the domain that need no package", async () => {
    const files = new Map((await readFolder("src")).map(({ path, text }) => [path, text]));
    const loaded = new Set<string>();
    const load = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      const text = files.get(path)?.replaceAll(/^(?:import|export) type [^;]*;/gm, "") ?? assert.fail(path);
      for (const imported of importsOf(text)) {
        assert.ok(imported.startsWith("."), `${path} imports ${imported}`);
        load(posix.join(posix.dirname(path), imported));
      }
    };
    load("client/client.ts");
    assert.ok(loaded.size > 5, [...loaded].join(" "));
  });

  test("gives each rule that a file keeps an id of its own", async () => {
    const ids = (await readFolder("src")).flatMap(({ path, text }) =>
      [...text.matchAll(/^ \* ([A-Z]+-?\d+) {2}\S/gm)].map(([, id]) => ({ id, path })),
    );
    assert.ok(ids.length > 50, `only ${ids.length} ids were found`);
    const taken = new Set<string | undefined>();
    const repeated = ids.filter(({ id }) => taken.size === taken.add(id).size);
    assert.deepEqual(repeated, []);
  });

  test("names no machine's folders and no package host", async () => {
    const files = await readFolders(["src", "test", "bench", "torture", "docs"]);
    assert.ok(files.length > 0, "no file was read");
    const traces = files.flatMap((file) =>
      file.text
        .split("\n")
        .flatMap((line, index) => (hasMachineTrace(line) ? [`${file.path}:${index + 1}: ${line.trim()}`] : [])),
    );
    assert.deepEqual(traces, []);
  });
});

describe("the checks themselves", () => {
  const check = (path: string, text: string): string[] => brokenImportRules([{ path, text }], RULES);
  const ALLOWED: [string, string][] = [
    ["store/store.ts", 'import type { Action } from "../domain/action.ts";'],
    [
      "store/embedded/lancedb-store.ts",
      'import { DatabaseSync } from "node:sqlite";\nimport { diff } from "../state-delta.ts";',
    ],
    ["store/open-store.ts", 'const { open } = await import("./embedded/lancedb-store.ts");'],
    ["main/serve.ts", 'import { openEmbeddedStore } from "../store/embedded/lancedb-store.ts";'],
    ["surfaces/http/routes.ts", 'import { catalog } from "../../monikers/catalog.ts";'],
    ["domain/ids.ts", '// It was said: import { x } from "../main/x.ts"\nimport { z } from "zod";'],
  ];
  for (const [path, text] of ALLOWED) {
    test(`${path} may contain ${JSON.stringify(text)}`, () => assert.deepEqual(check(path, text), []));
  }

  const REFUSED: [string, string][] = [
    ["domain/action.ts", 'import { openStore } from "../store/store.ts";'],
    ["domain/action.ts", 'import { readFile } from "node:fs/promises";'],
    ["domain/action.ts", 'import "../main/serve.ts";'],
    ["store/store.ts", 'import type {\n  EmbeddedStore,\n} from "./embedded/lancedb-store.ts";'],
    ["store/postgres/commit.ts", 'export * from "../embedded/lancedb-store.ts";'],
    ["store/embedded/lancedb-store.ts", 'new Worker(new URL("../../sessions/worker.ts", import.meta.url));'],
    ["actions/action-queue.ts", 'export { commit } from "../store/embedded/lancedb-store.ts";'],
    ["actions/action-queue.ts", 'import { DatabaseSync } from "node:sqlite";'],
    ["sessions/runner.ts", 'import { submit } from "../actions/action-queue.ts";'],
    ["actions/dispatcher.ts", 'const { serve } = await import("../main/serve.ts");'],
    ["surfaces/http/routes.ts", 'import { Dispatcher } from "../../actions/dispatcher.ts";'],
    ["surfaces/http/routes.ts", 'import { joke } from "../../monikers/joke.ts";'],
    ["surfaces/http/routes.ts", 'import { io } from "../socket/server.ts";'],
    ["surfaces/cli/ps.ts", 'import type { Store } from "../../store/store.ts";'],
    ["surfaces/matrix/bot.ts", 'import { submit } from "../../actions/action-queue.ts";'],
    ["actions/action-queue.ts", "const part = await import(name);"],
    ["actions/action-queue.ts", "const part = await import(`../${name}/serve.ts`);"],
    ["actions/action-queue.ts", 'import { serve } from "#serve";'],
    ["actions/action-queue.ts", 'import { rows } from "../../test/rows.ts";'],
    ["helpers/anything.ts", "export {};"],
  ];
  for (const [path, text] of REFUSED) {
    test(`${path} may not contain ${JSON.stringify(text)}`, () => assert.equal(check(path, text).length, 1));
  }

  test("a machine's folder and a package host are found, a path of the product is not", () => {
    const named = [
      ["", "home", "someone", "x"].join("/"),
      ["", "root", "x"].join("/"),
      ["registry", "example", "org"].join("."),
    ];
    for (const name of named) assert.ok(hasMachineTrace(`see ${name}`), name);
    for (const name of ["/workspace/contexts/a.md", "/api/agents", "./data", "src/domain/work/ids.ts"]) {
      assert.ok(!hasMachineTrace(`see ${name}`), name);
    }
  });
});

async function readFolders(folders: string[]): Promise<{ path: string; text: string }[]> {
  const read = folders.map(async (folder) =>
    (await readFolder(folder)).map(({ path, text }) => ({ path: `${folder}/${path}`, text })),
  );
  return (await Promise.all(read)).flat();
}
