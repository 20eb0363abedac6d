import type { Bench } from "./bench.ts";
import { measureEncryption } from "./matrix/encryption.ts";
import { measureReplies } from "./matrix/replies.ts";
import { measureBotStart } from "./matrix/start.ts";

export const matrixBench: Bench = {
  measures: "`everstep matrix` on a real Synapse (node test/matrix/install-synapse.ts fetches it)",
  parts: {
    start: { measures: "time until a fresh bot follows its homeserver, and one with a past", run: measureBotStart },
    replies: {
      measures: "from a person's message to the first reply, beside a bare script of the SDK",
      run: measureReplies,
    },
    encryption: {
      measures: "an encrypted room beside a plain one, and memory with twenty encrypted rooms",
      run: measureEncryption,
    },
  },
};
