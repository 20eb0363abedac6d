import swagger from "@fastify/swagger";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { OpenAPIV3_1 } from "openapi-types";
import { isObject, type JsonValue } from "../../domain/json.ts";
import { VERSION } from "../../domain/version.ts";
import type { App } from "./context.ts";

/** In the order in which one meets them. A route's tag is one of these. */
const TAGS = {
  agents:
    "An agent is known by its id. It has sessions, one after the other or side by side, and defaults for new ones.",
  sessions:
    "A session is one agent at work: it advances by steps, and can be guided, paused, forked and ended at any time.",
  steps: "What sessions did: one row for each step, never changed.",
  actions: "Every request to a session is an action in its queue, with a receipt that says what became of it.",
  conversations: "Where people and sessions talk to each other.",
  events: "What happens, as it happens, as server-sent events.",
  webhooks: "Where your own programs are told what sessions ask and that they ended, and what was sent there.",
  system: "Tasks, tools, search, costs, and how the server is.",
  openai: "OpenAI's API, for clients that speak it: an agent is a model.",
};

const DESCRIPTION = `Long-lived agents that never lose a step and that people can steer while they run.

Bodies and answers are JSON. An error is a problem as [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) has it; \`errors\` names the
fields. Where the server has a token (\`EVERSTEP_TOKEN\`), every request but \`/health\` carries it: \`Authorization: Bearer …\`.
Times are ISO 8601 in UTC. A session that is created again under its \`session_id\` is not made twice, so that a request may be repeated.`;

const zodToJsonConfig = { unrepresentable: "any" } as const;

/** The API's description at `/openapi.json`, made of the routes' schemas. */
export async function describeApi(app: App): Promise<void> {
  const withSchemas = createJsonSchemaTransformObject({ zodToJsonConfig });
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Everstep",
        version: VERSION,
        description: DESCRIPTION,
        license: { name: "MIT", identifier: "MIT" } as OpenAPIV3_1.LicenseObject,
      },
      servers: [{ url: "/", description: "The server that this description comes from" }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          token: { type: "http", scheme: "bearer", description: "EVERSTEP_TOKEN, where the server has one" },
          metrics_token: {
            type: "http",
            scheme: "bearer",
            description: "EVERSTEP_METRICS_TOKEN, where the server has one",
          },
        },
      },
      security: [{ token: [] }],
    },
    transform: createJsonSchemaTransform({ zodToJsonConfig }),
    transformObject: (document) => withoutUnusedSchemas(withSchemas(document) as OpenAPIV3_1.Document),
  });
  app.get("/openapi.json", { schema: { hide: true } }, () => app.swagger());
}

/** Each schema is there twice, as what is asked and as what is answered; few are needed as both. */
function withoutUnusedSchemas(document: OpenAPIV3_1.Document): OpenAPIV3_1.Document {
  const { schemas = {}, ...components } = document.components ?? {};
  const used = new Set<string>();
  const use = (value: unknown): void => {
    for (const name of schemaNamesIn(value as JsonValue)) {
      if (used.has(name)) continue;
      used.add(name);
      use(schemas[name]);
    }
  };
  use(document.paths);
  const kept = Object.entries(schemas).filter(([name]) => used.has(name));
  return { ...document, components: { ...components, schemas: Object.fromEntries(kept) } };
}

const SCHEMAS = "#/components/schemas/";

function schemaNamesIn(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(schemaNamesIn);
  if (!isObject(value)) return [];
  const { $ref: reference } = value;
  const own = typeof reference === "string" && reference.startsWith(SCHEMAS) ? [reference.slice(SCHEMAS.length)] : [];
  return [...own, ...Object.values(value).flatMap(schemaNamesIn)];
}
