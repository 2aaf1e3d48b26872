#!/usr/bin/env python3
"""Asks a vault over UAMP: signs an envelope, follows its stream, and resumes it.

Needs the package `cryptography`; everything else is in the standard library.
"""

import argparse
import base64
import hashlib
import http.client
import json
import pathlib
import ssl
import sys
import urllib.parse
import uuid
from datetime import datetime, timezone

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def b64u(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def canonical(value) -> bytes:
    """RFC 8785 for what is sent here: text, lists and objects with plain names, no fractions."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def load_key(path: pathlib.Path) -> Ed25519PrivateKey:
    """Reads the agent's key, or makes it."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(
            Ed25519PrivateKey.generate().private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
    return serialization.load_pem_private_key(path.read_bytes(), password=None)


def did_key(key: Ed25519PrivateKey) -> str:
    public = key.public_key().public_bytes(
        serialization.Encoding.Raw, serialization.PublicFormat.Raw
    )
    number, text = int.from_bytes(b"\xed\x01" + public, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = BASE58[digit] + text
    return "did:key:z" + text


def sign(key: Ed25519PrivateKey, envelope: dict) -> dict:
    did = envelope["from"]
    header = {"alg": "EdDSA", "kid": f"{did}#{did.removeprefix('did:key:')}"}
    digest = hashlib.sha256(canonical(envelope)).hexdigest()
    head, payload = b64u(canonical(header)), b64u(canonical({"sha256": digest}))
    signature = key.sign(f"{head}.{payload}".encode())
    return {**envelope, "sig": f"{head}..{b64u(signature)}"}


class Server:
    def __init__(self, url: str, ca: str | None, token: str):
        self.url = urllib.parse.urlsplit(url)
        self.context = ssl.create_default_context(cafile=ca)
        self.token = token

    def request(self, method: str, path: str, body: bytes | None = None, **headers):
        connection = http.client.HTTPSConnection(
            self.url.hostname, self.url.port or 443, context=self.context, timeout=60
        )
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        headers["authorization"] = f"Bearer {self.token}"
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def frames(self, path: str, last: int | None):
        """Yields the frames after `last` as they come, each as it was sent."""
        after = {} if last is None else {"last_event_id": str(last)}
        response = self.request("GET", path, **after)
        if response.status == 204:
            return
        if response.status != 200:
            sys.exit(f"{response.status}: {response.read().decode()}")
        with response:
            for line in response:
                if line.startswith(b"data: "):
                    yield line.removeprefix(b"data: ").rstrip(b"\r\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", nargs="?")
    parser.add_argument("--url", default="https://localhost:7443")
    parser.add_argument("--ca", help="the server's authority: tls/ca.pem in its data directory")
    parser.add_argument("--token", help="a token of the vault")
    parser.add_argument("--key", type=pathlib.Path, default=pathlib.Path("agent.pem"))
    parser.add_argument("--did", action="store_true", help="print the agent's DID and end")
    args = parser.parse_args()
    key = load_key(args.key)
    did = did_key(key)
    if args.did:
        print(did)
        return
    if not args.question or not args.token:
        parser.error("a question and --token are needed")
    server = Server(args.url, args.ca, args.token)
    to = json.load(server.request("GET", "/.well-known/did.json"))["id"]
    envelope = {
        "id": f"urn:uuid:{uuid.uuid4()}",
        "ts": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "from": did,
        "to": [to],
        "intent": "ask",
        "body": {"type": "text/plain", "content": args.question},
    }
    body = json.dumps(sign(key, envelope)).encode()
    accepted = server.request("POST", "/v1/messages", body, content_type="application/uamp+json")
    if accepted.status != 202:
        sys.exit(f"{accepted.status}: {accepted.read().decode()}")
    place = accepted.getheader("location")
    # One frame a connection: every further one goes on where the last was lost.
    frames, connections = [], 0
    while not frames or json.loads(frames[-1])["type"] not in ("done", "error", "cancel"):
        connections += 1
        last = json.loads(frames[-1])["delta_seq"] if frames else None
        frames.extend([frame for frame, _ in zip(server.frames(place, last), range(1))])
    *earlier, end = [json.loads(frame) for frame in frames]
    if end["type"] != "done":
        sys.exit(json.dumps(end["payload"]))
    if end["payload"]["transcript_sha256"] != hashlib.sha256(b"\n".join(frames[:-1])).hexdigest():
        sys.exit("the stream is not what the server says it sent")
    for frame in earlier:
        print(frame["payload"].get("text", json.dumps(frame["payload"])))
    print(f"{len(frames)} frames over {connections} connections, as the server sent them")


if __name__ == "__main__":
    main()
