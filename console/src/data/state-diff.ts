export type Change =
  | { kind: "added"; path: string; after: unknown }
  | { kind: "removed"; path: string; before: unknown }
  | { kind: "changed"; path: string; before: unknown; after: unknown };

type Container = Record<string, unknown>;

const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null;
const isSameKind = (a: Container, b: Container): boolean => Array.isArray(a) === Array.isArray(b);

/** The differences between two JSON values, at the deepest paths that differ. */
export function changesBetween(before: unknown, after: unknown, path = ""): Change[] {
  if (Object.is(before, after)) return [];
  if (!isContainer(before) || !isContainer(after) || !isSameKind(before, after))
    return [{ kind: "changed", path: path || "(whole)", before, after }];
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key): Change[] => {
    const inner = Array.isArray(after) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`;
    if (!Object.hasOwn(before, key)) return [{ kind: "added", path: inner, after: after[key] }];
    if (!Object.hasOwn(after, key)) return [{ kind: "removed", path: inner, before: before[key] }];
    return changesBetween(before[key], after[key], inner);
  });
}
