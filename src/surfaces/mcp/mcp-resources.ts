import { type McpServer, ResourceNotFoundError, ResourceTemplate } from "@modelcontextprotocol/server";
import type { McpParts } from "./mcp-parts.ts";
import { sessionView, stepView } from "./session-view.ts";

/** How many of each are listed as resources: the newest. */
const LISTED = 50;
const STEPS = 100;
const mimeType = "application/json";
const SESSIONS = "everstep://sessions/";
const CONVERSATIONS = "everstep://conversations/";

/** Sessions and conversations as documents that a client can attach. */
export function addResources(server: McpServer, { store }: McpParts): void {
  const contents = (uri: URL, value: unknown) => ({
    contents: [{ uri: uri.href, mimeType, text: JSON.stringify(value, null, 1) }],
  });
  const listSessions = async () => {
    const { sessions } = await store.summarizeSessions({ limit: LISTED, offset: 0, sort: "updated_at" });
    const resources = sessions.map(({ session_id, agent_id, moniker, status, text }) => ({
      uri: SESSIONS + encodeURIComponent(session_id),
      name: session_id,
      title: `${agent_id} (${moniker}, ${status})`,
      ...(text !== null && { description: text }),
      mimeType,
    }));
    return { resources };
  };
  server.registerResource(
    "session",
    new ResourceTemplate(`${SESSIONS}{session_id}`, { list: listSessions }),
    { title: "Session", description: `A session and its last ${STEPS} steps`, mimeType },
    async (uri, { session_id }) => {
      const session = await store.getSession(idOf(session_id));
      if (!session) throw new ResourceNotFoundError(uri.href);
      const after_iteration = Math.max(-1, session.iteration - STEPS);
      const steps = await store.listSteps({ session_id: session.session_id, after_iteration, limit: STEPS, offset: 0 });
      return contents(uri, { session: sessionView(session), steps: steps.map(stepView) });
    },
  );
  const listConversations = async () => {
    const conversations = await store.listConversations({ limit: LISTED, offset: 0 });
    const resources = conversations.map(({ conversation_id, title }) => ({
      uri: CONVERSATIONS + encodeURIComponent(conversation_id),
      name: conversation_id,
      ...(title !== null && { title }),
      mimeType,
    }));
    return { resources };
  };
  server.registerResource(
    "conversation",
    new ResourceTemplate(`${CONVERSATIONS}{conversation_id}`, { list: listConversations }),
    { title: "Conversation", description: "A conversation: who takes part and what was said", mimeType },
    async (uri, variables) => {
      const conversation_id = idOf(variables["conversation_id"]);
      const conversation = await store.getConversation(conversation_id);
      if (!conversation) throw new ResourceNotFoundError(uri.href);
      const [participants, messages] = await Promise.all([
        store.listParticipants(conversation_id),
        store.listMessages({ conversation_id, limit: 500, offset: 0 }),
      ]);
      return contents(uri, { conversation, participants, messages });
    },
  );
}

const idOf = (variable: string | string[] | undefined): string =>
  decodeURIComponent((Array.isArray(variable) ? variable[0] : variable) ?? "");
