import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/client";
import type { ToolOutputs } from "../tool-outputs.ts";

/** A server's result as text for the model. Anything else is stored in a file, which the text names. */
export async function resultText(result: CallToolResult, outputs: ToolOutputs): Promise<string> {
  const parts: string[] = [];
  for (const block of result.content) parts.push(await blockText(block, outputs));
  const text = parts.filter((part) => part !== "").join("\n");
  // A server normally repeats structured content as text; if not, the structure is all there is.
  if (text !== "" || result.structuredContent === undefined) return text === "" ? "(no output)" : text;
  return JSON.stringify(result.structuredContent);
}

async function blockText(block: ContentBlock, outputs: ToolOutputs): Promise<string> {
  switch (block.type) {
    case "text":
      return block.text;
    case "image":
    case "audio":
      return storedFile(block.data, block.mimeType, block.type, outputs);
    case "resource_link":
      return `[resource ${block.name}: ${block.uri}${block.description ? `, ${block.description}` : ""}]`;
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `[resource ${resource.uri}]\n${resource.text}`;
      return storedFile(resource.blob, resource.mimeType, `resource ${resource.uri}`, outputs);
    }
  }
  return block satisfies never;
}

async function storedFile(data: string, mime: string | undefined, what: string, outputs: ToolOutputs): Promise<string> {
  const bytes = Buffer.from(data, "base64");
  const path = await outputs.keep(bytes, extensionOf(mime));
  return `[${what}${mime === undefined ? "" : ` (${mime})`}: ${bytes.length} bytes in ${path}]`;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  "image/jpeg": "jpg",
  "image/svg+xml": "svg",
  "audio/mpeg": "mp3",
  "application/gzip": "gz",
  "application/octet-stream": "bin",
  "text/plain": "txt",
  "text/markdown": "md",
};

/** A server may claim any type. */
function extensionOf(mime = ""): string {
  const [type = ""] = mime.toLowerCase().split(";");
  const extension = EXTENSIONS[type];
  if (extension !== undefined) return extension;
  const [, subtype = ""] = type.split("/");
  return /^[a-z0-9]{1,10}$/.test(subtype) ? subtype : "bin";
}
