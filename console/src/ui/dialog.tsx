import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useState } from "react";

type DialogProps = {
  title: string;
  description?: ReactNode;
  children: ReactNode;
  onClose: () => void;
  wide?: boolean;
};

/** A modal dialog. Escape and a click outside close it; focus stays inside and returns to where it was. */
export function Dialog({ title, description, children, onClose, wide = false }: DialogProps) {
  const [opener] = useState(() => document.activeElement);
  // The element that opened it may be gone: then the page gets the focus.
  const giveBack = (event: Event) => {
    event.preventDefault();
    const target = opener?.isConnected && opener !== document.body ? opener : document.getElementById("main");
    if (target instanceof HTMLElement) target.focus();
  };
  return (
    <Radix.Root open onOpenChange={(open) => !open && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-black/45" />
        <Radix.Content
          onCloseAutoFocus={giveBack}
          // Focusable, so that a dialog taller than the window can be scrolled with the keyboard.
          tabIndex={0}
          className={`panel fixed top-[12vh] left-1/2 z-50 max-h-[80vh] w-[calc(100vw-24px)] ${wide ? "max-w-2xl" : "max-w-md"} -translate-x-1/2 overflow-y-auto bg-raised p-5 shadow-2xl`}
          {...(description === undefined ? { "aria-describedby": undefined } : {})}
        >
          <Radix.Title className="text-[15px] font-semibold">{title}</Radix.Title>
          {description !== undefined && (
            <Radix.Description asChild>
              <div className="mt-1 text-muted">{description}</div>
            </Radix.Description>
          )}
          <div className="mt-4">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
