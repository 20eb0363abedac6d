// For `node --require`: stores opened by this process use the threads that the runner built, which load in half the time.
const { syncBuiltinESMExports } = require("node:module");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const workers = require("node:worker_threads");

const folder = process.env.EVERSTEP_TEST_THREADS;
const BUILT = /\/src\/store\/.*\/(?:thread-entry|heartbeat-thread)\.ts$/;

if (folder !== undefined && workers.isMainThread) {
  const { Worker } = workers;
  workers.Worker = class extends Worker {
    constructor(file, options) {
      const name = path.basename(String(file), ".ts");
      super(BUILT.test(String(file)) ? pathToFileURL(path.join(folder, `${name}.js`)) : file, options);
    }
  };
  syncBuiltinESMExports();
}
