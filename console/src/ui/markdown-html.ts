import purify from "dompurify";
import { markdownToHtml } from "../../../src/markdown/markdown-to-html.ts";

purify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
});

const FORBIDDEN = {
  FORBID_TAGS: [
    "style",
    "form",
    "input",
    "button",
    "textarea",
    "select",
    "iframe",
    "img",
    "svg",
    "math",
    "audio",
    "video",
  ],
  FORBID_ATTR: ["style", "id", "class"],
  ALLOW_DATA_ATTR: false,
};

/**
 * What an agent or a person wrote is not trusted: no script, no form, no picture from elsewhere, no style. Null where it is
 * to be shown as it is: it never throws, because what one person wrote would break the page for everyone.
 */
export function toSafeHtml(text: string): string | null {
  const html = markdownToHtml(text);
  if (html === null) return null;
  try {
    return purify.sanitize(html, FORBIDDEN);
  } catch {
    return null;
  }
}
