//! Fields with two possible forms, such as `size = 8192` or a list of sizes, with errors that name
//! the problem in the given form: serde's untagged enums only report that no form matched.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A number of bytes, or a list or table that is a `T`.
pub(crate) enum BytesOr<T> {
    /// A number.
    Bytes(u32),
    /// A list or a table.
    Other(T),
}

/// Reads a number or a `T`; `expecting` describes the possible forms in errors.
pub(crate) fn bytes_or<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expecting: &'static str,
) -> Result<BytesOr<T>, D::Error> {
    deserializer.deserialize_any(BytesOrVisitor { expecting, other: PhantomData })
}

struct BytesOrVisitor<T> {
    expecting: &'static str,
    other: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for BytesOrVisitor<T> {
    type Value = BytesOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<BytesOr<T>, E> {
        u32::try_from(number)
            .map(BytesOr::Bytes)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<BytesOr<T>, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<BytesOr<T>, A::Error> {
        T::deserialize(SeqAccessDeserializer::new(list)).map(BytesOr::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<BytesOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table)).map(BytesOr::Other)
    }
}
