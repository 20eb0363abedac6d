import type { ComponentProps, ReactNode } from "react";

/** A column by its name. Amounts are right-aligned. `isWide`: phones do not show it; its cells have the class `WIDE`. */
export type Head = string | { name: string; isAmount?: boolean; isWide?: boolean };
export const WIDE = "max-md:hidden";
type TableProps = { label: string; heads: readonly Head[]; children: ReactNode };

/** A table that scrolls sideways on narrow screens. */
export function Table({ label, heads, children }: TableProps) {
  return (
    <div tabIndex={0} role="group" aria-label={label} className="panel overflow-x-auto">
      <table className="w-full text-left">
        <thead>
          <tr className="border-b border-line text-muted">
            {heads.map((head) => {
              const { name, isAmount = false, isWide = false } = typeof head === "string" ? { name: head } : head;
              const look = `${isAmount ? "text-right" : ""} ${isWide ? WIDE : ""}`;
              return (
                <th key={name} scope="col" className={`px-3.5 py-2 font-medium whitespace-nowrap ${look}`}>
                  {name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export const Row = ({ className = "", ...rest }: ComponentProps<"tr">) => (
  <tr className={`border-b border-line last:border-0 ${className}`} {...rest} />
);

export const Cell = ({ className = "", ...rest }: ComponentProps<"td">) => (
  <td className={`px-3.5 py-2 align-top ${className}`} {...rest} />
);

export const Amount = ({ className = "", ...rest }: ComponentProps<"td">) => (
  <td className={`px-3.5 py-2 text-right align-top tabular-nums ${className}`} {...rest} />
);
