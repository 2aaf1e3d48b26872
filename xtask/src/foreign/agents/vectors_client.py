"""Sends every vector over one transport and compares what comes back with what they say.

Follows transports.py. Arguments: TRANSPORT URL CA VECTORS TOKENS EXAMPLE THEN TURN, where TRANSPORT is h2
(by curl), h3 (by aioquic), ws (by websockets), ws2 (WebSockets in HTTP/2, by h2 and wsproto) or grpc (by
grpcio), TOKENS maps DIDs to bearer tokens, THEN is what the server's clock shows, and TURN is
first, or second for what has the id of another vector and cannot come to one server. After that a question is asked, answered, and its stream resumed on the same transport.
"""

transport, url, ca, vectors_path, tokens_text, example, then, turn = sys.argv[1:9]
vectors = json.loads(pathlib.Path(vectors_path).read_text())
tokens = json.loads(tokens_text)
begin(url, ca, example)


async def main():
    client = await opened(transport)
    wrong, sent, unsayable, known = [], 0, [], {}
    for kind in ("accept", "accept_lenient", "reject"):
        for case in vectors[kind]:
            envelope = case.get("envelope") or {}
            said = {name: value for name, value in envelope.items() if name != "sig"}
            if kind != "reject":
                first = known.setdefault((said["from"], said["id"]), said)
                if (turn == "second") == (first == said):
                    continue
            elif turn == "second":
                continue
            body = case.get("raw_request_body") or json.dumps(envelope)
            token = tokens.get(envelope.get("from"), tokens["did:web:worker.example"])
            wanted = case["expect_code"] if kind == "reject" else "202"
            if case["name"] == "progress-ack":
                # Signed well, and for frames that its stream never had.
                wanted = "4.09"
            got, _ = await client.send(token, body.encode())
            sent += 1
            if transport == "grpc" and got.startswith("unsayable") and kind == "reject":
                unsayable.append(case["name"])
            elif got != wanted and not (
                # Bodies in a form that only JSON has become plain ones on their way.
                transport == "grpc" and case["name"] in ("duplicate-member",)
            ):
                wrong.append((kind, case["name"], wanted, got))
    assert not wrong, wrong
    speak(tokens["key"], then, "did:web:memory.example")
    token = tokens["owner"]
    body = {"type": "text/plain", "content": "what am I allergic to?"}
    stream = f"question-over-{transport}"
    got, _ = await client.send(token, signed("ask", body, stream_id=stream))
    assert got == "202", got
    frames = []
    while not frames or frames[-1]["type"] not in ENDS:
        last = frames[-1]["delta_seq"] if frames else None
        frames += await client.frames(token, stream, last, 1)
    assert [frame["delta_seq"] for frame in frames] == list(range(len(frames))), frames
    assert frames[-1]["type"] == "done" and "peanuts" in json.dumps(frames), frames
    # Begun here, it goes on elsewhere after the first frame.
    other = Socket() if transport == "h2" else Curl()
    rest = await other.frames(token, stream, 0, len(frames))
    assert [frame["delta_seq"] for frame in rest] == list(range(1, len(frames))), rest
    assert rest[-1]["type"] == "done", rest
    await client.close()
    left = f", not sayable: {', '.join(unsayable)}" if unsayable else ""
    vectors_sent = f"{sent} vector" if sent == 1 else f"{sent} vectors"
    print(f"{vectors_sent} and a question over {transport}{left}")


asyncio.run(main())
