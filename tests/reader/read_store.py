#!/usr/bin/env python3
"""Reads a store without trug: an independent reader, written from engine/FORMAT.md.

    python3 tests/reader/read_store.py DATA > objects.jsonl

Prints each object as a line of JSON, and damage to stderr. Exits with 0, with 1 where the folder is no store,
with 3 where anything is damaged. Needs only Python 3.11, and opens files read-only; of a store in use, or a backup, it
sees the state that a crash would leave. A group with a broken head is skipped. The index, the entries of footers and
content hashes are not checked: BLAKE3 is not in Python's standard library, so hashes are printed as stored.
"""

import hashlib, json, mmap, pathlib, re, struct, sys, zlib
from collections import namedtuple
from contextlib import suppress

PAGE, BLOCK = 4096, 65536
LOG, BIG, COMPACTED = 1, 2, 3
OBJECT, BIG_OBJECT, TOMBSTONE, FACT, FACT_GONE, LOST = 1, 2, 3, 4, 5, 7
GROUP_MAGIC, FOOTER_MAGIC, BIG_MAGIC = 0x0050524747555254, 0x544F4F4647555254, 0x0047494247555254

Header = namedtuple("Header", "magic version features store id salt base_lsn predecessor predecessor_end first_group"
                    " created_ms block_bytes previous_group kind reserved checksum")
Group = namedtuple("Group", "magic number first_lsn durable_lsn bytes records frames previous checksum")
Footer = namedtuple("Footer", "magic offset bytes count last_lsn next_group previous entries encoding checksum")
Record = namedtuple("Record", "segment offset head lsn kind name body bytes whole big hash about")

NOT_AS_WRITTEN = (struct.error, OSError)


def require(truth, otherwise):
    if not truth:
        raise struct.error(otherwise)


class Segment:
    """A file of groups, or of one large body. Everything is read in place."""

    def __init__(self, path, kind, store):
        self.path, self.id, self.salt, self.header, self.good_copies = path, int(path.stem), 0, None, 0
        with open(path, "rb") as file:
            self.bytes = file.seek(0, 2)
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.bytes else b""
        self.view = memoryview(self.data)
        self.used = bool(re.compile(rb"[^\0]").search(self.data, PAGE))
        for copy in (2048, 0):
            with suppress(*NOT_AS_WRITTEN):
                self.header, self.inputs, self.covers = self.header_copy(copy, store, kind)
                self.good_copies += 1
        self.salt = self.header.salt if self.header else 0

    def unpack(self, form, at):
        return struct.unpack_from(form, self.data, at)

    def pieces(self, at, *lengths):
        return [bytes(self.view[(at := at + length) - length:at]) for length in lengths]

    def bound(self, start, end, at=None):
        """The checksum of a range, bound to its start or to another offset."""
        place = struct.pack("<QQQ", self.salt, self.id, start if at is None else at)
        return zlib.crc32(self.view[start:end]) ^ zlib.crc32(place)

    def checked(self, form, at, what):
        """The fields of a structure that ends with the checksum of everything before it."""
        fields = self.unpack(form, at)
        require(self.bound(at, at + struct.calcsize(form) - 4) == fields[-1], what)
        return fields

    def header_copy(self, at, store, kind):
        self.salt, inputs, covers = self.unpack("<Q", at + 40)[0], 0, 0
        header = Header(*self.checked("<8sII16s7QIIB3sI", at, "the header"))
        require(header[:3] == (b"TRUGSEG\0", 1, 0), "the format version")
        require(header[3:5] + header[11:12] + header[13:14] == (store, self.id, BLOCK, kind), "another's header")
        if kind == COMPACTED:
            inputs, covers = self.unpack("<HH", at + 104)
            self.checked(f"<HHI{inputs + 2 * covers}QI", at + 104, "the origin")
        numbers = self.unpack(f"<{inputs + 2 * covers}Q", at + 112)
        return header, numbers[:inputs], list(zip(numbers[inputs::2], numbers[inputs + 1::2]))

    def footer(self):
        """The trailer of a valid footer, or None."""
        with suppress(*NOT_AS_WRITTEN):
            footer = Footer(*self.checked("<6Q4I", self.bytes - 64, "the trailer"))
            ends = footer.offset + footer.bytes + 64 == self.bytes
            return footer if footer.magic == FOOTER_MAGIC ^ self.salt and footer.encoding == 1 and ends else None

    def groups(self, end):
        """Every valid group header, at any offset, with its offset."""
        magic, at = struct.pack("<Q", GROUP_MAGIC ^ self.salt), PAGE - 1
        while (at := self.data.find(magic, at + 1, end)) >= 0:
            with suppress(*NOT_AS_WRITTEN):
                yield at, Group(*self.checked("<4Q5I", at, "the header of a group"))

    def records(self, at, group):
        """The records of a group that is intact except, perhaps, for bodies."""
        found, running, offset = [], 0, at + 52
        for _ in range(group.frames):
            frame_bytes, count, _ = self.checked("<III", offset, "the header of a frame")
            running = zlib.crc32(self.view[offset:offset + 12], running)
            frame_end, offset = offset + frame_bytes, offset + 12
            for _ in range(count):
                found.append(record := self.record(offset))
                running, offset = zlib.crc32(record.head, running), record.body + record.bytes
            require(offset == frame_end, "the length of a frame")
        require(self.unpack("<I", offset)[0] == running ^ self.bound(offset, offset), "the trailer of a group")
        require((offset + 4, len(found)) == (at + group.bytes, group.records), "the length of a group")
        lsns = [record.lsn for record in found]
        ascends = self.header.kind == COMPACTED and lsns == sorted(set(lsns))
        require(ascends or lsns == [group.first_lsn + i for i in range(len(lsns))], "the numbers of records")
        return found

    def record(self, at):
        checksum, kind, flags, head_bytes, lsn = self.unpack("<IBBHQ", at)
        require(head_bytes > 16 and self.bound(at + 4, at + head_bytes, at) == checksum, "the head of a record")
        body, size, name, big, digest, about, checksums = at + head_bytes, 0, (), 0, b"", None, ()
        if kind in (OBJECT, BIG_OBJECT, LOST):
            length, big, created, modified, digest, keys, more, buckets, types = self.unpack("<4Q32sHHBB", at + 16)
            *name, content_type, attributes = self.pieces(at + 88, buckets, keys, types, more)
            about = dict(bucket=name[0].decode(), key=name[1].decode(), bytes=length, type=content_type.decode(),
                         attributes=attributes.hex(), created_ms=created, modified_ms=modified, derived=flags == 1)
            size = length if kind == OBJECT else 0
            checksums = self.unpack(f"<{-(-size // BLOCK)}I", body - 4 * -(-size // BLOCK))
        elif kind == TOMBSTONE:
            name = self.pieces(at + 28, *reversed(self.unpack("<HB", at + 24)))
        elif kind == FACT:
            size, *checksums, names = self.unpack("<IIH", at + 16)
            name = b"", *self.pieces(at + 28, names)
        elif kind == FACT_GONE:
            name = b"", *self.pieces(at + 20, *self.unpack("<H", at + 16))
        whole, head = self.blocks_match(body, size, checksums), self.view[at:body]
        return Record(self, at, head, lsn, kind, tuple(name), body, size, whole, big, digest, about)

    def blocks_match(self, at, size, checksums):
        starts = [at + BLOCK * number for number in range(len(checksums))]
        return [self.bound(start, min(start + BLOCK, at + size)) for start in starts] == list(checksums)

    def big_body(self, size, digest):
        """The body of a big segment, which must be the one that a record names."""
        table, count = PAGE + size, -(-size // BLOCK)
        magic, *said, check, _, _ = self.checked("<QQ32sI8sI", table + 4 * count, "the trailer")
        require(magic == BIG_MAGIC ^ self.salt and said == [size, digest], "another body")
        require(zlib.crc32(self.view[table:table + 4 * count]) == check, "the table of blocks")
        require(self.good_copies == 2 and table + 4 * count + 64 == self.bytes, "the header, or the length")
        require(self.blocks_match(PAGE, size, self.unpack(f"<{count}I", table)), "a block of the body")
        return self.view[PAGE:table]


class Store:
    """The combined content of a folder's segments: the newest record of each name, and the damage."""

    def __init__(self, folder):
        self.folder, self.newest, self.damage = folder, {}, []
        page = (folder / "STORE").read_bytes() if (folder / "STORE").is_file() else b""
        known = page[:16] == struct.pack("<8sII", b"TRUGSTOR", 1, 0)
        if not known or page[40:44] != struct.pack("<I", zlib.crc32(page[:40])):
            sys.exit(f"{folder} is no store of format version 1")
        self.uuid = page[16:32]
        log, compacted = self.segments("log", LOG), self.segments("compacted", COMPACTED)
        present = {one.id for one in log + compacted}
        counting = [one for one in compacted if not present.issuperset(one.inputs)]
        replaced = {id for one in counting for id in one.inputs}
        counting = [one for one in counting if one.id not in replaced]
        self.covers = [cover for one in counting for cover in one.covers]
        for one in counting:
            self.walk(one, one.bytes, [1 << 64])
        log = [one for one in log if one.id not in replaced]
        self.read_log([one for one in log if not self.covered(one.header.base_lsn, one.header.base_lsn)])

    def segments(self, folder, kind):
        """The segments of a class, sorted by id. Blank ones are spares."""
        paths = sorted(self.folder.glob(f"{folder}/{'[0-9]' * 10}.seg"))
        found = [Segment(path, kind, self.uuid) for path in paths]
        for one in (one for one in found if one.used and one.good_copies < (2 if one.header or kind == LOG else 0)):
            self.tell(one.path, 0, "a copy of the header" if one.header else "the header")
        return [one for one in found if one.header]

    def tell(self, path, offset, why):
        self.damage.append(f"DAMAGE in {path.relative_to(self.folder)} at {offset}: {why}")

    def covered(self, first, last):
        return first > last or any(start <= first <= last <= end for start, end in self.covers)

    def read_log(self, log):
        """Walks the log. A new segment without any group is followed by another with the same start position."""
        begun = [one.header[7:10] + one.header[12:13] for one in log]
        log = [one for at, one in enumerate(log) if begun[at] not in begun[at + 1:]]
        stands, lsn = (0, 0, 1, 0), 1
        for at, one in enumerate(log):
            begins, base = one.header[7:10] + one.header[12:13], one.header.base_lsn
            if (begins, base) != (stands, lsn) and (base <= lsn or not self.covered(lsn, base - 1)):
                self.tell(one.path, 0, f"the log does not go on here behind record {lsn - 1}")
            later = [other.header for other in log[at + 1:]]
            end = next((header.predecessor_end for header in later if header.predecessor == one.id), one.bytes)
            stands, lsn = self.walk(one, end, [header.base_lsn for header in later])

    def walk(self, one, end, bases):
        """Adds the records of a segment's groups up to their end or a torn tail. Returns where the log continues."""
        header, footer = one.header, one.footer()
        at, number, previous, lsn = PAGE, header.first_group, header.previous_group, header.base_lsn
        end = footer.offset if footer else min(end, one.bytes)
        next_base = lambda: next((base for base in bases if base > lsn), lsn)
        by_segment = lambda: not self.covered(lsn, next_base() - 1) or footer and footer.last_lsn >= lsn
        later = lambda: any(g.durable_lsn >= lsn or g.number > number and g.first_lsn == lsn for _, g in one.groups(end))
        is_torn = lambda: not by_segment() and not later()
        for offset, group in [*one.groups(end), (end, None)]:
            if offset > at and not is_torn():
                self.tell(one.path, at, f"no whole group with record {lsn}")
            if not group or offset > at and is_torn():
                break  # Unwritten space, or a write that was never acknowledged.
            try:
                follows = (number, previous) == (group.number, group.previous) and offset == at
                follows &= group.first_lsn == lsn or header.kind == COMPACTED and group.first_lsn > lsn
                require(follows or offset > at, "the chain of groups")
                records = one.records(offset, group)
                require(all(record.whole for record in records) or not is_torn(), "a body")
            except NOT_AS_WRITTEN as why:
                if is_torn():
                    break
                self.tell(one.path, offset, f"{why}, in the group of record {lsn}")
                records = []
            for record in records:
                known = self.newest.get(record.name)
                if not known or (known.lsn, known.whole) < (record.lsn, record.whole):
                    self.newest[record.name] = record
            at, number, previous = offset + group.bytes, group.number + 1, group.checksum
            lsn = records[-1].lsn + 1 if records else group.first_lsn + group.records
        if footer:
            at, number, previous, lsn = end, footer.next_group, footer.previous, footer.last_lsn + 1
        return (one.id, at, number, previous), lsn

    def body(self, record):
        require(record.whole and record.kind != LOST, "its body")
        if record.kind != BIG_OBJECT:
            return record.segment.view[record.body:record.body + record.bytes]
        path = self.folder / f"big/{record.big // 4096:02}/{record.big:010}.seg"
        return Segment(path, BIG, self.uuid).big_body(record.about["bytes"], record.hash)


if __name__ == "__main__":
    store = Store(pathlib.Path(sys.argv[1]))
    for name, record in sorted(store.newest.items()):
        try:
            digest = hashlib.sha256(store.body(record)).hexdigest()
        except NOT_AS_WRITTEN as why:
            digest = store.tell(record.segment.path, record.offset, f"{b'/'.join(name).decode()}: {why}")
        if record.about:
            about = record.about | {"lsn": record.lsn, "blake3": record.hash.hex(), "sha256": digest}
            print(json.dumps(about, ensure_ascii=False))
    print(*store.damage, "not checked: BLAKE3, which Python does not have", sep="\n", file=sys.stderr)
    sys.exit(3 if store.damage else 0)
