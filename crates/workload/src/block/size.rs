//! Request sizes.

use crate::error::Problem;
use crate::one_of::{BytesOr, bytes_or};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// The size of requests: a number of bytes, or a list of sizes with weights.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RequestSize {
    /// One size for all requests.
    Fixed(u32),
    /// Each of these in proportion to its weight.
    Mixed(Vec<SizeShare>),
}

/// One of several sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeShare {
    /// The size.
    #[schemars(range(min = 1))]
    pub bytes: u32,
    /// Its frequency, relative to the weights of the others.
    #[schemars(range(min = 0.0, max = 1e15))]
    pub weight: f64,
}

impl<'de> Deserialize<'de> for RequestSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestSize, D::Error> {
        let expecting = "a number of bytes below 4 GiB, or a list such as [{ bytes = 4096, weight = 3 }, \
                         { bytes = 65536, weight = 1 }]";
        Ok(match bytes_or(deserializer, expecting)? {
            BytesOr::Bytes(bytes) => RequestSize::Fixed(bytes),
            BytesOr::Other(sizes) => RequestSize::Mixed(sizes),
        })
    }
}

impl RequestSize {
    /// The sizes with weights above 0; the sum of the weights may be any number.
    pub(crate) fn shares(&self) -> Vec<SizeShare> {
        match self {
            RequestSize::Fixed(bytes) => vec![SizeShare { bytes: *bytes, weight: 1.0 }],
            RequestSize::Mixed(sizes) => {
                sizes.iter().copied().filter(|size| size.weight > 0.0).collect()
            }
        }
    }

    /// Mean of the sizes in bytes, by weight.
    pub fn mean_bytes(&self) -> f64 {
        let shares = self.shares();
        let weights: f64 = shares.iter().map(|size| size.weight).sum();
        shares.iter().map(|size| f64::from(size.bytes) * size.weight).sum::<f64>() / weights
    }

    pub(crate) fn validate(&self, field: &'static str) -> Result<(), Problem> {
        if let RequestSize::Mixed(sizes) = self
            && let Some(size) = sizes.iter().find(|size| !(0.0..=1e15).contains(&size.weight))
        {
            return Err(Problem::Weight { field, bytes: size.bytes, value: size.weight });
        }
        let shares = self.shares();
        if shares.is_empty() {
            return Err(Problem::NoSizes { field });
        }
        match shares.iter().any(|size| size.bytes == 0) {
            true => Err(Problem::Zero { field }),
            false => Ok(()),
        }
    }
}
