import { ClientEvent, createClient, RoomEvent, RoomMemberEvent, SyncState } from "matrix-js-sdk";
import { logger } from "matrix-js-sdk/lib/logger.js";
import { say } from "../runtime/child.ts";

/** It is following the homeserver. */
export type BareBotMessage = { ready: true };

/** The smallest bot that replies: the SDK's own client, which sends each message back and stores nothing. */
const [baseUrl = "", userId = "", accessToken = "", deviceId = ""] = process.argv.slice(2);
logger.info = logger.warn = console.debug = () => {};
const client = createClient({ baseUrl, userId, accessToken, deviceId });
client.on(RoomMemberEvent.Membership, (_, { roomId, userId: member, membership }) => {
  if (member === userId && membership === "invite") void client.joinRoom(roomId);
});
client.on(RoomEvent.Timeline, (event, room, toStartOfTimeline) => {
  if (toStartOfTimeline || !room || event.getType() !== "m.room.message" || event.getSender() === userId) return;
  void client.sendTextMessage(room.roomId, `You said: ${event.getContent()["body"]}`);
});
client.on(ClientEvent.Sync, (state) => {
  if (state === SyncState.Prepared) say({ ready: true } satisfies BareBotMessage);
});
await client.startClient({ initialSyncLimit: 1 });
