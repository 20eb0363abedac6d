/** A JSON value as indented text in a scrollable box. */
export function Json({ value, label }: { value: unknown; label: string }) {
  return (
    <pre
      tabIndex={0}
      role="group"
      aria-label={label}
      className="max-h-80 overflow-auto rounded-md border border-line bg-sunken p-2.5 font-mono text-[12px] leading-[1.45] whitespace-pre-wrap wrap-anywhere"
    >
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}
