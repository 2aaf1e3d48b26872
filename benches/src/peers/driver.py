"""Fills one peer with a scene, adds to it, asks it, and prints what that took.

Arguments: the peer, a folder with the scene, a folder for the peer's files, and a JSON object with
the counts and bounds. Every line printed is one JSON object; a cell is printed as soon as it is
measured, so that a run that is stopped loses only what it did not reach.
"""

import array
import asyncio
import importlib.metadata
import inspect
import json
import os
import pathlib
import platform
import sys
import threading
import time

import adapters

DIMENSIONS = 384


class Scene:
    """Texts, questions and their vectors; who belongs to whom follows from the number."""

    def __init__(self, place, size, users):
        self.texts = (place / "texts.txt").read_text().splitlines()[:size]
        self.questions = (place / "questions.txt").read_text().splitlines()
        self.vectors, self.asked = Rows(place / "texts.f32"), Rows(place / "questions.f32")
        self.users = users

    def user(self, number):
        return f"user{number % self.users}"

    def embedder(self):
        """The vector of every text, for peers that ask for one."""
        places = {text: (self.asked, number) for number, text in enumerate(self.questions)}
        places.update((text, (self.vectors, number)) for number, text in enumerate(self.texts))

        def embed(text):
            rows, number = places[text]
            return rows[number]

        return embed


class Rows:
    """Vectors as lists of numbers, read from a file when they are asked for."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDONLY)

    def __getitem__(self, number):
        row = array.array("f")
        row.frombytes(os.pread(self.file, 4 * DIMENSIONS, 4 * DIMENSIONS * number))
        return row.tolist()


def tell(**line):
    print(json.dumps(line), flush=True)


def percentiles(values):
    ordered = sorted(values)
    at = lambda share: ordered[max(0, min(len(ordered) - 1, -(-int(share * 1000) * len(ordered) // 1000) - 1))]
    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99)}


#: Failures after which a client of a stage gives up.
PATIENCE = 10


class Stage:
    """Work that is measured, until it is done or its time is over."""

    def __init__(self, peer, cell, clients, seconds):
        self.peer, self.cell, self.clients = peer, cell, clients
        self.walls, self.until = [], time.monotonic() + seconds
        self.failed, self.reason = 0, None

    def failure(self, error):
        self.failed += 1
        self.reason = self.reason or f"{type(error).__name__}: {error}"[:200]
        return self.failed >= PATIENCE

    def share(self, work, items):
        for item in items:
            if time.monotonic() > self.until:
                return
            begun = time.perf_counter()
            try:
                work(item)
                self.walls.append((time.perf_counter() - begun) * 1e3)
            except Exception as error:  # a peer that fails is a result
                if self.failure(error):
                    return

    async def share_async(self, work, items):
        for item in items:
            if time.monotonic() > self.until:
                return
            begun = time.perf_counter()
            try:
                await work(item)
                self.walls.append((time.perf_counter() - begun) * 1e3)
            except Exception as error:  # the same
                if self.failure(error):
                    return

    def run(self, work, items):
        shares = [items[client :: self.clients] for client in range(self.clients)]
        cpu, wall = self.peer.cpu(), time.perf_counter()
        if inspect.iscoroutinefunction(work):
            shares = [self.share_async(work, share) for share in shares]
            self.peer.loop.run_until_complete(together(shares))
        elif self.clients == 1:
            self.share(work, items)
        else:
            threads = [threading.Thread(target=self.share, args=(work, share)) for share in shares]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        wall, cpu = time.perf_counter() - wall, self.peer.cpu() - cpu
        count, cell = len(self.walls), {"cell": self.cell, "clients": self.clients}
        cell.update(n=count, asked=len(items))
        if self.failed or not count:
            reason = f"{self.failed} of {count + self.failed} failed: {self.reason}"
            tell(**cell, failed=self.failed, error=reason if self.failed else "nothing was done in time")
            return
        cost = {"cpu_ms": cpu * 1e3 / count, "wall_ms": percentiles(self.walls)}
        tell(**cell, **cost, per_second=count / wall)


async def together(work):
    await asyncio.gather(*work)


def disk(place):
    files = (path for path in place.rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in files)


def versions(names):
    return {name: importlib.metadata.version(name) for name in names}


def main():
    name, place, store = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    wish = json.loads(sys.argv[4])
    store.mkdir(parents=True, exist_ok=True)
    scene = Scene(place, wish["size"], wish["users"])
    peer = adapters.ALL[name](store, scene)
    tell(versions={**versions(peer.packages), **peer.own}, python=platform.python_version())
    sample, size = wish["sample"], wish["size"]
    if wish["mode"] == "adds":
        # For whoever counts what the system is asked for meanwhile.
        tell(begun=True)
        for number in range(size):
            peer.add_now(number)
        tell(done=size)
        peer.close()
        return
    if wish["mode"] == "forget":
        forget(peer, scene, store, size)
        return
    base = size - 2 * sample
    begun, cpu = time.monotonic(), peer.cpu()
    filled = peer.fill(range(base), begun + wish["fill_seconds"])
    tell(filled=filled, seconds=time.monotonic() - begun, cpu_s=peer.cpu() - cpu, way=peer.way)
    if filled < base:
        tell(error=f"filled {filled} of {base} memories in {wish['fill_seconds']} s, then stopped")
        peer.close()
        return
    # One client first: what several clients do at once breaks some peers for what comes after.
    questions = range(wish["questions"])
    first, second = range(base, base + sample), range(base + sample, size)
    for clients, added in ((1, first), (wish["clients"], second)):
        stage = lambda cell: Stage(peer, cell, clients, wish["stage_seconds"])
        stage("add").run(peer.add, added)
        if peer.settle():
            tell(settled=peer.settled)
        guarded(clients, peer.warm)
        stage("search").run(peer.ask, questions)
        guarded(clients, lambda: tell(clients=clients, kept=peer.count(), expected=added[-1] + 1))
    tell(wrong=peer.wrong, empty=peer.empty)
    tell(peak_kib=peer.resident("VmHWM"), disk=disk(store))
    peer.close()


def forget(peer, scene, store, size):
    """Deletes one memory in the peer's own way and looks for its bytes in the peer's files."""
    for number in range(size):
        peer.add_now(number)
    canary = scene.texts[size - 1]
    before = traces(store, canary)
    peer.forget(size - 1)
    kept = peer.count()
    # Whatever is written on the way out shall be there, too.
    peer.close()
    after = traces(store, canary)
    tell(decrypting=False, before=sum(before.values()), after=sum(after.values()), places=after, kept=kept)


def traces(store, text):
    """How often a text lies in each file as plain bytes."""
    wanted, found = text.encode(), {}
    for path in sorted(path for path in store.rglob("*") if path.is_file()):
        count = path.read_bytes().count(wanted)
        if count:
            name = "*" + path.suffix
            found[name] = found.get(name, 0) + count
    return found


def guarded(clients, work):
    try:
        work()
    except Exception as error:
        tell(clients=clients, note=f"{type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    main()
