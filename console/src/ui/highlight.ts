export type Token = { kind: "comment" | "string" | "number" | "keyword" | "plain"; text: string };

const KEYWORDS =
  "abstract|and|as|assert|async|await|break|case|catch|class|const|continue|def|default|del|do|elif|else|enum|except|export|extends|false|False|final|finally|fn|for|from|func|function|global|go|if|impl|import|in|interface|is|lambda|let|match|mod|mut|new|nil|None|not|null|of|or|package|pass|private|protected|pub|public|raise|return|select|self|static|struct|super|switch|this|throw|trait|true|True|try|type|typeof|undefined|use|var|void|where|while|with|yield";

/** Every alternative consumes a character and no two can match the same text, so that matching takes linear time. */
const PART = new RegExp(
  [
    String.raw`(?<comment>//[^\n]*|/\*[^]*?\*/|(?<![^\s])#[^\n]*|<!--[^]*?-->)`,
    String.raw`(?<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|` + "`(?:[^`\\\\]|\\\\.)*`)",
    String.raw`(?<number>\b\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?\b)`,
    String.raw`(?<keyword>\b(?:${KEYWORDS})\b)`,
  ].join("|"),
  "g",
);

/** Longer code is not highlighted. */
const LONGEST = 50_000;

/** Splits code of any common language into tokens, by the syntax that most of them share. Joined, the tokens are the text again. */
export function highlight(code: string): Token[] {
  if (code.length > LONGEST) return [{ kind: "plain", text: code }];
  const tokens: Token[] = [];
  let end = 0;
  for (const match of code.matchAll(PART)) {
    if (match.index > end) tokens.push({ kind: "plain", text: code.slice(end, match.index) });
    const kind = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined)?.[0] as Token["kind"];
    tokens.push({ kind, text: match[0] });
    end = match.index + match[0].length;
  }
  if (end < code.length) tokens.push({ kind: "plain", text: code.slice(end) });
  return tokens;
}

export type Passage = { kind: "text" | "code"; text: string };

/** Splits a text into prose and fenced code. */
export function passages(text: string): Passage[] {
  return text
    .split(/^(```[^\n]*\n[^]*?^```[^\S\n]*)$/m)
    .filter((part) => part !== "")
    .map((part) =>
      part.startsWith("```")
        ? { kind: "code", text: part.replace(/^```[^\n]*\n/, "").replace(/\n?```\s*$/, "") }
        : { kind: "text", text: part.replace(/^\n|\n$/g, "") },
    );
}
