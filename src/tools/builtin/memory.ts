import { z } from "zod";
import type { SearchHit } from "../../domain/search.ts";
import { shorten } from "../../monikers/extract.ts";
import type { Store } from "../../store/store.ts";
import { ZodToolServer, zodTool } from "../zod-tool-server.ts";

const LONGEST_HIT = 1000;

/** Searches everything ever said by people and agents. */
export const memoryServer = (store: Pick<Store, "search">): ZodToolServer =>
  new ZodToolServer("memory", [
    zodTool({
      name: "search",
      description:
        "Searches everything ever said here, in any session or conversation. Each hit contains every word of the query.",
      input: z.object({
        query: z.string().min(1).max(1000).describe("Words; case and diacritics are ignored."),
        agent_id: z.string().optional().describe("Only what sessions of this agent said."),
        session_id: z.string().optional().describe("Only what this session said."),
        limit: z.int().min(1).max(50).default(10),
      }),
      read_only: true,
      async run({ query, agent_id, session_id, limit }) {
        const where = { ...(agent_id && { agent_id }), ...(session_id && { session_id }) };
        const hits = await store.search({ q: query, limit, ...where });
        return hits.length > 0 ? hits.map(hitText).join("\n\n") : "Nothing was found.";
      },
    }),
  ]);

const hitText = ({ kind, session_id, iteration, conversation_id, text }: SearchHit): string => {
  const place = kind === "step" ? `session ${session_id}, step ${iteration}` : `conversation ${conversation_id}`;
  return `[${place}] ${shorten(text, LONGEST_HIT)}`;
};
