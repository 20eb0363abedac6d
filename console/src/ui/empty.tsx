import type { ReactNode } from "react";

type EmptyProps = { title: string /** Nothing else is on the page. */; isPage?: boolean; children?: ReactNode };

/** An empty state, with what to do next. */
export function Empty({ title, isPage = false, children }: EmptyProps) {
  const Title = isPage ? "h1" : "p";
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-2 px-6 py-14 text-center">
      <Title className="text-[15px] font-semibold">{title}</Title>
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
