/** A line of a terminal as it was printed, escape codes included, and when: seconds since the first. */
export type RecordedLine = { at_s: number; text: string };

const ROWS = 26;
const COLUMNS = 92;
const LINE_PX = 19;
const CHARACTER_PX = 8.1;
const MARGIN_PX = 16;
const WIDTH_PX = Math.ceil(COLUMNS * CHARACTER_PX) + 2 * MARGIN_PX;
const HEIGHT_PX = ROWS * LINE_PX + 2 * MARGIN_PX;
/** Seconds for which the end stays before it begins again. */
const REST_S = 8;

const COLOURS: Readonly<Record<string, string>> = {
  31: "#ff7b72",
  32: "#7ee787",
  33: "#e3b341",
  34: "#79c0ff",
  35: "#d2a8ff",
  36: "#76e3ea",
  90: "#8b949e",
};

/** An animated picture of a terminal: each line appears when it was printed, and what is beyond the last row scrolls up. */
export function terminalSvg(lines: readonly RecordedLine[], title: string): string {
  const duration_s = (lines.at(-1)?.at_s ?? 0) + REST_S;
  const at = (seconds: number): string => ((100 * seconds) / duration_s).toFixed(2);
  const appearances = lines.map(
    ({ at_s }, n) =>
      `@keyframes l${n}{0%,${at(at_s)}%{opacity:0}${at(at_s + 0.01)}%,100%{opacity:1}}#l${n}{animation-name:l${n}}`,
  );
  const scrolls = lines.flatMap(({ at_s }, n) =>
    n < ROWS ? [] : [`${at(at_s)}%{transform:translateY(${-(n - ROWS + 1) * LINE_PX}px)}`],
  );
  const end = `transform:translateY(${-Math.max(0, lines.length - ROWS) * LINE_PX}px)`;
  const texts = lines.map(
    ({ text }, n) =>
      `<text id="l${n}" x="${MARGIN_PX}" y="${MARGIN_PX + (n + 0.75) * LINE_PX}">${spansOf(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH_PX}" height="${HEIGHT_PX}" viewBox="0 0 ${WIDTH_PX} ${HEIGHT_PX}" role="img">
<title>${escaped(title)}</title>
<style>
text{font:13.5px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre;animation:linear ${duration_s.toFixed(2)}s infinite}
#screen{animation:scroll step-end ${duration_s.toFixed(2)}s infinite}
@keyframes scroll{0%{transform:none}${scrolls.join("")}100%{${end}}}
${appearances.join("\n")}
@media (prefers-reduced-motion:reduce){text,#screen{animation:none}#screen{${end}}}
</style>
<clipPath id="window"><rect x="0" y="${MARGIN_PX / 2}" width="${WIDTH_PX}" height="${HEIGHT_PX - MARGIN_PX}"/></clipPath>
<rect width="${WIDTH_PX}" height="${HEIGHT_PX}" rx="8" fill="#0d1117"/>
<g clip-path="url(#window)"><g id="screen">
${texts.join("\n")}
</g></g>
</svg>
`;
}

/** What a picture's lines say, without how they look. */
export function textOfSvg(svg: string): string[] {
  return [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, line = ""]) =>
    line
      .replaceAll(/<[^>]+>/g, "")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      .replaceAll("&amp;", "&"),
  );
}

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const STYLE_CODE = new RegExp(`${String.fromCodePoint(27)}\\[(\\d+)m`);

function spansOf(text: string): string {
  const [first = "", ...rest] = text.split(STYLE_CODE);
  let spans = escaped(first);
  for (let n = 0; n < rest.length; n += 2) {
    const [code = "", piece = ""] = rest.slice(n, n + 2);
    if (piece === "") continue;
    const style = code === "1" ? ' font-weight="bold"' : COLOURS[code] === undefined ? "" : ` fill="${COLOURS[code]}"`;
    spans += style === "" ? escaped(piece) : `<tspan${style}>${escaped(piece)}</tspan>`;
  }
  return spans;
}
