"""A user of a homeserver with matrix-nio. Reads commands and writes what it receives, both as JSON lines."""

import asyncio
import json
import sys

from nio import AsyncClient, AsyncClientConfig, EnableEncryptionBuilder, MegolmEvent, RoomMessageNotice, RoomMessageText


async def main(url: str, user_id: str, password: str, bot_id: str, store: str = "") -> None:
    """The room is encrypted if there is a folder for keys."""
    encrypts = store != ""
    config = AsyncClientConfig(encryption_enabled=encrypts)
    client = AsyncClient(url, user_id, store_path=store, config=config)
    await client.login(password)

    def tell(**fields: object) -> None:
        print(json.dumps(fields), flush=True)

    def on_message(room, event) -> None:
        if event.sender != user_id:
            notice = isinstance(event, RoomMessageNotice)
            tell(body=event.body, notice=notice, content=event.source["content"], decrypted=event.decrypted)

    def on_unreadable(room, event) -> None:
        tell(body=f"UNREADABLE {event.event_id}", notice=False, content={}, decrypted=False)

    client.add_event_callback(on_message, (RoomMessageText, RoomMessageNotice))
    client.add_event_callback(on_unreadable, MegolmEvent)
    await client.sync(timeout=0)
    room = await client.room_create(
        invite=[bot_id], initial_state=[EnableEncryptionBuilder().as_dict()] if encrypts else []
    )
    tell(body=f"ROOM {room.room_id}", notice=False, content={}, decrypted=encrypts)
    following = asyncio.create_task(client.sync_forever(timeout=10000))
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        content = {"msgtype": "m.text", "body": json.loads(line)}
        await client.room_send(room.room_id, "m.room.message", content, ignore_unverified_devices=True)
    following.cancel()
    await client.close()


asyncio.run(main(*sys.argv[1:6]))
