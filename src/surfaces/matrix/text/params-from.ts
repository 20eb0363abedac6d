import type { JsonObject, JsonValue } from "../../../domain/json.ts";

/** `key=`, then a quoted text or everything up to the next `key=`: quotation marks are hard to type on a phone. */
const PARAM = /([^\s=]+)=(?:"((?:[^"\\]|\\.)*)"(?=\s|$)|([\s\S]*?)(?=\s+[^\s="]+=|\s*$))\s*/y;

/** Parses `key=value` words; a JSON value is parsed, anything else is text. Null if there is anything besides. */
export function paramsFrom(text: string): JsonObject | null {
  const params: [string, JsonValue][] = [];
  PARAM.lastIndex = 0;
  while (PARAM.lastIndex < text.length) {
    const match = PARAM.exec(text);
    if (!match) return null;
    const [, key = "", quoted, plain = ""] = match;
    params.push([key, quoted === undefined ? valueOf(plain) : quoted.replaceAll(/\\(.)/g, "$1")]);
  }
  return Object.fromEntries(params);
}

function valueOf(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}
