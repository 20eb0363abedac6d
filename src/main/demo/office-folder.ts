import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CommandError } from "../../surfaces/cli/client.ts";

/** The folder of the demo's agent: three invoices, and two tools with effects outside of Everstep. */
export class OfficeFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Requires a new or empty folder: the calls counted there must be this demo's. */
  static async make(folder: string): Promise<OfficeFolder> {
    await mkdir(folder, { recursive: true });
    if ((await readdir(folder)).length > 0) throw new CommandError(`${folder} is not empty; choose a new folder`);
    for (const [name, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), text);
    }
    return new OfficeFolder(folder);
  }

  /** The tools' own record of their calls, in a file that Everstep never reads. */
  async toolLog(): Promise<string[]> {
    const text = await readFile(join(this.path, "tool-calls.log"), "utf8").catch(() => "");
    return text.split("\n").filter((line) => line !== "");
  }

  /** The letter for an invoice; null if there is none. */
  letter(invoice: string): Promise<string | null> {
    return readFile(join(this.path, "workspace", letterOf(invoice)), "utf8").catch(() => null);
  }
}

export const letterOf = (invoice: string): string => `outbox/${invoice}.txt`;

/** Neither is declared idempotent, so neither is repeated without asking. */
const TOOLS = `import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { defineTool, z } from "everstep/moniker";

const note = (call) => appendFileSync("tool-calls.log", call + "\\n");

export const book = defineTool({
  description: "Books an unpaid invoice in the ledger.",
  input: z.object({ invoice: z.string(), customer: z.string(), amount: z.number() }),
  run({ invoice, customer, amount }) {
    note("book " + invoice);
    appendFileSync("workspace/ledger.csv", [invoice, customer, amount].join(";") + "\\n");
    return "booked";
  },
});

export const send_reminder = defineTool({
  description: "Sends the customer of an invoice a reminder.",
  input: z.object({ invoice: z.string(), text: z.string() }),
  async run({ invoice, text }) {
    note("send_reminder " + invoice);
    mkdirSync("workspace/outbox", { recursive: true });
    writeFileSync("workspace/outbox/" + invoice + ".txt", text + "\\n", { flag: "a" });
    await wait(Number(process.env.DEMO_MAIL_MS)); // As long as a mail service takes to confirm.
    return "sent";
  },
});
`;

const FILES: Readonly<Record<string, string>> = {
  "workspace/invoices/17.txt": "Invoice 17\nCustomer: Harbour Cafe\nAmount: 120 EUR\nStatus: unpaid\n",
  "workspace/invoices/18.txt": "Invoice 18\nCustomer: Blue Bikes\nAmount: 75 EUR\nStatus: paid\n",
  "workspace/invoices/19.txt": "Invoice 19\nCustomer: Nordic Prints\nAmount: 340 EUR\nStatus: unpaid\n",
  "tools/office.ts": TOOLS,
};
