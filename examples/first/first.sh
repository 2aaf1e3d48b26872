#!/bin/sh
# Remembers by UMP, recalls by memorywire, tags by OAMP and erases: one memory, one vault.
set -eu
url="${YORE_URL:-http://127.0.0.1:7070}"

call() {
    method="$1" path="$2" body="${3:-}"
    curl --fail-with-body -sS -X "$method" "$url$path" \
        -H "authorization: Bearer $YORE_TOKEN" -H 'content-type: application/json' \
        ${body:+--data-binary "$body"}
}

echo "remembered: $(call POST /ump/remember '{"record":{"kind":"semantic",
    "body":{"text":"The curl example keeps its keys in a red jar"},
    "scope":{"owner":"owner","agent":"example"}}}')"

question='{"agent_id":"example","query":"where are the keys of the curl example?","k":1}'
hit="$(call POST /memorywire/v0/recall "$question")"
echo "recalled: $hit"

# memorywire spells the id of a memory in hexadecimal digits, OAMP as a UUID.
id="$(printf %s "$hit" | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')"
echo "tagged: $(call PATCH "/v1/knowledge/$id?user_id=owner" '{"tags":["keys"]}')"

call DELETE "/v1/knowledge/$id?user_id=owner"
echo "left: $(call POST /memorywire/v0/recall "$question")"
