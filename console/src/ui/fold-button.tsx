import type { ComponentProps } from "react";

type FoldButtonProps = Omit<ComponentProps<"button">, "onClick"> & {
  isOpen: boolean;
  onOpen: (isOpen: boolean) => void;
};

/** The head of something that is folded and unfolded. */
export const FoldButton = ({ isOpen, onOpen, children, ...rest }: FoldButtonProps) => (
  <button type="button" aria-expanded={isOpen} onClick={() => onOpen(!isOpen)} {...rest}>
    <span aria-hidden className="inline-block w-4 shrink-0 text-muted">
      {isOpen ? "▾" : "▸"}
    </span>
    {children}
  </button>
);
