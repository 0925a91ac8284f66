#!/usr/bin/env python3
"""Assembles a store from a remote store without trug: an independent reader, written from engine/FORMAT.md.

    python3 tests/reader/read_remote.py REMOTE NEW [CHUNK]

REMOTE is a folder with the objects of the remote store. NEW becomes the data folder of the store as of the newest
manifest and the chunks after it, or as of the manifest CHUNK; read_store.py reads it. Prints damage to stderr. Exits with
0, with 1 where there is no restore point, with 3 where anything is damaged or missing.
"""

import pathlib, re, struct, sys, zlib
from collections import namedtuple

HEADER, FIXED = 160, 104
LOG, BIG, COMPACTED = 1, 2, 3
BIG_OBJECT = 2

Chunk = namedtuple("Chunk", "magic version features store number epoch primary segment start bytes last_lsn next_group"
                   " previous_group previous sent_ms salt kind lease body checksum")
Manifest = namedtuple("Manifest", "magic version features store chunk chunk_checksum previous_group created_ms last_lsn"
                      " last_segment last_end next_group epoch segments unreferenced")
FOLDERS = {LOG: "log", COMPACTED: "compacted"}
damage = []


def checked(data, magic):
    if data[:16] != struct.pack("<8sII", magic, 1, 0):
        raise ValueError("magic number, version or features")
    if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
        raise ValueError("checksum")
    return data


class Remote:
    def __init__(self, folder):
        self.folder = folder
        self.store = checked((folder / "remote").read_bytes(), b"TRUGRMTE")[16:528]

    def names(self, prefix):
        return sorted(path.name for path in (self.folder / prefix).glob("[0-9]" * 20))

    def manifest(self, name):
        data = checked((self.folder / "manifest" / name).read_bytes(), b"TRUGMNFT")
        fields = struct.unpack_from("<8sII16sQIIQQQQQQII", data)
        *_, segments, unreferenced = fields
        if len(data) != FIXED + 40 * segments + 16 * unreferenced + 4 or fields[4] != int(name):
            raise ValueError("counts")
        listed = [struct.unpack_from("<QQQQB7x", data, FIXED + 40 * i) for i in range(segments)]
        return Manifest(*fields[:13], listed, unreferenced)

    def chunk(self, number):
        path = self.folder / "log" / f"{number:020}"
        if not path.is_file():
            return None, b""
        data = path.read_bytes()
        checked(data[:HEADER], b"TRUGCHNK")
        chunk, body = Chunk(*struct.unpack("<8sII16sQQ16sQQQQQIIQQBxHI20xI", data[:HEADER])), data[HEADER:]
        if (chunk.number, chunk.bytes, chunk.body) != (number, len(body), zlib.crc32(body)):
            raise ValueError("the body of a chunk")
        if chunk.store != self.store[16:32]:
            raise ValueError("another store's chunk")
        return chunk, body

    def segment(self, id, salt):
        path = self.folder / f"seg/{id:010}-{salt:016x}"
        return path.read_bytes() if path.is_file() else None

    def big(self, id, content_hash):
        for path in (self.folder / "seg").glob(f"{id:010}-" + "[0-9a-f]" * 16):
            data = path.read_bytes()
            if data[-48:-16] == content_hash:
                return data
        return None


def write(folder, kind, id, at, data):
    path = folder / (f"big/{id // 4096:02}" if kind == BIG else FOLDERS[kind]) / f"{id:010}.seg"
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "r+b" if path.exists() else "w+b") as file:
        file.seek(at)
        file.write(data)


def assemble(remote, manifest, new, follow):
    """Writes the segments of a manifest, and the chunks after it."""
    for id, salt, size, first, kind in manifest.segments:
        data = remote.segment(id, salt)
        if data is not None:
            write(new, kind, id, 0, data[:manifest.last_end] if id == manifest.last_segment else data)
            continue
        for number in range(first, manifest.chunk + 1 if first else 0):
            chunk, body = remote.chunk(number)
            if chunk and chunk.segment == id:
                write(new, LOG, id, chunk.start, body)
        if not first:
            damage.append(f"segment {id} is missing")
    number, previous = manifest.chunk, manifest.chunk_checksum
    while follow:
        number += 1
        chunk, body = remote.chunk(number)
        if not chunk:
            break
        if chunk.previous != previous:
            raise ValueError(f"chunk {number} does not follow")
        previous = chunk.checksum
        if body:
            write(new, LOG, chunk.segment, chunk.start, body)


def big_segments(new):
    """Ids and hashes that records of big objects name, found by their heads: a checksum bound to the place of each head."""
    for path in sorted(new.glob("log/*.seg")) + sorted(new.glob("compacted/*.seg")):
        data, id = path.read_bytes(), int(path.stem)
        salt = data[40:48]
        for match in re.finditer(rb"(?s)(?=.{4}\x02[\x00\x01]..)", data[4096:]):
            at = 4096 + match.start()
            (head,) = struct.unpack_from("<H", data, at + 6)
            if head < 88 or at + head > len(data):
                continue
            place = salt + struct.pack("<QQ", id, at)
            if zlib.crc32(data[at + 4:at + head]) ^ zlib.crc32(place) == struct.unpack_from("<I", data, at)[0]:
                yield struct.unpack_from("<Q", data, at + 24)[0], data[at + 48:at + 80]


def main(remote, new, chunk=None):
    remote, new = Remote(pathlib.Path(remote)), pathlib.Path(new)
    names = remote.names("manifest")
    name = f"{int(chunk):020}" if chunk else names[-1] if names else None
    if name not in names:
        sys.exit("no restore point")
    for folder in ("log", "big", "compacted"):
        (new / folder).mkdir(parents=True)
    try:
        assemble(remote, remote.manifest(name), new, chunk is None)
    except ValueError as why:
        damage.append(str(why))
    for id, content_hash in sorted(set(big_segments(new))):
        data = remote.big(id, content_hash)
        if data is not None:
            write(new, BIG, id, 0, data)
    (new / "STORE").write_bytes(remote.store)


if __name__ == "__main__":
    main(*sys.argv[1:4])
    print(*damage, sep="\n", file=sys.stderr)
    sys.exit(3 if damage else 0)
