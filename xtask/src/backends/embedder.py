"""An endpoint as memory servers expect a model behind: vectors by hashing, and names as things.

The same text has the same vector everywhere, texts that share words or parts of words are near,
a word with a capital is a thing, and nothing leaves this machine. Listens on a free port of the loopback interface, whose address
is the first line it prints.
"""

import base64
import hashlib
import json
import math
import re
import struct
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WIDTH = 1536
# Whatever shape of answer a server asks a language model for, it finds its members in this one.
ANSWER = {"edges": [], "summary": "-", "description": "-", "facts": [], "memory": []}


def parts(text):
    for word in re.findall(r"\w+", text.lower()):
        yield word, 1.0
        for start in range(len(word) - 2):
            yield word[start : start + 3], 0.3


def embed(text, width):
    vector = [0.0] * width
    for part, weight in parts(text):
        digest = hashlib.sha256(part.encode()).digest()
        place = int.from_bytes(digest[:4], "little") % width
        vector[place] += weight if digest[4] % 2 else -weight
    length = math.sqrt(sum(number * number for number in vector)) or 1.0
    return [number / length for number in vector]


def embeddings(asked):
    texts = asked["input"]
    texts = texts if isinstance(texts, list) and not all(isinstance(t, int) for t in texts) else [texts]
    rows = []
    for index, text in enumerate(texts):
        vector = embed(str(text), int(asked.get("dimensions") or WIDTH))
        if asked.get("encoding_format") == "base64":
            vector = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
        rows.append({"object": "embedding", "index": index, "embedding": vector})
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": asked.get("model"), "data": rows, "usage": usage}


def things(asked):
    said = [turn.get("content") for turn in asked.get("messages", []) if turn.get("role") == "user"]
    names = sorted(set(re.findall(r"\b[A-Z][a-z]+\b", str(said[-1] if said else ""))))
    return [{"id": name, "name": name, "type": "Thing", "description": name} for name in names]


def completion(asked):
    said = json.dumps({"nodes": things(asked), **ANSWER})
    message, reason = {"role": "assistant", "content": said}, "stop"
    if asked.get("tools"):
        call = {"name": asked["tools"][0]["function"]["name"], "arguments": said}
        calls = [{"id": "call-1", "type": "function", "function": call}]
        message, reason = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
    return {
        "id": "reply-1",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.get("model"),
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


class Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, status=200):
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def do_GET(self):
        models = [{"id": name, "object": "model", "owned_by": "yore"} for name in ("hash", "canned")]
        self.answer({"object": "list", "data": models})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        if self.path.endswith("/embeddings"):
            self.answer(embeddings(asked))
        elif self.path.endswith("/chat/completions"):
            self.answer(completion(asked))
        else:
            self.answer({"error": self.path}, 404)


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
server.serve_forever()
