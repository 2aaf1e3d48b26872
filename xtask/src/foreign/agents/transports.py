"""The transports of UAMP as clients of others speak them; what follows says where and as whom.

Each sends an envelope (what came of it, and the stream if it was said) and reads so many frames of
a stream after a last one: then it hangs up, as if the connection had been cut.
"""

import asyncio
import json
import pathlib
import ssl
import struct
import subprocess
import sys
import tempfile
import types
import urllib.parse
import uuid

ENDS = ("done", "error", "cancel")


def begin(at, authority, example):
    """Says which server it is, whom its certificate is by, and how envelopes are signed."""
    global url, ca, place, agent
    url, ca, place = at, authority, urllib.parse.urlsplit(at)
    agent = types.ModuleType("agent")
    exec(example.replace('if __name__ == "__main__":', "if False:"), agent.__dict__)


def speak(with_key, as_of, to):
    """Says who speaks, when and to whom."""
    global key, then, vault
    key, then, vault = agent.load_key(pathlib.Path(with_key)), as_of, to


def code_of(body):
    """The code in a signed error."""
    envelope = json.loads(body)
    assert envelope["intent"] == "error" and envelope["sig"], envelope
    return json.loads(envelope["body"]["content"])["code"]


class Curl:
    """HTTP/2 as people try it."""

    async def send(self, token, body):
        with tempfile.NamedTemporaryFile() as file:
            file.write(body)
            file.flush()
            status, text = self.curl(
                token, "-H", "content-type: application/uamp+json;v=1",
                "--data-binary", f"@{file.name}", f"{url}/v1/messages",
            )
        return ("202", None) if status == 202 else (code_of(text), None)

    async def frames(self, token, stream, last, most):
        after = "" if last is None else f"?after={last}"
        line = self.line(token, "--no-buffer", "--fail", f"{url}/v1/stream/{stream}{after}")
        frames = []
        with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as asking:
            for line in asking.stdout:
                if line.startswith("data: "):
                    frames.append(json.loads(line[6:]))
                    if len(frames) == most:
                        break
            asking.kill()
        assert frames, f"curl ended with {asking.returncode} and no frame"
        return frames

    def line(self, token, *args):
        line = ["curl", "--silent", "--http2", "--max-time", "30", "--cacert", ca]
        return [*line, "-H", f"authorization: Bearer {token}", *args]

    def curl(self, token, *args):
        line = self.line(token, "-w", "\n%{http_version} %{http_code}")
        said = subprocess.run([*line, *args], check=True, capture_output=True, text=True).stdout
        text, _, last = said.rpartition("\n")
        version, status = last.split()
        assert version == "2", version
        return int(status), text

    async def close(self):
        pass


class Quic:
    """HTTP/3 by aioquic."""

    async def open(self):
        from aioquic.asyncio.client import connect
        from aioquic.asyncio.protocol import QuicConnectionProtocol
        from aioquic.h3.connection import H3_ALPN, H3Connection
        from aioquic.h3.events import DataReceived, HeadersReceived
        from aioquic.quic.configuration import QuicConfiguration

        class Client(QuicConnectionProtocol):
            def __init__(self, *args, **named):
                super().__init__(*args, **named)
                self.h3, self.waiting = H3Connection(self._quic), {}

            def quic_event_received(self, event):
                for event in self.h3.handle_event(event):
                    if isinstance(event, (HeadersReceived, DataReceived)):
                        self.waiting[event.stream_id].put_nowait(event)

            async def ask(self, method, path, token, body=b"", enough=lambda text: False):
                stream = self._quic.get_next_available_stream_id()
                queue = self.waiting[stream] = asyncio.Queue()
                head = {":method": method, ":scheme": "https", ":authority": place.netloc,
                        ":path": path, "authorization": f"Bearer {token}",
                        "content-type": "application/uamp+json;v=1"}
                head = [(name.encode(), value.encode()) for name, value in head.items()]
                self.h3.send_headers(stream, head, end_stream=not body)
                if body:
                    self.h3.send_data(stream, body, end_stream=True)
                self.transmit()
                status, text = 0, b""
                while True:
                    event = await asyncio.wait_for(queue.get(), 30)
                    if isinstance(event, HeadersReceived):
                        status = int(dict(event.headers).get(b":status", b"0")) or status
                    else:
                        text += event.data
                    if event.stream_ended:
                        return status, text.decode()
                    if enough(text):
                        try:
                            self._quic.stop_stream(stream, 0x010C)  # H3_REQUEST_CANCELLED
                            self.transmit()
                        except ValueError:
                            pass  # Its end has come, too, and waits behind what was read.
                        return status, text.decode()

        configuration = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True)
        configuration.load_verify_locations(ca)
        self.context = connect(
            place.hostname, place.port, configuration=configuration, create_protocol=Client
        )
        self.client = await self.context.__aenter__()

    async def send(self, token, body):
        status, text = await self.client.ask("POST", "/v1/messages", token, body)
        return ("202", None) if status == 202 else (code_of(text), None)

    async def frames(self, token, stream, last, most):
        after = "" if last is None else f"?after={last}"
        status, text = await self.client.ask(
            "GET", f"/v1/stream/{stream}{after}", token,
            enough=lambda text: text.count(b"\n\n") > most,
        )
        assert status == 200, (status, text)
        whole = text.rpartition("\n\n")[0]
        data = [line[6:] for line in whole.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in data[:most]]

    async def close(self):
        await self.context.__aexit__(None, None, None)


class Socket:
    """WebSockets by websockets: frames of a length and JSON."""

    async def connect(self, token):
        import websockets

        return await websockets.connect(
            f"wss://{place.netloc}/uamp/1/ws", subprotocols=["uamp.v1"],
            ssl=ssl.create_default_context(cafile=ca),
            additional_headers={"authorization": f"Bearer {token}"},
        )

    async def hear(self, socket):
        message = await asyncio.wait_for(socket.recv(), 30)
        (length,) = struct.unpack(">I", message[:4])
        assert length == len(message) - 4, message
        return json.loads(message[4:])

    async def send(self, token, body):
        async with await self.connect(token) as socket:
            await socket.send(struct.pack(">I", len(body)) + body)
            try:
                said = json.loads(body)
            except ValueError:
                said = {}
            while True:
                # A delta may come before the receipt of what it answers.
                heard = await self.hear(socket)
                if heard.get("intent") == "error":
                    return code_of(json.dumps(heard)), None
                if heard.get("intent") and heard.get("reply_to") == said.get("id"):
                    return "202", heard.get("stream_id")
                if heard.get("code"):
                    raise AssertionError(heard)

    async def frames(self, token, stream, last, most):
        frames = []
        async with await self.connect(token) as socket:
            said = {"expected": 0} if last is None else {"ack": last}
            body = {"type": "application/json", "content": json.dumps(said)}
            envelope = signed("subscribe", body, stream_id=stream)
            await socket.send(struct.pack(">I", len(envelope)) + envelope)
            while len(frames) < most:
                heard = await self.hear(socket)
                assert heard.get("intent") != "error", heard
                if "delta_seq" in heard:
                    frames.append(heard)
                    if heard["type"] in ENDS:
                        break
        return frames

    async def close(self):
        pass


class Tunnel:
    """A WebSocket in a stream of HTTP/2."""

    def __init__(self):
        import h2.config
        import h2.connection
        import wsproto.connection

        config = h2.config.H2Configuration(client_side=True)
        self.h2 = h2.connection.H2Connection(config)
        self.frames = wsproto.connection.Connection(wsproto.connection.ConnectionType.CLIENT)
        self.head, self.told = {}, False

    async def open(self, token):
        context = ssl.create_default_context(cafile=ca)
        context.set_alpn_protocols(["h2"])
        self.reader, self.writer = await asyncio.open_connection(
            place.hostname, place.port, ssl=context
        )
        self.h2.initiate_connection()
        while not self.told:
            await self.turn()
        assert self.h2.remote_settings.enable_connect_protocol == 1, "not offered"
        self.stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(self.stream, [
            (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "https"),
            (":authority", place.netloc), (":path", "/uamp/1/ws"),
            ("sec-websocket-version", "13"), ("sec-websocket-protocol", "uamp.v1"),
            ("authorization", f"Bearer {token}"),
        ])
        while not self.head:
            await self.turn()
        assert self.head[":status"] == "200", self.head
        assert self.head["sec-websocket-protocol"] == "uamp.v1", self.head
        return self

    async def turn(self):
        """Sends what is to be sent, then takes what comes next."""
        import h2.events

        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()
        data = await asyncio.wait_for(self.reader.read(65536), 30)
        assert data, "the server hung up"
        for event in self.h2.receive_data(data):
            if isinstance(event, h2.events.RemoteSettingsChanged):
                self.told = True
            elif isinstance(event, h2.events.ResponseReceived):
                text = lambda part: part.decode() if isinstance(part, bytes) else part
                self.head = {text(name): text(value) for name, value in event.headers}
            elif isinstance(event, h2.events.DataReceived):
                self.frames.receive_data(event.data)
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, (h2.events.StreamReset, h2.events.ConnectionTerminated)):
                raise AssertionError(event)

    async def send(self, message):
        import wsproto.events

        data = self.frames.send(wsproto.events.BytesMessage(data=message))
        while data:
            room = self.h2.local_flow_control_window(self.stream)
            room = min(room, self.h2.max_outbound_frame_size)
            if not room:
                await self.turn()
                continue
            self.h2.send_data(self.stream, data[:room])
            data = data[room:]
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    async def recv(self):
        import wsproto.events

        message = b""
        while True:
            for event in self.frames.events():
                if isinstance(event, wsproto.events.Ping):
                    self.h2.send_data(self.stream, self.frames.send(event.response()))
                elif isinstance(event, wsproto.events.BytesMessage):
                    message += event.data
                    if event.message_finished:
                        return message
                else:
                    raise AssertionError(event)
            await self.turn()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        self.h2.close_connection()
        self.writer.write(self.h2.data_to_send())
        self.writer.close()


class SocketInHttp2(Socket):
    """The same by h2 and wsproto, for those who speak nothing older than HTTP/2."""

    async def connect(self, token):
        return await Tunnel().open(token)


class Grpc:
    """gRPC by grpcio, with the service as the server describes it."""

    async def open(self):
        import grpc
        from google.protobuf import json_format, message_factory
        from google.protobuf.descriptor_pool import DescriptorPool
        from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
            ProtoReflectionDescriptorDatabase,
        )

        self.grpc, self.json, self.factory = grpc, json_format, message_factory
        credentials = grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes())
        self.channel = grpc.secure_channel(place.netloc, credentials)
        self.pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))

    def message(self, name):
        found = self.pool.FindMessageTypeByName(f"uamp.v1.{name}")
        return self.factory.GetMessageClass(found)

    def call(self, method, kind, request, token):
        found = self.pool.FindServiceByName("uamp.v1.Agent").methods_by_name[method]
        stub = kind(
            f"/uamp.v1.Agent/{method}",
            request_serializer=lambda value: value.SerializeToString(),
            response_deserializer=self.factory.GetMessageClass(found.output_type).FromString,
        )
        return stub(request, metadata=[("authorization", f"Bearer {token}")], timeout=30)

    async def send(self, token, body):
        envelope = json.loads(body)
        if "context" in envelope:
            envelope["context"] = {"items": envelope["context"]}
        try:
            request = self.json.ParseDict(envelope, self.message("Envelope")())
        except self.json.ParseError as error:
            # What the definition has no place for cannot be said at all.
            return f"unsayable: {error}", None
        try:
            receipt = self.call("Send", self.channel.unary_unary, request, token)
            return "202", receipt.stream_id
        except self.grpc.RpcError as error:
            return dict(error.trailing_metadata())["uamp-code"], None

    async def frames(self, token, stream, last, most):
        request = self.message("StreamRequest")(stream_id=stream)
        if last is not None:
            request.after_seq = last
        deltas = []
        heard = self.call("Stream", self.channel.unary_stream, request, token)
        for delta in heard:
            frame = self.json.MessageToDict(delta, preserving_proto_field_name=True)
            deltas.append({**frame, "delta_seq": delta.delta_seq})
            if len(deltas) == most:
                heard.cancel()
                break
        return deltas

    async def close(self):
        self.channel.close()


def signed(intent, body, **more):
    return json.dumps(
        agent.sign(
            key,
            {
                "id": f"urn:uuid:{uuid.uuid4()}",
                "ts": then,
                "from": agent.did_key(key),
                "to": [vault],
                "intent": intent,
                "body": body,
                **more,
            },
        )
    ).encode()


TRANSPORTS = {"h2": Curl, "h3": Quic, "ws": Socket, "ws2": SocketInHttp2, "grpc": Grpc}


async def opened(transport):
    client = TRANSPORTS[transport]()
    if hasattr(client, "open"):
        await client.open()
    return client
