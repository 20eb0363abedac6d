/** An event of a room as the homeserver tells it, with the room that it is in. */
export type RoomEvent = {
  event_id: string;
  room_id: string;
  type: string;
  sender: string;
  origin_server_ts: number;
  content: Record<string, unknown>;
  state_key?: string;
  unsigned?: { prev_content?: { membership?: string } };
};
