//! A table whose keys belong to two structures: those of a flow, and those of its requests.
//!
//! serde's `flatten` would accept unknown keys.

use serde::de::{DeserializeSeed, IntoDeserializer, MapAccess};

/// The keys that a flow has beside those of its requests.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Own {
    pub(super) copies: Option<u32>,
    pub(super) copy_offset_bytes: Option<u64>,
    pub(super) start_ns: Option<u64>,
    pub(super) passes: Option<u32>,
    pub(super) after_previous: Option<bool>,
}

/// The entries of a table without those of [`Own`], which it takes out.
pub(super) struct Split<'a, A> {
    pub(super) entries: A,
    pub(super) own: &'a mut Own,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Split<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.entries.next_key::<String>()? {
            match key.as_str() {
                "copies" => self.own.copies = Some(self.entries.next_value()?),
                "copy_offset_bytes" => {
                    self.own.copy_offset_bytes = Some(self.entries.next_value()?);
                }
                "start_ns" => self.own.start_ns = Some(self.entries.next_value()?),
                "passes" => self.own.passes = Some(self.entries.next_value()?),
                "after_previous" => self.own.after_previous = Some(self.entries.next_value()?),
                _ => return seed.deserialize(key.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.entries.next_value_seed(seed)
    }
}
