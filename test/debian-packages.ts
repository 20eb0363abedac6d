import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { platform, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/** Unpacks Debian packages and their dependencies into a folder: nothing is installed, and no privileges are needed. */
export async function unpackDebianPackages(suite: string, packages: string[], folder: string): Promise<void> {
  if (platform() !== "linux" || !existsSync(KEYRING))
    throw new Error("this unpacks Debian's packages, which needs a Debian system and debian-archive-keyring");
  const apt = await mkdtemp(join(tmpdir(), "everstep-apt-"));
  try {
    await download(apt, suite, packages);
    const archives = join(apt, "cache", "archives");
    for (const name of (await readdir(archives)).filter((file) => file.endsWith(".deb")))
      await run("dpkg-deb", ["-x", join(archives, name), folder]);
  } finally {
    await rm(apt, { recursive: true, force: true });
  }
}

/** Keeps all of apt's state in a separate folder, so that the machine's own is untouched. */
async function download(folder: string, suite: string, packages: string[]): Promise<void> {
  for (const name of ["lists/partial", "cache/archives/partial", "etc"])
    await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, "status"), "");
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI)"]);
  const [mirror] = stdout.split("\n").filter((line) => line !== "" && !line.includes("security"));
  if (mirror === undefined) throw new Error("apt knows no source of packages; run `apt-get update` once");
  const sources = join(folder, "sources.list");
  await writeFile(sources, `deb [signed-by=${KEYRING}] ${mirror} ${suite} main\n`);
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
  await run("apt-get", [...set, "-q", "install", "-y", "-d", ...packages], { maxBuffer: 1e8 });
}
