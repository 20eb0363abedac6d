import type { Emitter } from "../../concurrency/emitter.ts";
import type { Action } from "../../domain/action.ts";
import type { Message } from "../../domain/conversation.ts";
import type { StepDelta } from "../../domain/event.ts";
import type { SessionPlan } from "../owned-sessions.ts";
import type * as port from "../store.ts";
import type { ActionClaims } from "./action-claims.ts";
import type { ChangeRelay } from "./change-relay.ts";
import type { WriteFeedback } from "./group-writer.ts";
import type { DeltaNotification, Notification, NotifyConnection, SharedLocks } from "./notify-connection.ts";

type Parts = {
  connection: NotifyConnection;
  relay: ChangeRelay;
  actions: ActionClaims;
  locks: SharedLocks;
  work: Emitter;
  free: Emitter;
  deltas: Emitter<[delta: StepDelta]>;
  releases: Emitter<[release: port.SessionRelease]>;
};

/** Announces this process's commits, within it and to other processes, and handles the notifications of others. */
export class NotificationRouter {
  readonly #parts: Parts;
  readonly #receivedDeltas = new ReceivedDeltas();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  committed(batch: port.Batch, plans: SessionPlan[], feedback: WriteFeedback): void {
    const { connection, relay, actions, work } = this.#parts;
    const changed = batch.actions ?? [];
    const messages = (batch.messages ?? []).map((message) => ({
      message,
      number: feedback?.numbers.get(message.message_id),
    }));
    relay.committed(plans, messages, changed);
    if (connection.isHeard) this.#notifyFollowers(plans, changed, messages);

    if (changed.length > 0) actions.committed(changed, feedback);
    const pending = changed.filter(({ processed }) => !processed).map(({ session_id }) => session_id);
    if (pending.length > 0) connection.notify({ kind: "work", session_ids: pending });
    if (changed.length > 0 || plans.some(({ write }) => write.kind === "create")) work.emit();
  }

  /** Tells followers of sessions and conversations in other processes. */
  #notifyFollowers(
    plans: SessionPlan[],
    changed: Action[],
    messages: { message: Message; number: number | undefined }[],
  ): void {
    const { connection } = this.#parts;
    const actionsOf = Map.groupBy(changed, ({ session_id }) => session_id);
    const idsOf = (actions: Action[] | undefined): string[] => actions?.map(({ action_id }) => action_id) ?? [];
    for (const { session, before } of plans) {
      const { session_id } = session;
      connection.notify({ kind: "session", session_id, ...before, actions: idsOf(actionsOf.get(session_id)) });
      actionsOf.delete(session_id);
    }
    for (const [session_id, actions] of actionsOf)
      connection.notify({ kind: "actions", session_id, actions: idsOf(actions) });
    for (const [conversation_id, own] of Map.groupBy(messages, ({ message }) => message.conversation_id)) {
      const numbers = own.flatMap(({ number }) => number ?? []);
      if (numbers.length > 0)
        connection.notify({ kind: "messages", conversation_id, first_number: Math.min(...numbers) });
    }
  }

  received(notifications: Notification[]): void {
    const { connection, relay, actions, locks, work, free, deltas, releases } = this.#parts;
    for (const notification of notifications) {
      switch (notification.kind) {
        case "hello":
          // In the next turn: a list of processes that was read before may be on its way to whoever asked for it.
          if (notification.follows) setImmediate(() => (connection.hasFollowers = true));
          break;
        case "work":
          actions.mayHave(notification.session_ids);
          work.emit();
          break;
        case "free":
          actions.lookThrough();
          free.emit();
          work.emit();
          break;
        case "session":
          // Earlier versions send an iteration before the first to say that only actions changed.
          relay.sessionChanged(
            notification.session_id,
            notification.iteration < -1 ? null : notification,
            notification.actions,
          );
          break;
        case "actions":
          relay.sessionChanged(notification.session_id, null, notification.actions);
          break;
        case "messages":
          relay.messagesAdded(notification.conversation_id, notification.first_number);
          break;
        case "delta": {
          const delta = this.#receivedDeltas.next(notification);
          if (delta) deltas.emit(delta);
          break;
        }
        case "unlocked":
          locks.unlocked(notification.name);
          break;
        case "release":
          releases.emit(notification.release);
          break;
        default:
          notification satisfies never;
      }
    }
  }
}

/** How many steps' text is tracked at once; beyond that, tracking starts over. */
const MOST_STEPS = 2000;

/**
 * Live text of steps that other processes send. If some of it is lost, a delta marked `truncated` is passed on and the rest of that
 * step's text is dropped, so that readers never get text with a gap.
 */
export class ReceivedDeltas {
  readonly #steps = new Map<string, { iteration: number; next_seq: number | null }>();

  /** Returns what to pass on; null if nothing. */
  next({ delta, last_seq }: DeltaNotification): StepDelta | null {
    const { session_id, iteration, event_seq, truncated } = delta;
    const step = this.#steps.get(session_id);
    const goesOn = event_seq > 0 && step?.iteration === iteration;
    if (goesOn && step.next_seq === null) return null;
    const hasHole = goesOn && step.next_seq !== event_seq;
    if (this.#steps.size >= MOST_STEPS && !step) this.#steps.clear();
    this.#steps.set(session_id, { iteration, next_seq: hasHole || truncated ? null : last_seq + 1 });
    const { tool: _, ...rest } = delta;
    return hasHole ? { ...rest, text: "", truncated: true } : delta;
  }
}
