"""A client of the one-chat WebSocket in another language: asks the questions from its standard input, one JSON string per line."""

import asyncio
import json
import sys

import websockets


async def converse(url):
    async with websockets.connect(url, ping_interval=None) as socket:
        status = json.loads(await socket.recv())
        await (await socket.ping())
        answers = []
        for line in sys.stdin:
            await socket.send(json.dumps({"type": "user_message", "text": json.loads(line), "request_id": "py"}))
            answers.append(await answer(socket))
        await socket.send("not JSON")
        error = json.loads(await socket.recv())
        print(json.dumps({"status": status, "answers": answers, "error": error}))


async def answer(socket):
    chunks = []
    while True:
        frame = json.loads(await socket.recv())
        if frame["type"] == "event_text_chunk":
            chunks.append(frame["text"])
        else:
            return {"text": "".join(chunks), "end": frame}


asyncio.run(converse(sys.argv[1]))
