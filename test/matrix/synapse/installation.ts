import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir, machine, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const PACKAGES = ["matrix-synapse", "python3-matrix-nio"];
/** Its name changes with the packages, so that an older cache is not taken for a whole one. */
const CACHE = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "everstep",
  `synapse-${createHash("sha256").update(PACKAGES.join()).digest("hex").slice(0, 8)}`,
);

/** A Python of its own with Synapse and matrix-nio, unpacked from Debian's packages: no root, no container, nothing installed. */
export type SynapseInstallation = { version: string; command: string; args: string[]; environment: NodeJS.ProcessEnv };

export const HOW_TO_GET_SYNAPSE = "there is no Synapse: node test/matrix/install-synapse.ts fetches it (Debian, 70 MB)";

export async function installedSynapse(): Promise<SynapseInstallation | null> {
  const version = await readFile(join(CACHE, "version"), "utf8").catch(() => null);
  return version === null ? null : describe(CACHE, version.trim());
}

export async function installSynapse(tell: (line: string) => void): Promise<SynapseInstallation> {
  const found = await installedSynapse();
  if (found) return found;
  if (platform() !== "linux" || !existsSync(KEYRING))
    throw new Error(
      "Synapse is unpacked from Debian's packages, which need a Debian system and debian-archive-keyring",
    );
  await mkdir(join(CACHE, ".."), { recursive: true });
  const apt = await mkdtemp(join(tmpdir(), "everstep-apt-"));
  const fresh = await mkdtemp(`${CACHE}-`);
  try {
    tell("fetching Synapse and matrix-nio from Debian…");
    await download(apt);
    tell("unpacking…");
    const archives = join(apt, "cache", "archives");
    for (const name of (await readdir(archives)).filter((file) => file.endsWith(".deb")))
      await run("dpkg-deb", ["-x", join(archives, name), fresh]);
    const { command, args, environment } = await describe(fresh, "");
    tell("compiling…");
    const modules = join(fresh, "usr/lib/python3/dist-packages");
    await run(command, [...args, "-m", "compileall", "-q", modules], { env: environment }).catch(() => {});
    const { stdout } = await run(command, [...args, "-c", "import nio, synapse; print(synapse.__version__)"], {
      env: environment,
    });
    await writeFile(join(fresh, "version"), stdout);
    // Whole or not at all: another run may be doing the same.
    await rename(fresh, CACHE).catch(async (error: unknown) => {
      if (!(await installedSynapse())) throw error;
    });
  } finally {
    await rm(apt, { recursive: true, force: true });
    await rm(fresh, { recursive: true, force: true });
  }
  return (await installedSynapse()) ?? Promise.reject(new Error("Synapse was unpacked and is not there"));
}

/** Everything that apt keeps is in a folder of its own, so that the machine's own state is untouched. */
async function download(folder: string): Promise<void> {
  for (const name of ["lists/partial", "cache/archives/partial", "etc"])
    await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, "status"), "");
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const [mirror = "http://deb.debian.org/debian/"] = stdout.split("\n").filter((line) => !line.includes("security"));
  const sources = join(folder, "sources.list");
  await writeFile(sources, `deb [signed-by=${KEYRING}] ${mirror} sid main\n`);
  const options = {
    "Dir::State": folder,
    "Dir::State::lists": join(folder, "lists"),
    "Dir::State::status": join(folder, "status"),
    "Dir::Cache": join(folder, "cache"),
    "Dir::Etc": join(folder, "etc"),
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "-",
    "Dir::Etc::parts": "-",
    "Debug::NoLocking": "1",
    "APT::Sandbox::User": "",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3",
    "APT::Install-Recommends": "0",
  };
  const set = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  await run("apt-get", [...set, "-q", "update"], { maxBuffer: 1e8 });
  await run("apt-get", [...set, "-q", "install", "-y", "-d", ...PACKAGES], { maxBuffer: 1e8 });
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
