"""What each peer is asked for, in its own words: an add, a filtered search, and its size.

Every peer gets the vectors; none computes one. Defaults are the peer's own unless a class says
otherwise.
"""

import asyncio
import json
import os
import pathlib
import subprocess
import threading
import time

LIMIT = 10
DIMENSIONS = 384


class Peer:
    packages = ()
    #: How memories come in before anything is measured.
    way = ""
    settled = ""
    #: Versions that Python does not know of.
    own = {}

    def __init__(self, store, scene):
        self.store, self.scene = store, scene
        self.wrong = self.empty = 0
        self.loop = asyncio.new_event_loop()
        self.open()

    def cpu(self):
        return time.process_time()

    def resident(self, name):
        return resident("self", name)

    def settle(self):
        return False

    def add_now(self, number):
        self.add(number)

    def ask_now(self, number):
        self.ask(number)

    def warm(self):
        """What a running system has loaded long before."""
        for number in range(min(5, len(self.scene.questions))):
            self.ask_now(number)

    def judge(self, wanted, users):
        """Counts answers that are missing, and those that belong to somebody else."""
        self.empty += not users
        self.wrong += sum(user != wanted for user in users)

    def close(self):
        pass

    def fill(self, numbers, until):
        filled = 0
        for number in numbers:
            if time.monotonic() > until:
                break
            self.add_now(number)
            filled += 1
        return filled

    def fill_in_pieces(self, numbers, until, piece, put):
        filled = 0
        numbers = list(numbers)
        for start in range(0, len(numbers), piece):
            if time.monotonic() > until:
                break
            part = numbers[start : start + piece]
            put(part)
            filled += len(part)
        return filled


def resident(process, name):
    with open(f"/proc/{process}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))


class Mem0(Peer):
    packages = ("mem0ai", "qdrant-client")
    way = "add(infer=False), one after the other"

    def open(self):
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(self.store / "home")
        os.environ.setdefault("OPENAI_API_KEY", "none")
        from mem0 import Memory

        self.memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(self.store / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": DIMENSIONS,
                        "collection_name": "memories",
                    },
                },
                "history_db_path": str(self.store / "history.db"),
            }
        )
        known = self.scene.embedder()

        class Supplied:
            def embed(self, text, *_, **__):
                return known(text)

            def embed_batch(self, texts, *_, **__):
                return [known(text) for text in texts]

        self.memory.embedding_model = Supplied()

    def add(self, number):
        text, user = self.scene.texts[number], self.scene.user(number)
        self.memory.add(text, user_id=user, infer=False)

    def ask(self, number):
        user = self.scene.user(number)
        found = self.memory.search(
            self.scene.questions[number], filters={"user_id": user}, top_k=LIMIT, threshold=0.0
        )
        self.judge(user, [hit.get("user_id") for hit in found["results"]])

    def count(self):
        return self.memory.vector_store.client.count("memories").count

    def forget(self, number):
        found = self.memory.get_all(filters={"user_id": self.scene.user(number)}, top_k=100_000)
        text = self.scene.texts[number]
        for hit in found["results"]:
            if hit["memory"] == text:
                self.memory.delete(hit["id"])

    def close(self):
        self.memory.vector_store.client.close()


class Chroma(Peer):
    packages = ("chromadb",)
    way = "add() of 500 at a time"

    def open(self):
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(str(self.store / "chroma"), settings=settings)
        self.memories = self.client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def put(self, numbers):
        self.memories.add(
            ids=[str(number) for number in numbers],
            documents=[self.scene.texts[number] for number in numbers],
            embeddings=[self.scene.vectors[number] for number in numbers],
            metadatas=[{"user": self.scene.user(number)} for number in numbers],
        )

    def add(self, number):
        self.put([number])

    def fill(self, numbers, until):
        return self.fill_in_pieces(numbers, until, 500, self.put)

    def ask(self, number):
        user = self.scene.user(number)
        found = self.memories.query(
            query_embeddings=[self.scene.asked[number]], where={"user": user}, n_results=LIMIT
        )
        self.judge(user, [meta["user"] for meta in found["metadatas"][0]])

    def count(self):
        return self.memories.count()

    def forget(self, number):
        self.memories.delete(ids=[str(number)])


class Lance(Peer):
    packages = ("lancedb", "pyarrow")
    way = "add() of 500 at a time"

    def open(self):
        import lancedb
        import pyarrow

        schema = pyarrow.schema(
            [
                ("id", pyarrow.int64()),
                ("text", pyarrow.string()),
                ("user", pyarrow.string()),
                ("vector", pyarrow.list_(pyarrow.float32(), DIMENSIONS)),
            ]
        )
        self.table = lancedb.connect(str(self.store / "lance")).create_table(
            "memories", schema=schema, exist_ok=True
        )

    def row(self, number):
        return {
            "id": number,
            "text": self.scene.texts[number],
            "user": self.scene.user(number),
            "vector": self.scene.vectors[number],
        }

    def add(self, number):
        self.table.add([self.row(number)])

    def fill(self, numbers, until):
        put = lambda part: self.table.add([self.row(number) for number in part])
        return self.fill_in_pieces(numbers, until, 500, put)

    def ask(self, number):
        user = self.scene.user(number)
        found = self.table.search(self.scene.asked[number]).distance_type("cosine")
        found = found.where(f"user = '{user}'", prefilter=True).limit(LIMIT).to_list()
        self.judge(user, [hit["user"] for hit in found])

    def count(self):
        return self.table.count_rows()

    def forget(self, number):
        self.table.delete(f"id = {number}")


class LanceTuned(Lance):
    """With what its documentation advises before it is asked: compaction, and an index."""

    def settle(self):
        import lancedb.index

        self.table.create_scalar_index("user", index_type="BITMAP")
        self.settled = "optimize(), a bitmap index on the user"
        if self.count() >= 100_000:
            self.table.create_index(metric="cosine", vector_column_name="vector")
            self.settled += ", the default vector index"
        self.table.optimize()
        return True


class Memorywire(Peer):
    packages = ("memorywire", "sqlite-vec")
    way = "remember(), one after the other"

    def open(self):
        import sqlite3
        import sys

        if not hasattr(sqlite3.Connection, "enable_load_extension"):
            import pysqlite3

            sys.modules["sqlite3"] = pysqlite3
        from memorywire.api import Memory
        from memorywire.store.sqlite_vec import SqliteVecStore

        embed = self.scene.embedder()
        self.kept = SqliteVecStore(self.store / "memories.db", embedder=embed)
        self.memories = {
            self.scene.user(number): Memory(self.scene.user(number), [self.kept])
            for number in range(self.scene.users)
        }

    async def add(self, number):
        await self.memories[self.scene.user(number)].remember(self.scene.texts[number])

    async def ask(self, number):
        user = self.scene.user(number)
        found = await self.memories[user].recall(self.scene.questions[number], k=LIMIT)
        self.judge(user, [getattr(hit, "agent_id", user) for hit in found])

    def add_now(self, number):
        self.loop.run_until_complete(self.add(number))

    def ask_now(self, number):
        self.loop.run_until_complete(self.ask(number))

    def close(self):
        closing = getattr(self.kept, "close", None) or getattr(self.kept, "aclose", None)
        if closing:
            done = closing()
            if asyncio.iscoroutine(done):
                self.loop.run_until_complete(done)

    def forget(self, number):
        memory = self.memories[self.scene.user(number)]
        found = self.loop.run_until_complete(memory.recall(self.scene.texts[number], k=50))
        ids = [hit.id for hit in found if hit.content == self.scene.texts[number]]
        self.loop.run_until_complete(memory.forget(ids=ids, hard_delete=True))

    def count(self):
        import sqlite3

        file = sqlite3.connect(self.store / "memories.db")
        return file.execute("select count(*) from memories").fetchone()[0]


class ServerMemory(Peer):
    """One process over its pipes, as an agent host runs it. No vectors and no filter: it looks for
    one word in every text."""

    way = "create_entities of 500 at a time"

    def open(self):
        self.file = self.store / "memory.jsonl"
        line = json.loads(os.environ["SERVER_MEMORY"])
        about = pathlib.Path(line[-1]).parents[1] / "package.json"
        self.own = {"@modelcontextprotocol/server-memory": json.loads(about.read_text())["version"]}
        surroundings = {**os.environ, "MEMORY_FILE_PATH": str(self.file)}
        self.process = subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=surroundings
        )
        self.lock, self.waiting, self.asked = threading.Lock(), {}, 0
        threading.Thread(target=self.listen, daemon=True).start()
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "0"},
        }
        self.request("initialize", hello)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, frame):
        with self.lock:
            self.process.stdin.write(json.dumps(frame).encode() + b"\n")
            self.process.stdin.flush()

    def listen(self):
        for line in self.process.stdout:
            frame = json.loads(line)
            waits = self.waiting.pop(frame.get("id"), None)
            if waits:
                waits[1] = frame
                waits[0].set()

    def request(self, method, params):
        waits = [threading.Event(), None]
        with self.lock:
            self.asked += 1
            number = self.asked
            self.waiting[number] = waits
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        if not waits[0].wait(120):
            raise TimeoutError(f"no answer to {method}")
        if "error" in waits[1]:
            raise RuntimeError(waits[1]["error"])
        return waits[1]["result"]

    def call(self, tool, arguments):
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(str(result)[:200])
        return result

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self, name):
        return resident(self.process.pid, name)

    def entity(self, number):
        text = self.scene.texts[number]
        kind = self.scene.user(number)
        return {"name": f"memory {number}", "entityType": kind, "observations": [text]}

    def add(self, number):
        self.call("create_entities", {"entities": [self.entity(number)]})

    def fill(self, numbers, until):
        put = lambda part: self.call("create_entities", {"entities": [self.entity(n) for n in part]})
        return self.fill_in_pieces(numbers, until, 500, put)

    def ask(self, number):
        # Its search is for one string; the longest word of the question is what tells most.
        word = max(self.scene.questions[number].split(), key=len)
        self.call("search_nodes", {"query": word})

    def count(self):
        if not self.file.exists():
            return 0
        with self.file.open() as lines:
            return sum(1 for line in lines if line.strip())

    def forget(self, number):
        self.call("delete_entities", {"entityNames": [f"memory {number}"]})

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


ALL = {
    "mem0": Mem0,
    "chroma": Chroma,
    "lancedb": Lance,
    "lancedb-tuned": LanceTuned,
    "memorywire": Memorywire,
    "server-memory": ServerMemory,
}
