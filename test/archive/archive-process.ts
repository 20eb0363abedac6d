import { writeSync } from "node:fs";
import { Archives } from "../../src/archive/archives.ts";
import { VolumeFiles } from "../../src/archive/volume-files.ts";
import { openStore } from "../../src/store/open-store.ts";
import { type ArchiveOrder, readHistory } from "./archive-history.ts";

/** Tells what it finds, runs one job, and is killed before its n-th call of the store or of the files, or after so many milliseconds. */
const order = JSON.parse(process.argv[2] ?? "") as ArchiveOrder;
const { url, folder, job, at, after_ms } = order;
const store = await openStore(url);
store.volumes.attach(new VolumeFiles(null));
writeSync(1, JSON.stringify(await readHistory(store, order)));
let calls = 0;

function counted<Part extends object>(part: Part): Part {
  return new Proxy(part, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (calls === at) process.kill(process.pid, "SIGKILL");
        calls += 1;
        return (value as (...args: unknown[]) => unknown).apply(target, args);
      };
    },
  });
}

const observed = new Proxy(store, {
  get(target, name) {
    if (name === "volumes") return counted(target.volumes);
    const value: unknown = Reflect.get(target, name, target);
    return typeof value === "function" ? value.bind(target) : value;
  },
});
const archives = new Archives(observed, async () => counted(new VolumeFiles(null)), folder);
if (after_ms !== null) setTimeout(() => process.kill(process.pid, "SIGKILL"), after_ms);
archives.start(job);
const done = await archives.done();
if (done?.error) {
  console.error(done.error);
  process.exit(1);
}
await archives.stop();
await store.close();
process.exit(0);
