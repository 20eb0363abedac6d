import type { ReactNode } from "react";

/** Nothing here, and what to do next. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-sm flex-col items-center gap-2 px-6 py-14 text-center">
      <p className="text-[15px] font-semibold">{title}</p>
      {children && <div className="text-muted">{children}</div>}
    </div>
  );
}

export function Failure({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <div role="alert" className="m-4 rounded-lg border border-line bg-bad-soft px-4 py-3 text-bad">
      {error.message}
      {onRetry && (
        <button type="button" className="ml-3 underline" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}
