import { firstConnection, openClient, run, toStoreError } from "./connections.ts";

/** The version of a server that answers and is new enough. Nothing in the database is touched. */
export async function inspectDatabase(url: string): Promise<{ server_version: string }> {
  const client = openClient(url, { max: 1 });
  try {
    await firstConnection(client, url);
    const [row] = await run(client, "select current_setting('server_version') as version");
    return { server_version: String(row?.["version"]) };
  } catch (error) {
    throw toStoreError(error);
  } finally {
    await client.end({ timeout: 0 });
  }
}
