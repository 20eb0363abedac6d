import { Runtime } from "../../src/main/runtime.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { openStore } from "../../src/store/open-store.ts";
import { askedToStop, say } from "../runtime/child.ts";

// `everstep worker` without the command line.
const [url, workspace] = process.argv.slice(2) as [string, string];
const store = await openStore(url);
const runtime = new Runtime({ store, catalog: await loadCatalog(undefined), workspace });
await runtime.start();
say({ pid: process.pid });
await askedToStop();
await runtime.stop();
await store.close();
