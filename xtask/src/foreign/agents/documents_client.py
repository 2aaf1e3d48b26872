"""Serves DID documents, good and bad ones, and sends messages in their names.

documents_client.py prepare CERTIFICATE KEY: makes a certificate for localhost, prints a free port.
documents_client.py send PORT CERTIFICATE KEY URL CA TOKEN AGENT_KEY EXAMPLE: serves and sends.
"""

import http.server
import ipaddress
import json
import pathlib
import socket
import ssl
import sys
import threading
import types
import uuid
from datetime import datetime, timedelta, timezone


def prepare(certificate_path, key_path):
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    # It also holds at the time of the vectors, for servers whose clocks are set back to it.
    begins = datetime(2026, 1, 1, tzinfo=timezone.utc)
    ends = datetime.now(timezone.utc) + timedelta(days=2)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    pathlib.Path(certificate_path).write_bytes(certificate.public_bytes(pem))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pathlib.Path(key_path).write_bytes(key.private_bytes(pem, *private))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        print(free.getsockname()[1])


def send(port, certificate, key_path, url, ca, token, agent_key, example):
    agent = types.ModuleType("agent")
    exec(example.replace('if __name__ == "__main__":', "if False:"), agent.__dict__)
    key = agent.load_key(pathlib.Path(agent_key))
    multibase = agent.did_key(key).removeprefix("did:key:")
    asked = []

    def document(name, pad=""):
        did = f"did:web:localhost%3A{port}:{name}"
        method = {"id": f"{did}#k", "type": "Multikey", "controller": did,
                  "publicKeyMultibase": multibase}
        return json.dumps({"id": did, "verificationMethod": [method],
                           "assertionMethod": [f"{did}#k"], "pad": pad}).encode()

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = self.path.split("/")[1]
            asked.append(name)
            body = {"large": document("large", "x" * 70_000), "lies": document("good")}
            body = body.get(name, document(name))
            self.send_response(302 if name == "redirect" else 200)
            if name == "redirect":
                self.send_header("location", "/good/did.json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Pages)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key_path)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    vault = agent.Server(url, ca, token)
    to = json.load(vault.request("GET", "/.well-known/did.json"))["id"]
    for name, wanted in [("good", 202), ("redirect", 401), ("large", 401), ("lies", 401)]:
        did = f"did:web:localhost%3A{port}:{name}"
        envelope = {
            "id": f"urn:uuid:{uuid.uuid4()}",
            "ts": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "from": did,
            "to": [to],
            "intent": "notify",
            "body": {"type": "text/plain", "content": "hello"},
        }
        head = agent.b64u(agent.canonical({"alg": "EdDSA", "kid": f"{did}#k"}))
        import hashlib

        digest = hashlib.sha256(agent.canonical(envelope)).hexdigest()
        payload = agent.b64u(agent.canonical({"sha256": digest}))
        sig = key.sign(f"{head}.{payload}".encode())
        envelope["sig"] = f"{head}..{agent.b64u(sig)}"
        body = json.dumps(envelope).encode()
        answer = vault.request("POST", "/v1/messages", body, content_type="application/uamp+json")
        said = answer.read().decode()
        assert answer.status == wanted, (name, answer.status, said)
        if wanted == 401:
            refusal = json.loads(json.loads(said)["body"]["content"])
            assert refusal["code"] == "4.01" and not refusal["retry"], refusal
            # Nothing is told of what was found there.
            assert "302" not in said and "localhost" not in refusal["message"], said
    # Each was asked for once, and the redirect was not followed.
    assert asked == ["good", "redirect", "large", "lies"], asked
    print("documents are fetched with care")


{"prepare": prepare, "send": send}[sys.argv[1]](*sys.argv[2:])
