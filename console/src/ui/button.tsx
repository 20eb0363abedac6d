import type { ComponentProps } from "react";

const LOOKS = {
  plain: "border-line bg-surface text-ink hover:bg-sunken",
  primary: "border-transparent bg-accent text-on-accent hover:brightness-110",
  danger: "border-transparent bg-bad text-surface hover:brightness-110",
  ghost: "border-transparent bg-transparent text-muted hover:bg-sunken hover:text-ink",
} as const;

type ButtonProps = ComponentProps<"button"> & { look?: keyof typeof LOOKS };

export function Button({ look = "plain", className = "", ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      className={`inline-flex h-[30px] items-center justify-center gap-1.5 whitespace-nowrap rounded-md border px-2.5 font-medium disabled:cursor-not-allowed disabled:opacity-50 ${LOOKS[look]} ${className}`}
      {...rest}
    />
  );
}
