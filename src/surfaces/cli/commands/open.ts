import type { ApiClient } from "../client.ts";
import { findSession } from "../sessions.ts";

/** Prints the console's address, or that of a session in it. */
export async function open(client: ApiClient, name: string | undefined, { json }: { json?: boolean }): Promise<void> {
  const base = client.url.replace(/\/+$/, "");
  const path = name === undefined ? "" : `sessions/${encodeURIComponent((await findSession(client, name)).session_id)}`;
  const url = `${base}/${path}`;
  console.log(json ? JSON.stringify({ url }) : url);
}
