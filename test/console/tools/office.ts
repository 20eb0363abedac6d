import { z } from "zod";
import { defineTool } from "../../../src/tools/define-tool.ts";

export const book = defineTool({
  description: "Books an unpaid invoice in the ledger.",
  input: z.object({ invoice: z.string(), customer: z.string(), amount: z.number() }),
  run: () => "booked",
});

export const send_reminder = defineTool({
  description: "Sends the customer of an invoice a reminder.",
  input: z.object({ invoice: z.string(), text: z.string() }),
  run: () => "sent",
});
