import purify from "dompurify";
import { marked } from "marked";

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

/** What an agent or a person wrote is not trusted: no script, no form, no picture from elsewhere, no style. */
export const toSafeHtml = (text: string): string =>
  purify.sanitize(marked.parse(text, { async: false, breaks: true, gfm: true }), FORBIDDEN);
