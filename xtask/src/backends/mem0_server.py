"""mem0's own library behind the routes of its open server, which its wheel does not bring.

Vectors lie in a store of the library's own, in a directory that the first argument names; nothing
is inferred. The second argument is where the embedder is. Listens on a free port of the loopback
interface, whose address is the first line it prints.
"""

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from mem0 import Memory

home, embedder = sys.argv[1:3]
model = {"model": "hash", "api_key": "none", "openai_base_url": embedder}
memory = Memory.from_config({
    "history_db_path": f"{home}/history.db",
    "vector_store": {
        "provider": "qdrant",
        "config": {"path": f"{home}/vectors", "embedding_model_dims": 1536, "on_disk": True},
    },
    "embedder": {"provider": "openai", "config": {**model, "embedding_dims": 1536}},
    "llm": {"provider": "openai", "config": {**model, "model": "canned"}},
})
# The library's local vector store is made for one thread at a time.
turn = threading.Lock()
WHOSE = ("user_id", "agent_id", "run_id")


def add(asked):
    whose = {name: asked[name] for name in WHOSE if asked.get(name)}
    return memory.add(
        asked["messages"], metadata=asked.get("metadata"), infer=asked.get("infer", True), **whose
    )


def search(asked):
    return memory.search(
        asked["query"],
        filters=asked["filters"],
        top_k=asked.get("top_k", 20),
        threshold=asked.get("threshold", 0.1),
    )


def listed(query):
    filters = {name: query[name][0] for name in WHOSE if name in query}
    return memory.get_all(filters=filters, top_k=int(query.get("top_k", ["100"])[0]))


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, work, missing=200):
        try:
            with turn:
                body = work()
            status = 200 if body is not None else missing
        except ValueError as error:
            body, status = {"detail": str(error)}, 404 if "not found" in str(error) else 400
        said = json.dumps(body, default=str).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")

    def named(self):
        found = re.fullmatch(r"/memories/([^/]+)", urlsplit(self.path).path)
        return unquote(found.group(1)) if found else None

    def do_GET(self):
        name = self.named()
        query = parse_qs(urlsplit(self.path).query)
        self.answer(lambda: memory.get(name) if name else listed(query))

    def do_POST(self):
        asked = self.body()
        work = {"/memories": add, "/search": search}[urlsplit(self.path).path]
        self.answer(lambda: work(asked))

    def do_DELETE(self):
        name = self.named()
        self.answer(lambda: memory.delete(name))


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
