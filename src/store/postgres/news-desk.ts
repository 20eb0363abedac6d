import type { Action } from "../../domain/action.ts";
import type { Message } from "../../domain/conversation.ts";
import type { StepDelta } from "../../domain/event.ts";
import type * as port from "../store.ts";
import type { ActionClaims } from "./action-claims.ts";
import type { Bell } from "./bell.ts";
import type { Told } from "./group-writer.ts";
import { HeardDeltas } from "./heard-deltas.ts";
import type { Link } from "./link.ts";
import type { News } from "./outbox.ts";
import type { SessionPlan } from "./owned-sessions.ts";
import type { Relay } from "./relay.ts";
import type { SharedLocks } from "./shared-locks.ts";

type Desk = {
  link: Link;
  relay: Relay;
  actions: ActionClaims;
  locks: SharedLocks;
  work: Bell;
  free: Bell;
  deltas: Bell<[delta: StepDelta]>;
};

/** Tells what was committed here, within the process and to the others, and takes in what they tell. */
export class NewsDesk {
  readonly #desk: Desk;
  readonly #heardDeltas = new HeardDeltas();

  constructor(desk: Desk) {
    this.#desk = desk;
  }

  committed(batch: port.Batch, plans: SessionPlan[], told: Told): void {
    const { link, relay, actions, work } = this.#desk;
    const changed = batch.actions ?? [];
    const messages = (batch.messages ?? []).map((message) => ({
      message,
      number: told?.numbers.get(message.message_id),
    }));
    relay.committed(plans, messages, changed);
    if (link.isHeard) this.#tell(plans, changed, messages);

    if (changed.length > 0) actions.committed(changed, told);
    const pending = changed.filter(({ processed }) => !processed).map(({ session_id }) => session_id);
    if (pending.length > 0) link.tell({ kind: "work", session_ids: pending });
    if (changed.length > 0 || plans.some(({ write }) => write.kind === "create")) work.ring();
  }

  /** To those in other processes who follow sessions and conversations. */
  #tell(plans: SessionPlan[], changed: Action[], messages: { message: Message; number: number | undefined }[]): void {
    const { link } = this.#desk;
    const actionsOf = Map.groupBy(changed, ({ session_id }) => session_id);
    for (const { session, before } of plans) {
      const { session_id } = session;
      const ids = actionsOf.get(session_id)?.map(({ action_id }) => action_id) ?? [];
      link.tell({ kind: "session", session_id, ...before, actions: ids });
      actionsOf.delete(session_id);
    }
    for (const [session_id, own] of actionsOf) {
      const ids = own.map(({ action_id }) => action_id);
      // A position that nothing comes after: only the actions changed.
      link.tell({ kind: "session", session_id, iteration: -2, error_rows: 0, actions: ids });
    }
    for (const [conversation_id, own] of Map.groupBy(messages, ({ message }) => message.conversation_id)) {
      const known = own.flatMap(({ number }) => number ?? []);
      if (known.length > 0) link.tell({ kind: "messages", conversation_id, first_number: Math.min(...known) });
    }
  }

  heard(all: News[]): void {
    const { link, relay, actions, locks, work, free, deltas } = this.#desk;
    for (const news of all) {
      switch (news.kind) {
        case "hello":
          if (news.follows) link.hasFollowers = true;
          break;
        case "work":
          actions.mayHave(news.session_ids);
          work.ring();
          break;
        case "free":
          actions.lookThrough();
          free.ring();
          work.ring();
          break;
        case "session":
          relay.sessionMoved(news.session_id, news, news.actions);
          break;
        case "messages":
          relay.messagesCame(news.conversation_id, news.first_number);
          break;
        case "delta": {
          const delta = this.#heardDeltas.next(news);
          if (delta) deltas.ring(delta);
          break;
        }
        case "unlocked":
          locks.unlocked(news.name);
          break;
        default:
          news satisfies never;
      }
    }
  }
}
