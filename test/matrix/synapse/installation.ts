import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir, machine, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { unpackDebianPackages } from "../../debian-packages.ts";

const run = promisify(execFile);
/** Only this Debian suite has Synapse. It changes constantly, so a version that worked is kept. */
const SUITE = "sid";
const PACKAGES = ["matrix-synapse", "python3-matrix-nio"];
/** Its name changes with the packages, so that an older cache is not considered complete. */
const CACHE = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "everstep",
  `synapse-${createHash("sha256").update(PACKAGES.join()).digest("hex").slice(0, 8)}`,
);

/** A separate Python with Synapse and matrix-nio. */
export type SynapseInstallation = { version: string; command: string; args: string[]; environment: NodeJS.ProcessEnv };

export const HOW_TO_GET_SYNAPSE = "there is no Synapse: node test/matrix/install-synapse.ts fetches it (Debian, 70 MB)";

export async function installedSynapse(): Promise<SynapseInstallation | null> {
  const version = await readFile(join(CACHE, "version"), "utf8").catch(() => null);
  return version === null ? null : describe(CACHE, version.trim());
}

export async function installSynapse(tell: (line: string) => void): Promise<SynapseInstallation> {
  const installation = await installedSynapse();
  if (installation) return installation;
  await mkdir(join(CACHE, ".."), { recursive: true });
  const fresh = await mkdtemp(`${CACHE}-`);
  try {
    tell("fetching and unpacking Synapse and matrix-nio from Debian…");
    await unpackDebianPackages(SUITE, PACKAGES, fresh);
    const { command, args, environment } = await describe(fresh, "");
    tell("compiling…");
    const modules = join(fresh, "usr/lib/python3/dist-packages");
    await run(command, [...args, "-m", "compileall", "-q", modules], { env: environment }).catch(() => {});
    const { stdout } = await run(command, [...args, "-c", "import nio, olm, synapse; print(synapse.__version__)"], {
      env: environment,
    });
    await writeFile(join(fresh, "version"), stdout);
    // By a rename, so that it is complete: another run may be doing the same.
    await rename(fresh, CACHE).catch(async (error: unknown) => {
      if (!(await installedSynapse())) throw error;
    });
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
  return (await installedSynapse()) ?? Promise.reject(new Error("Synapse was unpacked and is not there"));
}

async function describe(root: string, version: string): Promise<SynapseInstallation> {
  const libraries = join(root, "usr/lib", `${machine()}-linux-gnu`);
  const binaries = await readdir(join(root, "usr/bin"));
  const python = binaries.find((name) => /^python3\.\d+$/.test(name));
  const loader = (await readdir(libraries)).find((name) => /^ld-linux-.*\.so\.\d+$/.test(name));
  if (!python || !loader) throw new Error(`${root} has no Python; remove it and try again`);
  return {
    version,
    command: join(libraries, loader),
    args: ["--library-path", libraries, join(root, "usr/bin", python)],
    environment: {
      PATH: "/usr/bin:/bin",
      LANG: "C.UTF-8",
      HOME: tmpdir(),
      PYTHONHOME: join(root, "usr"),
      PYTHONPATH: join(root, "usr/lib/python3/dist-packages"),
      PYTHONNOUSERSITE: "1",
    },
  };
}
