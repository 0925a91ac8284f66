//! Parses the AVIF container: items, properties, references (ISO/IEC 23008-12, 6 and 9; AV1 Image File Format).
//!
//! Guarantees: never panics; every list is bounded; memory is a small multiple of the length of the tables.
//! Non-goals: the data of items.
//!
//! Own code, with `box_reader` and `primary_item`: `avif-parse` 2.1 rejects grids, does not expose `irot`, `imir` and
//! `colr`, copies the data of items, and adds 73 kB.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::box_reader::{BoxReader, IsoBox};
use crate::error::Error;
use crate::limits::PROFILE_BYTES_MAX;

/// Maximum size of all tables in bytes: a profile, and as much again.
const TABLES_BYTES_MAX: usize = 2 * PROFILE_BYTES_MAX;
/// Maximum number of items. The largest grid has 256 tiles, and as many for alpha.
const ITEMS_MAX: usize = 1_024;
/// Maximum number of extents of an item.
const EXTENTS_MAX: u16 = 64;

/// Tables of a file.
#[derive(Debug)]
pub(super) struct Container<'a> {
    file: &'a [u8],
    /// Data of the `idat` box.
    idat: &'a [u8],
    primary: u32,
    items: BTreeMap<u32, Item>,
    properties: Vec<Property<'a>>,
    references: Vec<Reference>,
}

/// Property that any number of items may share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Property<'a> {
    pub(super) kind: [u8; 4],
    pub(super) body: BoxReader<'a>,
}

#[derive(Debug, Default)]
struct Item {
    kind: [u8; 4],
    is_protected: bool,
    place: ItemLocation,
    /// Offset and length of each extent; a length of zero extends to the end.
    extents: Vec<(u64, u64)>,
    /// Property numbers, from one, and whether each is essential.
    properties: Vec<(u16, bool)>,
}

/// Location of an item's data.
#[derive(Clone, Copy, Debug, Default)]
enum ItemLocation {
    #[default]
    File,
    Idat,
    /// In another file, or derived from other items.
    Elsewhere,
}

#[derive(Debug)]
struct Reference {
    kind: [u8; 4],
    from: u32,
    to: Vec<u32>,
}

impl<'a> Container<'a> {
    /// Parses the tables.
    pub(super) fn read(file: &'a [u8]) -> Result<Self, Error> {
        let mut container = Self {
            file,
            idat: &[],
            primary: 0,
            items: BTreeMap::new(),
            properties: Vec::new(),
            references: Vec::new(),
        };
        let mut fields = BoxReader::new(file);
        while let Some(IsoBox { kind, body }) = fields.next_box()? {
            if kind == *b"meta" {
                container.read_meta(body)?;
                break;
            }
        }
        if !container.items.contains_key(&container.primary) {
            return Err(Error::undecodable("no still image"));
        }
        Ok(container)
    }

    /// Returns the primary item.
    pub(super) fn primary(&self) -> u32 {
        self.primary
    }

    /// Returns the type of an item.
    pub(super) fn kind(&self, item: u32) -> Result<[u8; 4], Error> {
        Ok(self.item(item)?.kind)
    }

    /// Returns the properties of an item, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Undecodable`] if an essential property is not supported.
    pub(super) fn properties(&self, item: u32) -> Result<Vec<Property<'a>>, Error> {
        let mut properties = Vec::new();
        for (number, is_essential) in &self.item(item)?.properties {
            // Zero stands for no property.
            let Some(at) = number.checked_sub(1) else { continue };
            let property = self.properties.get(usize::from(at));
            let property = *property.ok_or_else(|| Error::undecodable("missing property"))?;
            if *is_essential && !KNOWN.contains(&property.kind) {
                let kind = property.kind.escape_ascii();
                return Err(Error::Undecodable(format!("unsupported property {kind}")));
            }
            properties.push(property);
        }
        Ok(properties)
    }

    /// Returns the items that an item refers to with this reference type.
    pub(super) fn referred_by(&self, from: u32, kind: [u8; 4]) -> &[u32] {
        let mut references = self.references.iter();
        let found = references.find(|reference| reference.from == from && reference.kind == kind);
        found.map_or(&[], |reference| &reference.to)
    }

    /// Returns the items that refer to an item with this reference type.
    pub(super) fn referring_to(&self, to: u32, kind: [u8; 4]) -> impl Iterator<Item = u32> {
        let refers =
            move |reference: &&Reference| reference.kind == kind && reference.to.contains(&to);
        self.references.iter().filter(refers).map(|reference| reference.from)
    }

    /// Returns the data of an item.
    pub(super) fn data(&self, item: u32) -> Result<Cow<'a, [u8]>, Error> {
        let item = self.item(item)?;
        let whole = match item.place {
            ItemLocation::File => self.file,
            ItemLocation::Idat => self.idat,
            ItemLocation::Elsewhere => return Err(Error::undecodable("data in an external file")),
        };
        let mut pieces = item.extents.iter().map(|(offset, length)| {
            let from = usize::try_from(*offset).ok()?;
            let piece = whole.get(from..)?;
            if *length == 0 { Some(piece) } else { piece.get(..usize::try_from(*length).ok()?) }
        });
        let broken = || Error::undecodable("missing data");
        let first = pieces.next().flatten().ok_or_else(broken)?;
        let mut data = Cow::Borrowed(first);
        for piece in pieces {
            let piece = piece.ok_or_else(broken)?;
            // Overlapping extents could exceed the size of the file.
            if data.len() + piece.len() > whole.len() {
                return Err(broken());
            }
            data.to_mut().extend_from_slice(piece);
        }
        Ok(data)
    }

    fn item(&self, item: u32) -> Result<&Item, Error> {
        let found = self.items.get(&item);
        let found = found.ok_or_else(|| Error::undecodable("missing item"))?;
        if found.is_protected {
            return Err(Error::undecodable("protected item"));
        }
        Ok(found)
    }

    fn entry(&mut self, item: u32) -> Result<&mut Item, Error> {
        if self.items.len() >= ITEMS_MAX && !self.items.contains_key(&item) {
            return Err(Error::undecodable("too many items"));
        }
        Ok(self.items.entry(item).or_default())
    }

    fn read_meta(&mut self, mut meta: BoxReader<'a>) -> Result<(), Error> {
        meta.version_and_flags()?;
        let mut length = 0;
        while let Some(IsoBox { kind, body }) = meta.next_box()? {
            if kind == *b"idat" {
                self.idat = body.rest();
                continue;
            }
            length += body.len();
            if length > TABLES_BYTES_MAX {
                return Err(Error::undecodable("tables too long"));
            }
            match &kind {
                b"pitm" => self.read_primary(body)?,
                b"iinf" => self.read_items(body)?,
                b"iloc" => self.read_item_locations(body)?,
                b"iref" => self.read_references(body)?,
                b"iprp" => self.read_properties(body)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_primary(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        let (version, _) = fields.version_and_flags()?;
        self.primary = fields.short_or_long(version > 0)?;
        Ok(())
    }

    fn read_items(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        let (version, _) = fields.version_and_flags()?;
        fields.short_or_long(version > 0)?;
        while let Some(IsoBox { kind, mut body }) = fields.next_box()? {
            let (version, _) = body.version_and_flags()?;
            if kind != *b"infe" || version < 2 {
                continue;
            }
            let item = body.short_or_long(version > 2)?;
            let is_protected = body.u16()? != 0;
            let kind = body.kind()?;
            let entry = self.entry(item)?;
            (entry.kind, entry.is_protected) = (kind, is_protected);
        }
        Ok(())
    }

    fn read_item_locations(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        let (version, _) = fields.version_and_flags()?;
        let (lengths, others) = (fields.u8()?, fields.u8()?);
        let (offset_bytes, length_bytes) = (usize::from(lengths >> 4), usize::from(lengths & 15));
        let (base_bytes, index_bytes) = (usize::from(others >> 4), usize::from(others & 15));
        let index_bytes = if version == 0 { 0 } else { index_bytes };
        for _ in 0..fields.short_or_long(version > 1)? {
            let item = fields.short_or_long(version > 1)?;
            let method = if version == 0 { 0 } else { fields.u16()? & 15 };
            let is_here = fields.u16()? == 0;
            let base = fields.number(base_bytes)?;
            let count = fields.u16()?;
            if count > EXTENTS_MAX {
                return Err(Error::undecodable("item in too many extents"));
            }
            let entry = self.entry(item)?;
            entry.place = match method {
                0 if is_here => ItemLocation::File,
                1 => ItemLocation::Idat,
                _ => ItemLocation::Elsewhere,
            };
            entry.extents.clear();
            for _ in 0..count {
                fields.number(index_bytes)?;
                let offset = fields.number(offset_bytes)?.saturating_add(base);
                entry.extents.push((offset, fields.number(length_bytes)?));
            }
        }
        Ok(())
    }

    fn read_references(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        let (version, _) = fields.version_and_flags()?;
        while let Some(IsoBox { kind, mut body }) = fields.next_box()? {
            let from = body.short_or_long(version > 0)?;
            let count = body.u16()?;
            let to = (0..count).map(|_| body.short_or_long(version > 0));
            let to = to.collect::<Result<_, _>>()?;
            self.references.push(Reference { kind, from, to });
        }
        Ok(())
    }

    fn read_properties(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        while let Some(IsoBox { kind, mut body }) = fields.next_box()? {
            match &kind {
                b"ipco" => {
                    while let Some(IsoBox { kind, body }) = body.next_box()? {
                        self.properties.push(Property { kind, body });
                    }
                }
                b"ipma" => self.read_associations(body)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_associations(&mut self, mut fields: BoxReader<'a>) -> Result<(), Error> {
        let (version, flags) = fields.version_and_flags()?;
        for _ in 0..fields.u32()? {
            let item = fields.short_or_long(version > 0)?;
            let count = fields.u8()?;
            let entry = self.entry(item)?;
            for _ in 0..count {
                // The first bit is the essential flag.
                entry.properties.push(if flags & 1 == 0 {
                    let both = fields.u8()?;
                    (u16::from(both & 0x7f), both & 0x80 != 0)
                } else {
                    let both = fields.u16()?;
                    (both & 0x7fff, both & 0x8000 != 0)
                });
            }
        }
        Ok(())
    }
}

/// Properties that are read, or that can be ignored here.
const KNOWN: [[u8; 4]; 11] = [
    *b"av1C", *b"ispe", *b"pixi", *b"colr", *b"irot", *b"imir", *b"auxC", *b"pasp", *b"clli",
    *b"mdcv", *b"a1lx",
];
