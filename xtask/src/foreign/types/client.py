"""Writes documents with the published types, and reads every answer with them.

The types refuse members they do not know, so an answer with a member too many fails as well.
"""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

import oamp_types as oamp

URL = sys.argv[1].rstrip("/")
TOKEN = os.environ["OAMP_TOKEN"]
WHEN = datetime(2026, 5, 1, 8, 0, tzinfo=timezone.utc)


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=data, method=method)
    request.add_header("Authorization", "Bearer " + TOKEN)
    request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read()
    return status, json.loads(text) if text else None


def expect(status, got):
    assert got[0] == status, f"expected {status}, got {got}"
    return got[1]


def plain(document):
    return document.model_dump(mode="json", exclude_none=True)


def same(document, answer, read, validate):
    """The types read the answer, find nothing wrong with it, and it is the document."""
    back = read.model_validate(answer)
    assert validate(back) == [], validate(back)
    assert back == document, f"{back!r} is not {document!r}"


def entry(category, text, **more):
    source = oamp.KnowledgeSource(session_id="s-1", agent_id="client", timestamp=WHEN)
    return oamp.KnowledgeEntry(
        user_id="types", category=category, content=text, confidence=0.75, source=source, **more
    )


decay = oamp.KnowledgeDecay(half_life_days=70.0, last_confirmed=WHEN)
entries = [
    entry("fact", "the harbour office opens at nine"),
    entry("preference", "tea, no sugar", decay=decay, tags=["drinks"]),
    entry("pattern", "writes before breakfast", metadata={"vendor": {"kept": [1, None, "x"]}}),
    entry("correction", "the ferry leaves at ten"),
]
for one in entries:
    made = expect(201, ask("POST", "/v1/knowledge", plain(one)))
    read = expect(200, ask("GET", f"/v1/knowledge/{one.id}"))
    for answer in (made, read):
        same(one, answer, oamp.KnowledgeEntry, oamp.validate_knowledge_entry)

listed = expect(200, ask("GET", "/v1/knowledge?user_id=types"))
listed = {one["id"]: oamp.KnowledgeEntry.model_validate(one) for one in listed}
assert listed == {one.id: one for one in entries}, listed
found = expect(200, ask("GET", "/v1/knowledge?user_id=types&query=harbour%20office"))
assert oamp.KnowledgeEntry.model_validate(found[0]) == entries[0], found

exported = expect(200, ask("POST", "/v1/export", {"user_id": "types"}))
store = oamp.KnowledgeStore.model_validate(exported)
assert oamp.validate_knowledge_store(store) == []
assert sorted(store.entries, key=lambda one: one.id) == sorted(entries, key=lambda one: one.id)
other = lambda one: one.model_copy(update={"user_id": "types-again", "id": str(uuid.uuid4())})
fresh = [other(one) for one in entries]
again = oamp.KnowledgeStore(user_id="types-again", entries=fresh)
summary = expect(201, ask("POST", "/v1/import", plain(again)))
assert (summary["imported"], summary["rejected"]) == (len(entries), 0), summary
again = expect(200, ask("GET", "/v1/knowledge?user_id=types-again"))
again = {one["id"]: oamp.KnowledgeEntry.model_validate(one) for one in again}
assert again == {one.id: one for one in fresh}, again

model = oamp.UserModel(
    user_id="types",
    model_version=3,
    updated_at=WHEN,
    communication=oamp.CommunicationProfile(verbosity=-0.5, languages=["en", "de"]),
    expertise=[oamp.ExpertiseDomain(domain="boats", level="expert", confidence=0.9)],
    corrections=[
        oamp.Correction(
            what_agent_did="long", what_user_wanted="short", session_id="s-1", timestamp=WHEN
        )
    ],
    stated_preferences=[oamp.StatedPreference(key="theme", value="dark", timestamp=WHEN)],
)
made = expect(201, ask("POST", "/v1/user-model", plain(model)))
read = expect(200, ask("GET", "/v1/user-model/types"))
for answer in (made, read):
    same(model, answer, oamp.UserModel, oamp.validate_user_model)
assert expect(409, ask("POST", "/v1/user-model", plain(model)))["code"] == "VERSION_CONFLICT"

expect(204, ask("DELETE", "/v1/user-model/types"))
expect(404, ask("GET", "/v1/user-model/types"))
assert expect(200, ask("GET", "/v1/knowledge?user_id=types")) == []
print(f"{len(entries)} entries, a store and a model were written and read")
