# A mail server that writes each letter it takes into a folder: port, folder, and for TLS a
# certificate, its key and whether TLS comes first.
import asyncio, pathlib, ssl, sys, time
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

class Keeper:
    async def handle_DATA(self, server, session, envelope):
        name = f"{time.time_ns()}.eml"
        pathlib.Path(sys.argv[2], name).write_bytes(envelope.content)
        return "250 kept"

def may(server, session, envelope, mechanism, data):
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (b"me", b"secret")
    return AuthResult(success=good, handled=False)

options = {}
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3], sys.argv[4])
    if sys.argv[5] == "first":
        options = {"ssl_context": context}
    else:
        options = {"tls_context": context, "require_starttls": True}
    options |= {"authenticator": may, "auth_required": True}
    if sys.argv[5] == "first":
        options["auth_require_tls"] = False
controller = Controller(
    Keeper(), hostname="127.0.0.1", port=int(sys.argv[1]), data_size_limit=1 << 26, **options)
controller.start()
print("ready", flush=True)
sys.stdin.read()
controller.stop()
