import { asEdit, type ContentOptions, contentOf, LARGEST_CONTENT, type MessageContent, sizeOf } from "./content.ts";
import { LARGEST_PART, split } from "./split.ts";

const ANY_EVENT = "$".padEnd(50);
const SMALLEST_PART = 500;

/** Splits a text into messages, each small enough to be sent, as an edit too. Only the first is a reply. */
export function splitContent(markdown: string, options: ContentOptions, most = LARGEST_PART): MessageContent[] {
  return split(markdown, most).flatMap((part, index) => {
    const { is_notice, reply_to } = options;
    const own = { is_notice, ...(index === 0 ? { reply_to } : {}) };
    const content = contentOf(part, own);
    // Quotation marks and the like take more bytes in JSON than in the text.
    const fits = sizeOf(asEdit(content, ANY_EVENT)) <= LARGEST_CONTENT;
    return fits || most <= SMALLEST_PART ? [content] : splitContent(part, own, most / 2);
  });
}
