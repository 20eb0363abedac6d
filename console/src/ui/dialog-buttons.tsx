import type { ReactNode } from "react";
import { Button } from "./button.tsx";

type DialogButtonsProps = {
  /** What the dialog does. */
  label: string;
  /** Absent: the button submits the form around it. */
  onConfirm?: () => void;
  isDisabled?: boolean;
  isDangerous?: boolean;
  onClose: () => void;
  closeLabel?: string;
  /** At the other end, e.g. progress. */
  children?: ReactNode;
};

/** The buttons at the foot of a dialog. */
export const DialogButtons = ({
  label,
  onConfirm,
  isDisabled = false,
  isDangerous = false,
  onClose,
  closeLabel = "Cancel",
  children,
}: DialogButtonsProps) => (
  <div className="mt-4 flex items-center justify-end gap-2">
    {children !== undefined && <div className="mr-auto text-muted">{children}</div>}
    <Button onClick={onClose}>{closeLabel}</Button>
    <Button
      type={onConfirm ? "button" : "submit"}
      look={isDangerous ? "danger" : "primary"}
      disabled={isDisabled}
      onClick={onConfirm}
    >
      {label}
    </Button>
  </div>
);
