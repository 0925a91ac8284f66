#!/usr/bin/env python3
"""Reads a zip archive with Python's zipfile, checks that it can also be read as a stream, and prints its entries.

Output: one JSON array per line: name, length, SHA-256 and Unix mode of an entry, and seconds since 1970 of its extended
timestamp. Fails if a checksum is wrong, or if the local headers differ from the directory.
"""

import hashlib
import json
import struct
import sys
import zipfile


def fields_of(extra):
    """Returns the extra fields by number (APPNOTE 4.5)."""
    fields = {}
    while extra:
        number, length = struct.unpack_from("<HH", extra)
        fields[number], extra = extra[4 : 4 + length], extra[4 + length :]
    return fields


def local_header(data, offset):
    """Returns name, checksum, length and end of the local header at an offset."""
    form = "<4sHHHHHIIIHH"
    head = struct.unpack_from(form, data, offset)
    magic, _, flags, method, _, _, checksum, packed, length, name_bytes, extra_bytes = head
    assert magic == b"PK\x03\x04", f"no local header at {offset}"
    assert flags == 0x800 and method == 0, f"{flags:x} {method}"
    start = offset + struct.calcsize(form)
    name = data[start : start + name_bytes].decode()
    end = start + name_bytes + extra_bytes
    fields = fields_of(data[start + name_bytes : end])
    if length == 0xFFFFFFFF:
        length, packed = struct.unpack("<QQ", fields[1])
    assert packed == length
    return name, checksum, length, end


def main(path):
    with open(path, "rb") as file:
        data = file.read()
    archive = zipfile.ZipFile(path)
    damaged = archive.testzip()
    assert damaged is None, f"{damaged} has a wrong checksum"
    offset = 0
    for info in archive.infolist():
        name, checksum, length, start = local_header(data, offset)
        assert info.header_offset == offset, f"{info.header_offset}, not {offset}"
        assert (name, checksum, length) == (info.filename, info.CRC, info.file_size), name
        offset = start + length
        (seconds,) = struct.unpack("<xI", fields_of(info.extra)[0x5455])
        digest = hashlib.sha256(data[start:offset]).hexdigest()
        print(json.dumps([name, length, digest, info.external_attr >> 16, seconds]))
    assert data[offset : offset + 4] in (b"PK\x01\x02", b"PK\x05\x06"), "bytes after the last entry"


main(sys.argv[1])
