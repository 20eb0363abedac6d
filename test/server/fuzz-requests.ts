import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Random } from "../store/random.ts";
import { pathOf } from "./api.ts";
import { mutated, randomJson, randomText } from "./random-json.ts";

/** Rows that exist, so that requests get past the first check. */
export const AGENT = "fuzzed agent";
export const SESSION = "fuzzed session";
export const CONVERSATION = "fuzzed conversation";
export const MESSAGE = "fuzzed message";

type Route = { method: string; path: string; body: JsonObject };

const OPTIONS = {
  stop_on_done: true,
  max_steps: 5,
  max_runtime_s: 9,
  max_tokens: 9,
  step_interval_ms: 50,
  step_timeout_s: 5,
  retry: { max_attempts: 1, backoff_ms: 10 },
};
const CREATION = {
  agent_id: AGENT,
  moniker: "echo",
  params: {},
  options: OPTIONS,
  conversation_id: CONVERSATION,
  urgency: 3,
};
const GUIDANCE = { guidance: { text: "hello", data: [1] }, mode: "next" };
export const ROUTES: Route[] = [
  { method: "POST", path: "/api/agents", body: CREATION },
  {
    method: "PUT",
    path: pathOf("agents", AGENT, "config"),
    body: { moniker: "count", params: { to: 1 }, options: OPTIONS, description: "x" },
  },
  {
    method: "POST",
    path: "/api/actions",
    body: {
      action_type: "agent_input",
      agent_id: AGENT,
      session_id: SESSION,
      payload: { text: "hello" },
      metadata: { a: 1 },
      urgency: 1,
    },
  },
  { method: "POST", path: pathOf("sessions", SESSION, "pause"), body: { reason: "x" } },
  { method: "POST", path: pathOf("sessions", SESSION, "resume"), body: { reason: "x", options: OPTIONS } },
  { method: "POST", path: pathOf("sessions", "unknown", "destroy"), body: { reason: "x" } },
  { method: "POST", path: pathOf("sessions", SESSION, "interrupt"), body: GUIDANCE },
  {
    method: "POST",
    path: pathOf("sessions", SESSION, "fork"),
    body: { iteration: 0, session_id: "fork", guidance: "x" },
  },
  { method: "POST", path: pathOf("agents", AGENT, "pause"), body: { reason: "x" } },
  { method: "POST", path: pathOf("agents", AGENT, "resume"), body: { reason: "x" } },
  { method: "POST", path: pathOf("agents", AGENT, "destroy"), body: { reason: "x" } },
  { method: "POST", path: pathOf("agents", AGENT, "interrupt"), body: GUIDANCE },
  {
    method: "POST",
    path: "/api/conversations",
    body: { conversation_id: "c", title: "t", created_by: "ann", tags: ["a"] },
  },
  { method: "PATCH", path: pathOf("conversations", CONVERSATION), body: { title: "t", status: "open", tags: ["a"] } },
  {
    method: "POST",
    path: pathOf("conversations", CONVERSATION, "participants"),
    body: { agent_id: AGENT, session_id: SESSION, role: "listener" },
  },
  {
    method: "POST",
    path: pathOf("conversations", CONVERSATION, "messages"),
    body: { user_id: "ann", text: "hello", data: { a: [1] }, message_id: MESSAGE, to: [SESSION], mode: "next" },
  },
];

export const LISTS = [
  "/api/agents",
  pathOf("agents", AGENT),
  pathOf("agents", AGENT, "config"),
  pathOf("agents", AGENT, "sessions"),
  "/api/sessions",
  pathOf("sessions", SESSION),
  "/api/actions",
  "/api/agent-steps",
  "/api/agent-steps/latest",
  "/api/conversations",
  pathOf("conversations", CONVERSATION),
  pathOf("conversations", CONVERSATION, "participants"),
  pathOf("conversations", CONVERSATION, "messages"),
  "/api/monikers",
  "/api/search",
  "/health",
];
const FIELDS = [
  "limit",
  "offset",
  "status",
  "agent_id",
  "session_id",
  "processed",
  "min_iteration",
  "max_iteration",
  "after_iteration",
  "since_created_at",
  "since",
  "after",
  "tag",
  "q",
  "__proto__",
  "x",
];
const VALUES = [
  "0",
  "1",
  "-1",
  "500",
  "501",
  "1e3",
  "9007199254740991",
  "999999999999",
  "1000000000000",
  "true",
  "false",
  "ok",
  "error",
  "done",
  "running",
  "open",
  "hello",
  AGENT,
  SESSION,
  MESSAGE,
  "2024-01-01T00:00:00.000Z",
  "9999-12-31T23:59:59.999Z",
  "",
];
/** Without monikers that continue by themselves, so that random bodies start no work that lasts for hours. */
const NAMES = [
  "agent_id",
  "session_id",
  "conversation_id",
  "message_id",
  "moniker",
  "params",
  "options",
  "max_steps",
  "retry",
  "guidance",
  "mode",
  "payload",
  "action_type",
  "iteration",
  "user_id",
  "text",
  "to",
  "tags",
  "status",
  "__proto__",
  "constructor",
  "toJSON",
  "length",
];

/** A body that resembles a valid one, or does not, sometimes cut off. */
export function bodyFor(random: Random, valid: JsonObject): string {
  const value = random.chance(0.7) ? mutated(random, freshIds(random, valid), NAMES) : randomJson(random, NAMES);
  const text = JSON.stringify(value);
  return random.chance(0.03) ? text.slice(0, random.below(text.length)) : text;
}

/** Most bodies create new rows, some repeat an id. */
function freshIds(random: Random, body: JsonObject): JsonObject {
  const own = ["message_id", "conversation_id"].filter((name) => body[name] === MESSAGE || body[name] === "c");
  const ids = Object.fromEntries(own.map((name) => [name, newId()]));
  return random.chance(0.8) ? { ...body, ...ids } : body;
}

export function queryFor(random: Random): string {
  const pairs = Array.from({ length: random.below(5) }, () => {
    const value = random.chance(0.7) ? random.pick(VALUES) : randomText(random).toWellFormed().slice(0, 300);
    return `${random.pick(FIELDS)}=${encodeURIComponent(value)}`;
  });
  if (random.chance(0.5)) pairs.push(`session_id=${encodeURIComponent(SESSION)}`, "q=hello");
  return random.chance(0.05) ? `${pairs.join("&")}%` : pairs.join("&");
}

export function randomPath(random: Random): string {
  const roots = ["agents", "sessions", "actions", "conversations", "agent-steps", "search"];
  const segments = [AGENT, SESSION, "pause", "fork", "config", "participants", "messages"];
  const part = () => (random.chance(0.5) ? random.pick(segments) : randomText(random).slice(0, 300));
  const parts = [random.pick(roots), ...Array.from({ length: random.below(4) }, part)];
  return `/api/${parts.map((one) => encodeURIComponent(one.toWellFormed())).join("/")}`;
}
