import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "../../free-port.ts";
import { installedSynapse, type SynapseInstallation } from "./installation.ts";

const START_MS = 60_000;
/** Synapse ends with the tests, so its database need not be on a disk, for which each event would wait several times. */
const HOME = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const UNLIMITED = { per_second: 1000, burst_count: 1000 };

export type SynapseOptions = { message_limit?: typeof UNLIMITED };

/** Nobody reads its log, which takes a tenth of its time. */
const LOG = { version: 1, disable_existing_loggers: true, root: { level: "CRITICAL", handlers: [] } };

const started = new Set<ChildProcess>();
const folders = new Set<string>();
/** No homeserver outlives the tests that started it, even if they are cut short. */
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/** A real homeserver on its own folder. A restart uses the same address. */
export class SynapseProcess implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  readonly #installation: SynapseInstallation;
  #child: ChildProcess | undefined;

  private constructor(url: string, folder: string, installation: SynapseInstallation) {
    this.url = url;
    this.#folder = folder;
    this.#installation = installation;
  }

  static async start({ message_limit = UNLIMITED }: SynapseOptions = {}): Promise<SynapseProcess> {
    const installation = await installedSynapse();
    if (!installation) throw new Error("there is no Synapse");
    const port = await freePort();
    const folder = await mkdtemp(join(HOME, "everstep-synapse-"));
    folders.add(folder);
    const synapse = new SynapseProcess(`http://127.0.0.1:${port}`, folder, installation);
    await writeFile(join(folder, "homeserver.yaml"), configOf(folder, port, message_limit));
    await writeFile(join(folder, "log.yaml"), JSON.stringify(LOG));
    const seed = randomBytes(32).toString("base64").replace(/=+$/, "");
    await writeFile(join(folder, "signing.key"), `ed25519 test ${seed}\n`);
    await synapse.start();
    return synapse;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async start(): Promise<void> {
    const { command, environment } = this.#installation;
    const child = spawn(command, this.#args(), { env: environment, stdio: "ignore" });
    started.add(child);
    child.once("exit", () => started.delete(child));
    this.#child = child;
    const until = performance.now() + START_MS;
    while (!(await answers(this.url))) {
      if (child.exitCode !== null || performance.now() > until) throw new Error("Synapse did not start");
      await wait(50);
    }
  }

  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop("SIGKILL");
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    folders.delete(this.#folder);
  }

  #args(): string[] {
    return [...this.#installation.args, "-m", "synapse.app.homeserver", "-c", join(this.#folder, "homeserver.yaml")];
  }
}

async function answers(url: string): Promise<boolean> {
  return fetch(`${url}/_matrix/client/versions`).then(
    (response) => response.ok,
    () => false,
  );
}

/** JSON is YAML. */
function configOf(folder: string, port: number, rc_message: typeof UNLIMITED): string {
  return JSON.stringify({
    server_name: "localhost",
    pid_file: join(folder, "homeserver.pid"),
    listeners: [
      {
        port,
        type: "http",
        tls: false,
        bind_addresses: ["127.0.0.1"],
        resources: [{ names: ["client"], compress: false }],
      },
    ],
    database: { name: "sqlite3", args: { database: join(folder, "homeserver.db") } },
    log_config: join(folder, "log.yaml"),
    media_store_path: join(folder, "media"),
    signing_key_path: join(folder, "signing.key"),
    macaroon_secret_key: "test",
    form_secret: "test",
    report_stats: false,
    bcrypt_rounds: 4,
    // Not needed by any test.
    presence: { enabled: false },
    push: { enabled: false },
    stats: { enabled: false },
    enable_search: false,
    trusted_key_servers: [],
    enable_registration: true,
    enable_registration_without_verification: true,
    room_list_publication_rules: [{ action: "allow" }],
    rc_message,
    rc_registration: UNLIMITED,
    rc_registration_token_validity: UNLIMITED,
    rc_login: { address: UNLIMITED, account: UNLIMITED, failed_attempts: UNLIMITED },
    rc_admin_redaction: UNLIMITED,
    rc_joins: { local: UNLIMITED, remote: UNLIMITED },
    rc_joins_per_room: UNLIMITED,
    rc_invites: { per_room: UNLIMITED, per_user: UNLIMITED, per_issuer: UNLIMITED },
    rc_room_creation: UNLIMITED,
  });
}
