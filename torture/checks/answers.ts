import type { Action } from "../../src/domain/action.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Entry, Ledger } from "../ledger.ts";
import type { Plan } from "../plan/plan.ts";
import type { Rows } from "../rows.ts";
import { GUESTS } from "../surroundings/guests.ts";
import { heardOf } from "./guidance.ts";

/** Invariant 1: a request answered 2xx took effect once, a refused one never, one in doubt at most once. */
export function checkAnswers(rows: Rows, ledger: Ledger, plan: Plan): string[] {
  return [
    ...checkBirths(rows, ledger, plan),
    ...checkControls(rows, ledger),
    ...checkWords(rows, ledger),
    ...checkMessages(rows, ledger),
    ...checkTitles(rows, ledger),
  ];
}

function checkBirths({ sessions, actions }: Rows, ledger: Ledger, plan: Plan): string[] {
  const births = Map.groupBy(
    [...actions.values()].filter(({ action_type }) => action_type === "agent_create" || action_type === "agent_fork"),
    ({ session_id }) => session_id,
  );
  const requests = new Map<string, Entry>();
  for (const entry of ledger.of("create")) requests.set(entry.operation.body.session_id, entry);
  for (const entry of ledger.of("fork")) requests.set(entry.operation.fork_id, entry);
  const violations = [...requests].flatMap(([session_id, { answer, doubtful }]) => {
    const own = births.get(session_id) ?? [];
    if (own.length > 1) return [`${session_id} was born ${own.length} times`];
    if (answer && (own[0]?.action_id !== idIn(answer) || own[0]?.outcome !== "ok"))
      return [`${session_id} was answered with ${idIn(answer)}, its birth is ${JSON.stringify(own[0])}`];
    if (answer && !sessions.has(session_id)) return [`${session_id} was accepted and is not there`];
    if (!answer && !doubtful && sessions.has(session_id)) return [`${session_id} was refused and is there`];
    return [];
  });
  for (const { operation } of ledger.of("create")) {
    const { agent_id, moniker, session_id } = operation.body;
    const session = sessions.get(session_id);
    if (session && (session.agent_id !== agent_id || session.moniker !== moniker))
      violations.push(`${session_id} is of ${session.agent_id} and ${session.moniker}`);
  }
  const ours = new Set([...requests.keys(), ...plan.agents.map(({ session_id }) => session_id)]);
  for (const { session_id, spawned_by, agent_id } of sessions.values())
    if (!ours.has(session_id) && !isOneChat(session_id) && agent_id !== GUESTS && spawned_by === null)
      violations.push(`nobody asked for session ${session_id}`);
  return violations;
}

function checkControls({ actions }: Rows, ledger: Ledger): string[] {
  const ids = new Set<string>();
  return [...ledger.of("control"), ...ledger.of("interrupt"), ...ledger.of("answer")].flatMap(
    ({ operation, answer }) => {
      if (!answer) return [];
      const action_id = idIn(answer);
      const action = actions.get(action_id);
      const type = `agent_${operation.kind === "control" ? operation.verb : operation.kind}`;
      if (ids.has(action_id)) return [`${action_id} was answered to two requests`];
      ids.add(action_id);
      return action?.action_type === type && action.session_id === operation.session_id
        ? []
        : [`${type} of ${operation.session_id} was accepted as ${action_id}, which is ${JSON.stringify(action)}`];
    },
  );
}

/** Each text is sent once, so it is in the queue at most once, and in at most one step. */
function checkWords({ actions, steps }: Rows, ledger: Ledger): string[] {
  const sent = Map.groupBy(actions.values(), ({ payload }) => JSON.stringify(payload["guidance"]));
  const heard = heardOf(steps);
  const words = [
    ...ledger.of("interrupt").map((entry) => ({ ...entry, word: entry.operation.word })),
    ...ledger.of("fork").map((entry) => ({ ...entry, word: entry.operation.word ?? "" })),
  ];
  return words.flatMap(({ word, answer, doubtful }) => {
    if (word === "") return [];
    const own = (sent.get(JSON.stringify(word)) ?? []).filter(({ action_type }) => action_type === "agent_interrupt");
    const times = heard.get(word) ?? 0;
    if (own.length > 1 || times > 1) return [`${word} was sent once, and is ${own.length} actions in ${times} steps`];
    if (answer && own.length === 0) return [`${word} was accepted and is lost`];
    if (!answer && !doubtful && own.length > 0) return [`${word} was refused, and is ${describe(own[0])}`];
    return [];
  });
}

function checkMessages({ messages, actions, steps }: Rows, ledger: Ledger): string[] {
  const heard = heardOf(steps);
  const violations = [...heard]
    .filter(([, times]) => times > 1)
    .map(([what, times]) => `${what} was heard ${times} times`);
  const said = new Set<string>();
  for (const { operation, answer } of ledger.of("say")) {
    said.add(operation.message_id);
    const own = (messages.get(operation.conversation_id) ?? []).filter(
      (row) => row.message_id === operation.message_id,
    );
    if (own.length > 1) violations.push(`${operation.message_id} is in its transcript ${own.length} times`);
    if (!answer) continue;
    const ids = answer["action_ids"] as string[];
    const [row] = own;
    if (row?.text !== operation.text || JSON.stringify(row.action_ids) !== JSON.stringify(ids))
      violations.push(`${operation.message_id} was accepted, and is ${JSON.stringify(row)}`);
    const sessions = ids.map((id) => actions.get(id)?.session_id);
    if (sessions.length !== 2 || sessions.includes(undefined) || new Set(sessions).size !== 2)
      violations.push(`${operation.message_id} went to ${JSON.stringify(sessions)}, not to both agents`);
  }
  for (const rows of messages.values())
    for (const { message_id, sender_type } of rows)
      if (sender_type === "user" && !said.has(message_id)) violations.push(`nobody said ${message_id}`);
  return violations;
}

/** The title is the last acknowledged one, or one whose request broke off and arrived late. */
function checkTitles({ conversations }: Rows, ledger: Ledger): string[] {
  const entries = Map.groupBy(ledger.of("rename"), ({ operation }) => operation.conversation_id);
  return [...entries].flatMap(([id, renames]) => {
    const title = conversations.get(id)?.title;
    const doubtful = renames.filter((entry) => entry.doubtful).map(({ operation }) => operation.title);
    const last = renames.at(-1)?.operation.title;
    return title === last || doubtful.includes(title ?? "") ? [] : [`${id} is named ${title}, not ${last}`];
  });
}

const idIn = (answer: JsonObject): string => answer["action_id"] as string;
const describe = (action: Action | undefined): string => JSON.stringify(action satisfies JsonObject | undefined);

/** The chat of /agent_ws/ is created by the first connection, here the stranger's. */
const isOneChat = (session_id: string): boolean => session_id.startsWith("default-");
