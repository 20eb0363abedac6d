import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { isObject, type JsonObject, type JsonValue } from "../../src/domain/json.ts";
import { API_TYPES, formattedApiTypes } from "../client/api-types-file.ts";
import { Api, pathOf, read } from "./api.ts";
import { sharedServer, TIMEOUT } from "./server-fixture.ts";

const server = sharedServer();

/** The contract's table: its calls and the status of each on success. */
const CONTRACT: Record<string, number> = {
  "post /api/agents": 202,
  "get /api/agents": 200,
  "get /api/agents/{agent_id}": 200,
  "get /api/agents/{agent_id}/config": 200,
  "put /api/agents/{agent_id}/config": 200,
  "get /api/agents/{agent_id}/sessions": 200,
  "get /api/sessions": 200,
  "get /api/sessions/{session_id}": 200,
  ...Object.fromEntries(
    ["pause", "resume", "destroy", "interrupt"].flatMap((verb) => [
      [`post /api/sessions/{session_id}/${verb}`, 202],
      [`post /api/agents/{agent_id}/${verb}`, 202],
    ]),
  ),
  "post /api/sessions/{session_id}/fork": 202,
  "post /api/sessions/{session_id}/answer": 202,
  "post /api/actions": 202,
  "get /api/actions/{action_id}": 200,
  "get /api/actions": 200,
  "get /api/agent-steps": 200,
  "post /api/sessions/{session_id}/steps/{iteration}/rerun": 200,
  "get /api/agent-steps/latest": 200,
  "post /api/conversations": 201,
  "get /api/conversations": 200,
  "get /api/conversations/{conversation_id}": 200,
  "patch /api/conversations/{conversation_id}": 200,
  "post /api/conversations/{conversation_id}/participants": 201,
  "get /api/conversations/{conversation_id}/participants": 200,
  "delete /api/conversations/{conversation_id}/participants/{participant_id}": 204,
  "post /api/conversations/{conversation_id}/messages": 201,
  "get /api/conversations/{conversation_id}/messages": 200,
  "get /api/sessions/{session_id}/events": 200,
  "get /api/events": 200,
  "get /api/webhooks": 200,
  "get /api/webhooks/{webhook_id}": 200,
  "put /api/webhooks/{webhook_id}": 200,
  "delete /api/webhooks/{webhook_id}": 204,
  "post /api/webhooks/{webhook_id}/rotate-secret": 200,
  "get /api/webhooks/{webhook_id}/deliveries": 200,
  "post /api/webhooks/{webhook_id}/deliveries/{delivery_id}/send-again": 202,
  "get /v1/models": 200,
  "post /v1/chat/completions": 200,
  "post /v1/responses": 200,
  "get /v1/responses/{response_id}": 200,
  "post /v1/responses/{response_id}/cancel": 200,
  "get /api/session-summaries": 200,
  "get /api/system": 200,
  "post /api/system/release": 200,
  "get /api/monikers": 200,
  "post /api/monikers/reload": 200,
  "get /api/search": 200,
  "get /health": 200,
  "get /metrics": 200,
  "post /reset": 200,
};

const schemaShape = z.looseObject({});
const contentShape = z.record(z.string(), z.object({ schema: schemaShape }));
const routeShape = z.object({
  operationId: z.string().regex(/^[a-z][a-zA-Z]+$/),
  summary: z.string().min(1),
  tags: z.array(z.string()).min(1),
  parameters: z
    .array(
      z.object({
        in: z.enum(["path", "query"]),
        name: z.string(),
        required: z.boolean().optional(),
        schema: schemaShape,
      }),
    )
    .default([]),
  requestBody: z.object({ content: contentShape, required: z.boolean().optional() }).optional(),
  responses: z.record(
    z.string().regex(/^[1-5]\d\d$/),
    z.object({ description: z.string().min(1), content: contentShape.optional() }),
  ),
});
const documentShape = z.looseObject({
  openapi: z.string().regex(/^3\.1\.\d+$/),
  info: z.object({ title: z.string().min(1), version: z.string().min(1), description: z.string() }),
  paths: z.record(
    z.string().regex(/^\//),
    z.record(z.enum(["get", "post", "put", "patch", "delete"]), routeShape.optional()),
  ),
  components: z.object({
    schemas: z.record(z.string(), schemaShape),
    securitySchemes: z.record(
      z.string(),
      z.object({ type: z.literal("http"), scheme: z.literal("bearer"), description: z.string() }),
    ),
  }),
  servers: z.tuple([z.object({ url: z.literal("/"), description: z.string() })]),
  tags: z.array(z.object({ name: z.string(), description: z.string().min(1) })),
});

const REDOCLY = fileURLToPath(import.meta.resolve("@redocly/cli/bin/cli.js"));
const lintShape = z.object({
  problems: z.array(
    z.object({
      ruleId: z.string(),
      message: z.string(),
      location: z.array(z.object({ pointer: z.string().optional() })),
    }),
  ),
});

describe("GET /openapi.json", () => {
  let document: z.infer<typeof documentShape>;
  let plain: JsonObject;
  let routes: [name: string, route: z.infer<typeof routeShape>][];
  before(async () => {
    const answer = await new Api(server().url).get("/openapi.json");
    document = read(answer, 200, documentShape);
    plain = JSON.parse(answer.text) as JsonObject;
    routes = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, route]): typeof routes =>
        route ? [[`${method} ${path}`, route]] : [],
      ),
    );
  });

  test("is what the client's types were made from", async () => {
    const expected = await formattedApiTypes(server().url);
    const lines = (await readFile(API_TYPES, "utf8")).split("\n");
    const stale = lines.findIndex((line, index) => line !== expected.split("\n")[index]);
    assert.equal(stale, -1, `line ${stale + 1} is stale; make them anew with: npm run generate:client-types`);
    assert.equal(lines.join("\n").length, expected.length);
  });

  test("has every call of the contract with its good answer", () => {
    const documented = new Map(routes);
    for (const [name, status] of Object.entries(CONTRACT))
      assert.ok(documented.get(name)?.responses[status], `${name} answers ${status}`);
  });

  test("names every operation once, by an id of its own", () => {
    const ids = routes.map(([, { operationId }]) => operationId);
    assert.deepEqual(
      ids.filter((id, place) => ids.indexOf(id) !== place),
      [],
    );
  });

  test("describes every tag, and each one is used", () => {
    const used = new Set(routes.flatMap(([, { tags }]) => tags));
    assert.deepEqual(document.tags.map(({ name }) => name).sort(), [...used].sort());
  });

  test("passes Redocly's recommended rules without an error or a warning", TIMEOUT, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "everstep-openapi-"));
    t.after(() => rm(folder, { recursive: true }));
    const lint = async (name: string, contents: unknown) => {
      await writeFile(join(folder, name), JSON.stringify(contents, null, 2));
      const environment = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
      const args = [REDOCLY, "lint", name, "--format", "json"];
      const { stdout } = spawnSync(process.execPath, args, { cwd: folder, env: environment, encoding: "utf8" });
      const { problems } = lintShape.parse(JSON.parse(stdout));
      return problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`);
    };
    assert.deepEqual(await lint("openapi.json", plain), []);
    const problems = await lint("without-servers.json", { ...plain, servers: [] });
    assert.ok(
      problems.some((problem) => problem.startsWith("no-empty-servers")),
      "the check finds what is missing",
    );
  });

  test("describes every parameter of every path, and each one is needed", () => {
    for (const [name, { parameters }] of routes) {
      const inPath = [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter ?? "");
      const described = parameters.filter((parameter) => parameter.in === "path");
      assert.deepEqual(described.map((parameter) => parameter.name).sort(), inPath.sort(), name);
      assert.ok(
        described.every(({ required }) => required),
        name,
      );
    }
  });

  test("has no reference that leads nowhere", () => {
    const references = referencesIn(plain);
    assert.ok(references.length > 50, `${references.length} references were found`);
    for (const reference of references) assert.ok(resolve(plain, reference), reference);
  });

  test("describes every error as a problem, under its own content type", () => {
    const errors = routes.flatMap(([name, { responses }]) =>
      Object.entries(responses).flatMap(([status, response]) =>
        status.startsWith("4") ? [{ name, status, response }] : [],
      ),
    );
    assert.ok(errors.length > 30, `${errors.length} errors are described`);
    const problem = { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } };
    const openAi = { "application/json": { schema: { $ref: "#/components/schemas/OpenAiError" } } };
    for (const { name, status, response } of errors)
      assert.deepEqual(response.content, name.includes(" /v1/") ? openAi : problem, `${name} ${status}`);
    const withId = routes.filter(([name]) => name.includes("{") && !name.startsWith("put"));
    for (const [name, { responses }] of withId) assert.ok(responses["404"], `${name} may answer 404`);
    for (const [name, { responses, requestBody }] of routes)
      if (requestBody) assert.ok(responses["400"], `${name} may answer 400`);
  });

  test("has schemas that are JSON Schema, and rows that fit them", TIMEOUT, async () => {
    const api = new Api(server().url);
    const schemas = JSON.stringify(document.components.schemas).replaceAll("#/components/schemas/", "#/$defs/");
    // JSON Schema's patterns are Unicode patterns, which zod does not support yet.
    const $defs = JSON.parse(schemas.replaceAll("\\\\P{Cc}", "."));
    const schemaOf = (name: string) => z.fromJSONSchema({ $defs, $ref: `#/$defs/${name}` });
    for (const name of Object.keys(document.components.schemas)) assert.ok(schemaOf(name), name);
    const fits = (name: string, value: unknown) => {
      const parsed = schemaOf(name).safeParse(value);
      assert.ok(parsed.success, `${name}: ${parsed.error?.message}`);
    };
    const { session_id, action_id, agent_id } = await api.create("echo");
    fits("Session", await api.session(session_id));
    fits("Action", await api.action(action_id));
    fits("Agent", JSON.parse((await api.get(pathOf("agents", agent_id))).text));
    fits("AgentConfig", JSON.parse((await api.put(pathOf("agents", agent_id, "config"), { moniker: "echo" })).text));
    const conversation = JSON.parse((await api.post("/api/conversations", {})).text) as { conversation_id: string };
    fits("Conversation", conversation);
    const path = pathOf("conversations", conversation.conversation_id);
    fits("Participant", JSON.parse((await api.post(`${path}/participants`, { user_id: "ann" })).text));
    const { message } = JSON.parse((await api.post(`${path}/messages`, { user_id: "ann", text: "hello" })).text) as {
      message: unknown;
    };
    fits("Message", message);
    fits("Problem", JSON.parse((await api.get(pathOf("agents", "nobody"))).text));
    assert.throws(() => fits("Session", { status: "dancing" }), "the check finds a wrong row");
  });
});

function referencesIn(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isObject(value)) return [];
  const own = typeof value["$ref"] === "string" ? [value["$ref"]] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}

function resolve(document: JsonObject, reference: string): JsonValue | undefined {
  const parts = reference.replace(/^#\//, "").split("/");
  return parts.reduce<JsonValue | undefined>((value, part) => (isObject(value) ? value[part] : undefined), document);
}
