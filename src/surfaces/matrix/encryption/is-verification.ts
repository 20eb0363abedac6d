import type { RoomEvent } from "../transport/room-event.ts";

/** Whether an event is a part of a verification in a room. Some clients do not encrypt it, even in encrypted rooms. */
export const isVerification = ({ type, content }: RoomEvent): boolean =>
  type.startsWith("m.key.verification.") ||
  (type === "m.room.message" && content["msgtype"] === "m.key.verification.request");
