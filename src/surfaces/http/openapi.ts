import swagger from "@fastify/swagger";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import type { OpenAPIV3_1 } from "openapi-types";
import { isObject, type JsonValue } from "../../domain/json.ts";
import { VERSION } from "../../domain/version.ts";
import type { App } from "./context.ts";

/** In the order a reader meets them. Every route's tag is one of these. */
const TAGS = {
  agents:
    "An agent is identified by its id. It has sessions, one after the other or in parallel, and defaults for new ones.",
  sessions:
    "A session is one agent at work: it advances in steps and can be guided, paused, forked and ended at any time.",
  steps: "What sessions did: one immutable row per step.",
  actions: "Every request to a session is an action in its queue, with a receipt that shows its progress.",
  conversations: "Where people and sessions talk to each other.",
  events: "Live events, as server-sent events.",
  webhooks: "Notifications for your own programs when sessions ask, end or fail, and their deliveries.",
  system: "Monikers, tools, search, costs, and the server's state.",
  openai: "OpenAI's API, for clients that speak it: an agent is a model.",
};

const DESCRIPTION = `Long-lived agents that never lose a step and that people can steer while they run.

Requests and responses are JSON. An error is a problem as in [RFC 9457](https://www.rfc-editor.org/rfc/rfc9457); \`errors\` names the
fields. If the server has a token (\`EVERSTEP_TOKEN\`), every request except \`/health\` carries it: \`Authorization: Bearer …\`.
Times are ISO 8601 in UTC. Creating a session with your own \`session_id\` is idempotent, so the request may be repeated.`;

const zodToJsonConfig = { unrepresentable: "any" } as const;

/** The API's description at `/openapi.json`, made from the routes' schemas. */
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
      servers: [{ url: "/", description: "The server of this description" }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          token: { type: "http", scheme: "bearer", description: "EVERSTEP_TOKEN, if the server has one" },
          metrics_token: {
            type: "http",
            scheme: "bearer",
            description: "EVERSTEP_METRICS_TOKEN, if the server has one",
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

/** Each schema exists twice, for requests and for responses; few are needed as both. */
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
  const needed = Object.entries(schemas).filter(([name]) => used.has(name));
  return { ...document, components: { ...components, schemas: Object.fromEntries(needed) } };
}

const SCHEMAS = "#/components/schemas/";

function schemaNamesIn(value: JsonValue): string[] {
  if (Array.isArray(value)) return value.flatMap(schemaNamesIn);
  if (!isObject(value)) return [];
  const { $ref: reference } = value;
  const own = typeof reference === "string" && reference.startsWith(SCHEMAS) ? [reference.slice(SCHEMAS.length)] : [];
  return [...own, ...Object.values(value).flatMap(schemaNamesIn)];
}
