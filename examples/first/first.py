#!/usr/bin/env python3
"""Remembers by UMP, recalls by memorywire, tags by OAMP and erases: one memory, one vault."""

import json
import os
import urllib.parse
import urllib.request

URL = os.environ.get("YORE_URL", "http://127.0.0.1:7070")
TOKEN = os.environ["YORE_TOKEN"]


def call(method: str, path: str, body: dict | None = None):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def main() -> None:
    record = {
        "kind": "semantic",
        "body": {"text": "The python example keeps its keys in a blue jar"},
        "scope": {"owner": "owner", "agent": "example"},
    }
    print("remembered:", call("POST", "/ump/remember", {"record": record})["result"])

    question = {"agent_id": "example", "query": "where are the keys of the python example?"}
    hit = call("POST", "/memorywire/v0/recall", question)["results"][0]
    print("recalled:", hit["content"])

    # memorywire spells the id of a memory in hexadecimal digits, OAMP as a UUID.
    entry = f"/v1/knowledge/{hit['id']}?" + urllib.parse.urlencode({"user_id": "owner"})
    print("tags:", call("PATCH", entry, {"tags": ["keys"]})["tags"])

    call("DELETE", entry)
    left = call("POST", "/memorywire/v0/recall", question)["results"]
    print("left:", [one for one in left if one["id"] == hit["id"]])


if __name__ == "__main__":
    main()
