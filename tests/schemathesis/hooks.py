"""Schemathesis hooks: the pieces of resumable uploads are serialized as bytes, despite their media type."""

import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
