/** Counts the names and values that match, and collects the paths to expand so that they are visible. */
export function openPaths(value: unknown, words: string): { matches: number; open: ReadonlySet<string> } {
  const open = new Set<string>();
  const needle = words.toLowerCase();
  const has = (text: string): number => (text.toLowerCase().includes(needle) ? 1 : 0);
  const search = (node: unknown, path: string): number => {
    if (typeof node !== "object" || node === null)
      return has(typeof node === "string" ? node : (JSON.stringify(node) ?? ""));
    let matches = 0;
    for (const [key, child] of Object.entries(node))
      matches += (Array.isArray(node) ? 0 : has(key)) + search(child, `${path}/${key}`);
    if (matches > 0) open.add(path);
    return matches;
  };
  return { matches: search(value, ""), open };
}
