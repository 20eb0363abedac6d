import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort } from "../../free-port.ts";
import { type ScratchFolder, scratchFolder } from "../../store/scratch-folder.ts";
import { installedSynapse, type SynapseInstallation } from "./installation.ts";

const run = promisify(execFile);
const START_MS = 60_000;
const UNLIMITED = { per_second: 1000, burst_count: 1000 };

export type SynapseOptions = { message_limit?: typeof UNLIMITED };

const started = new Set<ChildProcess>();
/** No homeserver outlives the tests that started it, also where they are cut short. */
process.once("exit", () => {
  for (const child of started) child.kill("SIGKILL");
});

/** A real homeserver on a folder of its own. It comes back at the same address when it is started again. */
export class SynapseProcess implements AsyncDisposable {
  readonly url: string;
  readonly #scratch: ScratchFolder;
  readonly #installation: SynapseInstallation;
  #child: ChildProcess | undefined;

  private constructor(url: string, scratch: ScratchFolder, installation: SynapseInstallation) {
    this.url = url;
    this.#scratch = scratch;
    this.#installation = installation;
  }

  static async start({ message_limit = UNLIMITED }: SynapseOptions = {}): Promise<SynapseProcess> {
    const installation = await installedSynapse();
    if (!installation) throw new Error("there is no Synapse");
    const port = await freePort();
    const scratch = await scratchFolder();
    const synapse = new SynapseProcess(`http://127.0.0.1:${port}`, scratch, installation);
    await writeFile(join(scratch.path, "homeserver.yaml"), configOf(scratch.path, port, message_limit));
    await run(installation.command, [...synapse.#args(), "--generate-keys"], { env: installation.environment });
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
    await this.#scratch[Symbol.asyncDispose]();
  }

  #args(): string[] {
    return [
      ...this.#installation.args,
      "-m",
      "synapse.app.homeserver",
      "-c",
      join(this.#scratch.path, "homeserver.yaml"),
    ];
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
    media_store_path: join(folder, "media"),
    signing_key_path: join(folder, "signing.key"),
    macaroon_secret_key: "test",
    form_secret: "test",
    report_stats: false,
    bcrypt_rounds: 4,
    presence: { enabled: false },
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
