//! Random numbers of a seed (SplitMix64, Steele, Lea, Flood: OOPSLA 2014).

/// A generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number of a range, both ends included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        least + (mixed ^ (mixed >> 31)) % (most - least + 1)
    }
}
