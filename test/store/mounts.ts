import assert from "node:assert/strict";
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { mkdir, truncate, writeFile } from "node:fs/promises";
import type { TestContext } from "node:test";
import { promisify } from "node:util";

const run = promisify(execFile);

export type Mounted = AsyncDisposable & { folder: string };

const mounted = new Set<string>();

/** What this machine lacks for tests that mount, or null. */
export function missingForMounts(): string | null {
  if (process.platform !== "linux") return "mounts are tested on Linux only";
  if (process.getuid?.() !== 0) return "mounting needs root: run the tests as root (in a container: --privileged)";
  for (const tool of ["mount", "umount", "mkfs.ext4", "fallocate", "cp", "cmp"]) {
    if (spawnSync("which", [tool]).status !== 0) return `${tool} is missing: install mount, e2fsprogs and diffutils`;
  }
  const tried = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/tmp"]);
  if (tried.status !== 0) return "mount is not allowed here: in a container run it with --privileged";
  if (spawnSync("losetup", ["-f"]).status !== 0) return "no loop device is free: load the kernel module `loop`";
  return null;
}

/** True if nothing is missing. Otherwise the test is skipped with that line, or fails with EVERSTEP_TEST_ALL=1. */
export function mayMount(t: TestContext): boolean {
  const missing = missingForMounts();
  if (missing === null) return true;
  assert.notEqual(process.env["EVERSTEP_TEST_ALL"], "1", missing);
  t.skip(missing);
  return false;
}

/** A file system in memory with this size. */
export async function mountMemory(folder: string, bytes: number): Promise<Mounted> {
  return await mount(["-t", "tmpfs", "-o", `size=${bytes}`, "everstep", folder], folder);
}

export async function makeDisk(image: string, bytes: number): Promise<void> {
  await writeFile(image, "");
  await truncate(image, bytes);
  // Leaves nothing for the kernel to initialize later, so that only the test's writes change the image.
  await run("mkfs.ext4", ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", image]);
}

export async function mountDisk(image: string, folder: string, options: readonly string[] = []): Promise<Mounted> {
  return await mount(["-t", "ext4", "-o", ["loop", ...options].join(","), image, folder], folder);
}

export async function remount({ folder }: Mounted, mode: "ro" | "rw"): Promise<void> {
  await run("mount", ["-o", `remount,${mode}`, folder]);
}

/** Makes the ext4 file system give up, as it does when its device fails: it refuses every write from now on. */
export async function abort({ folder }: Mounted): Promise<void> {
  await run("mount", ["-o", "remount,abort", folder]);
}

/**
 * The image as a power loss would leave it now: what reached the device, without what the file system still keeps in memory.
 * Nothing is synced. Copied again until the image did not change meanwhile. The contents of the device's own cache count as
 * written: a device that lies about a flush is not tested.
 */
export async function copyUnsynced(image: string, copy: string): Promise<void> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    await run("cp", ["--sparse=always", image, copy]);
    if (await same(image, copy)) return;
  }
  assert.fail(`${image} never stood still`);
}

const same = async (one: string, other: string): Promise<boolean> =>
  await run("cmp", ["--silent", one, other]).then(
    () => true,
    () => false,
  );

async function mount(parameters: string[], folder: string): Promise<Mounted> {
  await mkdir(folder, { recursive: true });
  await run("mount", parameters);
  mounted.add(folder);
  return { folder, [Symbol.asyncDispose]: async () => await unmount(folder) };
}

async function unmount(folder: string): Promise<void> {
  if (!mounted.delete(folder)) return;
  // A lazy unmount works even if a file is still open; the loop device is released with the mount.
  await run("umount", [folder]).catch(async () => await run("umount", ["--lazy", folder]));
}

function unmountAll(): void {
  for (const folder of mounted) execFileSync("umount", ["--lazy", folder]);
  mounted.clear();
}

process.on("exit", unmountAll);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
