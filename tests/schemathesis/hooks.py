"""The pieces of resumable uploads are bytes, whatever their type is called."""

import schemathesis

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")
