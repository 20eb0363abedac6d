import assert from "node:assert/strict";
import type { Action } from "../../src/domain/action.ts";
import { isObject, type JsonValue } from "../../src/domain/json.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Page } from "../../src/store/store.ts";

/** A session's rows as read. `commits` names the attempt that wrote each commit found. */
export type ReadSession = { session: Session; steps: Step[]; actions: Action[]; commits: Map<string, string> };

export function attemptIn(data: JsonValue): string {
  assert.ok(isObject(data) && typeof data["attempt"] === "string", `no attempt in ${JSON.stringify(data)}`);
  return data["attempt"];
}

const PAGE = 400;

export async function readPages<Row>(read: (page: Page) => Promise<Row[]>): Promise<Row[]> {
  const rows: Row[] = [];
  for (;;) {
    const page = await read({ limit: PAGE, offset: rows.length });
    rows.push(...page);
    if (page.length < PAGE) return rows;
  }
}
