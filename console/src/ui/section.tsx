import type { ReactNode } from "react";

export function Section({ title, aside, children }: { title: string; aside?: ReactNode; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <div className="mb-1.5 flex items-baseline justify-between gap-2">
        <h2 className="caption">{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
