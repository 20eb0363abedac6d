import sanitizeHtml from "sanitize-html";
import { markdownToHtml } from "../../../markdown/markdown-to-html.ts";

/** Characters of HTML that fit into a message; more is not worth the work. */
const LONGEST_HTML = 60_000;

/** The tags in the Matrix specification's list, without those that load something. */
const TAGS =
  "del h1 h2 h3 h4 h5 h6 blockquote p a ul ol sup sub li b i u strong em s code hr br div table thead tbody tr th td caption pre span details summary";

const RULES: sanitizeHtml.IOptions = {
  allowedTags: TAGS.split(" "),
  allowedAttributes: { a: ["href"], ol: ["start"], code: ["class"] },
  allowedClasses: { code: ["language-*"] },
  allowedSchemes: ["https", "http", "ftp", "mailto", "magnet"],
  allowProtocolRelative: false,
  disallowedTagsMode: "escape",
  nestingLimit: 90,
};

/** Markdown as safe HTML; null if there is no formatting, or none that can be shown. */
export function toHtml(markdown: string): string | null {
  const unsafe = markdownToHtml(markdown);
  if (unsafe === null || unsafe.length > LONGEST_HTML) return null;
  const html = sanitizeHtml(unsafe, RULES).trim();
  const isPlain = !/<(?!\/?p>|br ?\/?>)/.test(html) && !html.includes("</p>\n<p>");
  return isPlain ? null : html;
}
