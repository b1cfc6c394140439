//! The mapping unit of a drive: the least that its map places by itself.

use crate::error::DriveError;
use schemars::JsonSchema;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use softflash_nand::MAX_PARTS;
use std::fmt;

/// The smallest mapping unit: a logical block of the host.
const LEAST_BYTES: u32 = 512;

/// The least that the map places by itself: a flash page, or so many bytes of one. In TOML:
/// `"page"` or a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum MappingUnit {
    /// A flash page. A write of less reads the page and programs all of it again.
    Page,
    /// So many bytes, a power of two; a page where those are as small. Writes gather until they
    /// fill a flash page.
    #[schemars(extend("form" = "BYTES"))]
    Bytes(u32),
}

impl Default for MappingUnit {
    /// 4 KiB, as in nearly all drives since 2012.
    fn default() -> MappingUnit {
        MappingUnit::Bytes(4096)
    }
}

impl MappingUnit {
    /// Its bytes on flash with pages of so many bytes.
    pub(crate) fn bytes_on(self, page_bytes: u32) -> Result<u32, DriveError> {
        if !page_bytes.is_power_of_two() {
            return Err(DriveError::PageSize(page_bytes));
        }
        // A read of a page sends so many parts of it at most.
        let least = LEAST_BYTES.max(page_bytes / u32::from(MAX_PARTS));
        match self {
            MappingUnit::Bytes(unit) if !unit.is_power_of_two() || unit < least => {
                Err(DriveError::MappingUnit { unit, page_bytes, least })
            }
            MappingUnit::Bytes(unit) => Ok(unit.min(page_bytes)),
            MappingUnit::Page => Ok(page_bytes),
        }
    }
}

impl Serialize for MappingUnit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            MappingUnit::Page => to.serialize_str("page"),
            MappingUnit::Bytes(bytes) => to.serialize_u32(*bytes),
        }
    }
}

impl<'de> Deserialize<'de> for MappingUnit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<MappingUnit, D::Error> {
        from.deserialize_any(Text)
    }
}

struct Text;

impl Visitor<'_> for Text {
    type Value = MappingUnit;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "\"page\" or a number of bytes, as 4096")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<MappingUnit, E> {
        match text {
            "page" => Ok(MappingUnit::Page),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<MappingUnit, E> {
        let bytes = u32::try_from(number);
        bytes
            .map(MappingUnit::Bytes)
            .map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<MappingUnit, E> {
        let bytes = u32::try_from(number);
        bytes
            .map(MappingUnit::Bytes)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}
