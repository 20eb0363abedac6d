import { notifying, turnOff, turnOn } from "../../data/notifications.ts";
import { useSignal } from "../../data/signal.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";

/** Asks the browser for permission only when clicked. */
export function NotifySwitch() {
  const state = useSignal(notifying);
  if (state === "unavailable") return null;
  if (state === "refused")
    return <span className="text-[12px] text-muted">Notifications are blocked in this browser's settings.</span>;
  const isOn = state === "on";
  return (
    <Button aria-pressed={isOn} onClick={() => (isOn ? turnOff() : void turnOn())}>
      <Icon name="bell" className="size-3.5" />
      {isOn ? "Notifications are on" : "Notify me"}
    </Button>
  );
}
