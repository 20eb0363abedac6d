import type { Question as SessionAsk } from "../../../domain/question.ts";
import type { Session, SessionStatus } from "../../../domain/session.ts";
import type { AgentStatus, ChatState, Costs, ResetOutcome } from "../platform/platform-client.ts";
import type { Question } from "../state/dialogs.ts";
import type { Control } from "../state/jobs.ts";
import type { Settings } from "../state/people.ts";
import { english } from "./english.ts";
import { russian } from "./russian.ts";

export const LANGUAGES = ["en", "ru"] as const;
export type Language = (typeof LANGUAGES)[number];

type ContextSummary = {
  /** Under which the chat was saved last. */
  name: string | null;
  loaded: string[];
  status: AgentStatus | ChatState["status"];
  error: string | null;
  waiting: number;
  tokens_last: number;
  tokens_total: number;
  saves: { name: string; saved_at: string }[];
};
type SessionLine = { session_id: string; agent_id: string; moniker: string; status: SessionStatus; steps: number };

/** Everything that the bot says of its own, in one language. Markdown; dates are shortened by the language itself. */
export type Catalogue = {
  welcome: string;
  encrypted: string;
  undecryptable: string;
  verification: (emoji: string) => string;
  text_only: string;
  unknown_command(name: string, nearest: string | null): string;
  queued(ahead: number): string;
  agent_away: string;
  agent_failed(reason: string): string;
  agent_silent: string;
  undeliverable: string;
  set_aside(reason: string): string;
  missed: string;

  name_rule: string;
  overwrite(name: string, saved_at: string, isOwn: boolean): string;
  saved(name: string): string;
  save_failed(name: string, reason: string): string;
  save_failed_no_reset: string;

  load_none: string;
  load_list(lines: { number: number; name: string; saved_at: string }[], total: number): string;
  load_no_more: string;
  load_out_of_range(number: number, total: number): string;
  load_unknown(name: string): string;
  loaded(name: string): string;
  load_failed(name: string, reason: string): string;

  reset_question(name: string | null): string;
  reset_in_thread: string;
  reset_outcome(outcome: ResetOutcome): string;
  destroy_question(session_id: string): string;
  superseded(question: Question): string;
  nothing_waiting: string;
  wants_number(question: Question): string;
  wants_yes_or_no(question: Question): string;
  left(question: Question): string;
  effects: { do_it: string; save_command: string; save_first: string; leave: string; pick: string; more: string };

  context(summary: ContextSummary): string;
  new_room(link: string): string;
  new_room_failed(reason: string): string;
  room_topic: string;
  settings(settings: Settings): string;
  settings_usage: string;
  stopped: string;
  nothing_to_stop: string;

  operators_only: string;
  runtime_unreachable(reason: string): string;
  agents(lines: SessionLine[]): string;
  session_missing(command: string): string;
  session_unknown(session: string): string;
  session_ambiguous(session: string, count: number): string;
  watching(session_id: string): string;
  watch_over(session_id: string, status: SessionStatus): string;
  watch_refused(session_id: string, reason: string): string;
  watch_stopped(session_ids: string[]): string;
  step(session_id: string, iteration: number, text: string): string;
  text_missing(command: "guide" | "answer"): string;
  /** `has_thumbs`: 👍 and 👎 are answers. */
  asks(session_id: string, question: SessionAsk, has_thumbs: boolean): string;
  asks_nothing(session_id: string): string;
  /** A sign on a person's message: the step of this iteration used it. */
  receipt(iteration: number | null): string;
  inbox_empty: string;
  inbox(sessions: Session[]): string;
  start_usage: string;
  started(session_id: string): string;
  fork_usage: string;
  fork_which(watched: number): string;
  forked(session_id: string, iteration: number, forked_id: string): string;
  cost_usage: string;
  costs(costs: Costs): string;
  controlled(verb: Control, session_id: string): string;
  control_rejected(verb: Control, session_id: string, reason: string): string;

  help: { title: string; operators: string; more: string; commands: Record<string, { usage: string; about: string }> };
};

const CATALOGUES: Record<Language, Catalogue> = { en: english, ru: russian };
export const catalogue = (language: Language): Catalogue => CATALOGUES[language];
