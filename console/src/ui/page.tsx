import type { ReactNode } from "react";

type PageProps = {
  title: string;
  /** Small text beside the title. */
  note?: ReactNode;
  /** At the other end of the header. */
  aside?: ReactNode;
  children: ReactNode;
};

/** A page that scrolls as a whole. */
export function Page({ title, note, aside, children }: PageProps) {
  return (
    <div
      tabIndex={0}
      role="region"
      aria-label={title}
      data-scroll
      className="min-h-0 flex-1 overflow-y-auto -outline-offset-2"
    >
      <header className="flex min-h-[49px] flex-wrap items-center justify-between gap-x-4 gap-y-1 border-b border-line bg-surface px-4 py-2">
        <h1 className="min-w-0 text-[16px] font-semibold wrap-anywhere">
          {title} {note !== undefined && <span className="ml-2 text-[13px] font-normal text-muted">{note}</span>}
        </h1>
        {aside}
      </header>
      {children}
    </div>
  );
}
