//! Damage of one unit while the power is off: flipped bits, and ranges of pages that change places.

use crate::medium::Medium;
use softflash_base::random::Rng;
use softflash_device::OpenError;
use std::collections::BTreeMap;

/// The most pages with flipped bits, and bits in each.
const MOST_PAGES: u64 = 3;
const MOST_BITS: u64 = 8;
/// The longest ranges that change places; one page where a single unit has the frames and the proof
/// of them.
const LONGEST_RANGE: u64 = 16;

/// Damages pages of one of so many units of a flash array.
///
/// # Errors
/// Errors of the device, which are not expected.
pub fn damage(medium: &Medium, units: u16, rng: &mut Rng) -> Result<(), String> {
    let Some(flash) = medium.flash() else { return Ok(()) };
    let unit = rng.below(u64::from(units)) as u16;
    let text = |error: OpenError| error.to_string();
    let image = flash.image(unit..unit + 1).map_err(text)?;
    let mut pages: Vec<Vec<u8>> = Vec::new();
    let image = image.changed(|page| pages.push(page.to_vec()));
    if pages.is_empty() {
        return Ok(());
    }
    let changed = match rng.chance(0.6) {
        true => flipped(&pages, rng),
        false => swapped(&pages, if units > 1 { LONGEST_RANGE } else { 1 }, rng),
    };
    let mut at = 0;
    let image = image.changed(|page| {
        if let Some(bytes) = changed.get(&at) {
            page.copy_from_slice(bytes);
        }
        at += 1;
    });
    flash.restore(&image).map_err(text)
}

type Pages = BTreeMap<usize, Vec<u8>>;

fn flipped(pages: &[Vec<u8>], rng: &mut Rng) -> Pages {
    let mut changed = Pages::new();
    for _ in 0..1 + rng.below(MOST_PAGES) {
        let at = rng.below(pages.len() as u64) as usize;
        let Some(page) = pages.get(at) else { continue };
        let page = changed.entry(at).or_insert_with(|| page.clone());
        for _ in 0..1 + rng.below(MOST_BITS) {
            let bit = rng.below(8 * page.len() as u64) as usize;
            // Heads are at the beginning, with most that matters.
            let bit = if rng.chance(0.5) { bit % 512 } else { bit };
            if let Some(byte) = page.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
    changed
}

fn swapped(pages: &[Vec<u8>], longest: u64, rng: &mut Rng) -> Pages {
    let length = 1 + rng.below(longest) as usize;
    let mut start = || rng.below(pages.len() as u64) as usize;
    let (one, other) = (start(), start());
    let mut changed = Pages::new();
    for (one, other) in (one..).zip(other..).take(length) {
        if let (Some(first), Some(second)) = (pages.get(one), pages.get(other)) {
            changed.insert(one, second.clone());
            changed.insert(other, first.clone());
        }
    }
    changed
}
