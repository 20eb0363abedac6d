/** A message that the model receives, in the order of the conversation. */
export type ModelInput = { role: "user" | "assistant" | "tool" | "system"; text: string };
export type RequestedCall = { tool: string; args: object };
export type Turn = { text: string; calls: RequestedCall[] };

type Invoice = { invoice: string; customer: string; amount: number };

/**
 * The demo's model: a script with rules in place of a language model. It is stateless: like a model it only has the
 * conversation it is sent, so after a crash or in a fork it continues from what Everstep stored.
 */
export function clerkTurn(messages: readonly ModelInput[]): Turn {
  const results = messages.filter(({ role }) => role === "tool").map(({ text }) => text);
  const userTexts = messages.filter(({ role }) => role === "user").map(({ text }) => text);
  const unpaid = unpaidIn(results);
  const done = (word: string): number => results.filter((text) => text.includes(word)).length;
  if (results.length === 0)
    return { text: "First I see which invoices there are.", calls: [call("files/list", { path: "invoices" })] };
  if (results.length === 1)
    return {
      text: "I read all three.",
      calls: namesIn(results[0] ?? "").map((name) => call("files/read", { path: `invoices/${name}` })),
    };
  if (done("booked") < unpaid.length)
    return { text: `${unpaid.length} are unpaid. I book them.`, calls: unpaid.map((one) => call("own/book", one)) };
  if (userTexts.some((text) => /call them/i.test(text))) return byTelephone(unpaid, done("Wrote ") > 0);
  const next = unpaid[done("sent")];
  if (next)
    return {
      text: `Now the reminder to ${next.customer}.`,
      calls: [call("own/send_reminder", { invoice: next.invoice, text: letterTo(next) })],
    };
  return { text: reportOf(unpaid, userTexts), calls: [] };
}

const call = (tool: string, args: object): RequestedCall => ({ tool, args });

const letterTo = ({ invoice, customer, amount }: Invoice): string =>
  `Dear ${customer}, invoice ${invoice} over ${amount} EUR is still open.`;

function byTelephone(unpaid: readonly Invoice[], isWritten: boolean): Turn {
  const text = unpaid.map(({ customer, amount }) => `- ${customer}: ${amount} EUR`).join("\n");
  return isWritten
    ? { text: `Done: ${unpaid.length} to call, listed in calls.md. No letter was sent.`, calls: [] }
    : { text: "No letters, then: I write a list of calls.", calls: [call("files/write", { path: "calls.md", text })] };
}

function reportOf(unpaid: readonly Invoice[], userTexts: readonly string[]): string {
  const total = unpaid.reduce((sum, { amount }) => sum + amount, 0);
  const report = `Done: ${unpaid.map(({ customer }) => customer).join(" and ")} were reminded.`;
  return userTexts.some((text) => /total/i.test(text)) ? `${report} Open in total: ${total} EUR.` : report;
}

const namesIn = (listing: string): string[] => [...new Set(listing.match(/\d+\.txt/g))];

function unpaidIn(results: readonly string[]): Invoice[] {
  return results.flatMap((text) => {
    const [, invoice, customer, amount] =
      /Invoice (\d+)\s+Customer: (.+)\s+Amount: (\d+) EUR\s+Status: unpaid/.exec(text) ?? [];
    return invoice && customer && amount ? [{ invoice, customer, amount: Number(amount) }] : [];
  });
}
