"""Asks over gRPC with the service as the server itself describes it."""

import json
import os
import pathlib
import sys
import types
import uuid
from datetime import datetime, timezone

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

url, ca, key_path, example = sys.argv[1:5]
agent = types.ModuleType("agent")
exec(example.replace('if __name__ == "__main__":', "if False:"), agent.__dict__)

credentials = grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes())
channel = grpc.secure_channel(url.removeprefix("https://"), credentials)
described = ProtoReflectionDescriptorDatabase(channel)
assert "uamp.v1.Agent" in described.get_services(), described.get_services()
pool = DescriptorPool(described)
service = pool.FindServiceByName("uamp.v1.Agent")


def message(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"uamp.v1.{name}"))


def call(method, kind, request):
    found = service.methods_by_name[method]
    answer = message_factory.GetMessageClass(found.output_type)
    stub = kind(
        f"/uamp.v1.Agent/{method}",
        request_serializer=lambda value: value.SerializeToString(),
        response_deserializer=answer.FromString,
    )
    return stub(request, metadata=metadata, timeout=60)


metadata = [("authorization", f"Bearer {os.environ['UAMP_TOKEN']}")]
manifest = call("GetManifest", channel.unary_unary, message("GetManifestRequest")())
assert manifest.media_type == "application/manifest+jws", manifest
server = agent.Server(url, ca, os.environ["UAMP_TOKEN"])
to = json.load(server.request("GET", "/.well-known/did.json"))["id"]
key = agent.load_key(pathlib.Path(key_path))
signed = agent.sign(
    key,
    {
        "id": f"urn:uuid:{uuid.uuid4()}",
        "ts": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "from": agent.did_key(key),
        "to": [to],
        "intent": "ask",
        "body": {"type": "text/plain", "content": "what am I allergic to?"},
    },
)
envelope = json_format.ParseDict(
    {name: value for name, value in signed.items()}, message("Envelope")()
)
receipt = call("Send", channel.unary_unary, envelope)
again = call("Send", channel.unary_unary, envelope)
assert not receipt.duplicate and again.duplicate, (receipt, again)
assert receipt.stream_id == again.stream_id, (receipt, again)
request = message("StreamRequest")(stream_id=receipt.stream_id)
first = next(iter(call("Stream", channel.unary_stream, request)))
request.after_seq = first.delta_seq
rest = list(call("Stream", channel.unary_stream, request))
assert [delta.delta_seq for delta in rest] == list(range(1, 1 + len(rest))), rest
assert rest[-1].type == "done", rest
print(json_format.MessageToJson(first))

signed["body"]["content"] = "something else"
forged = json_format.ParseDict(signed, message("Envelope")())
try:
    call("Send", channel.unary_unary, forged)
    raise SystemExit("a forged envelope was taken")
except grpc.RpcError as error:
    assert error.code() == grpc.StatusCode.UNAUTHENTICATED, error
    assert ("uamp-code", "4.01") in [tuple(pair) for pair in error.trailing_metadata()], error
