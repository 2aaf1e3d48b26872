"""Reads a long stream that is cut at random and goes on at random on another transport.

Follows transports.py. Arguments: URL CA KEY EXAMPLE ATTACHMENT MOST SEED, where MOST is how many frames are read at a time
at most; the token is in UAMP_TOKEN. The stream is a file in pieces: what was read must be the file, every frame once and in
order, over every transport.
"""

import base64
import hashlib
import os
import random
from datetime import datetime, timezone

url, ca, key_path, example, attachment, at_most, seed = sys.argv[1:8]
at_most, chance, token = int(at_most), random.Random(int(seed)), os.environ["UAMP_TOKEN"]
begin(url, ca, example)


async def main():
    clients = {name: await opened(name) for name in TRANSPORTS}
    to = json.load(agent.Server(url, ca, token).request("GET", "/.well-known/did.json"))["id"]
    speak(key_path, datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), to)
    body = {"type": "application/json", "content": json.dumps({"attachment": attachment})}
    asked = signed("ask", body, stream_id="file-in-pieces")
    got, _ = await clients["h2"].send(token, asked)
    assert got == "202", got
    digest, number, used, ended = hashlib.sha256(), 0, {name: 0 for name in clients}, None
    while ended is None:
        name = chance.choice(list(clients))
        most = chance.randint(1, at_most)
        frames = await clients[name].frames(
            token, "file-in-pieces", number - 1 if number else None, most
        )
        assert frames and len(frames) <= most, (name, number, most, len(frames))
        used[name] += 1
        for frame in frames:
            assert frame["delta_seq"] == number, (name, number, frame["delta_seq"])
            number += 1
            if frame["type"] == "chunk":
                digest.update(base64.b64decode(frame["payload"]["chunk_b64"]))
            else:
                ended = frame
    assert ended["type"] == "done" and ended["payload"]["count"] == number - 1, ended
    assert digest.hexdigest() == attachment, "the file is another"
    assert all(used.values()), used
    for client in clients.values():
        await client.close()
    print(json.dumps({"frames": number, "readings": sum(used.values())}))


asyncio.run(main())
