//! Presets of flash arrays, as code. Whole devices and layouts are presets in TOML.

use crate::cell::{Cell, Pairing};
use crate::config::ArrayConfig;
use crate::geometry::Geometry;
use crate::timing::{BusTiming, DieTiming, SuspendTiming};

/// The flash of Baidu's SDF: 44 channels of 16 GB, 704 GB in all, 25 nm MLC on an asynchronous
/// 40 MHz bus of 8 bits.
///
/// The paper gives tR (75 us), tBERS (3 ms) and raw rates. tPROG is derived: the raw 1.01 GB/s of
/// writes is 4 planes x 8192 B x 44 channels in a cycle of 1427 us, and a cycle is two page loads
/// of 204.8 us and one two-plane program, chips interleaved: 1018 us. Lower and upper pages have
/// equal times, as the paper gives only this mean. Senses overlap transfers (cache read), which the
/// paper's raw read rate of 1.67 GB/s requires; programs do not overlap loads. With 448 spare bytes
/// a page has 8640 bytes, with which 40 MB/s give exactly that rate; by default the spare bytes are
/// not transferred.
pub fn sdf() -> ArrayConfig {
    ArrayConfig {
        geometry: Geometry {
            channels: 44,
            chips_per_channel: 2,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 2048,
            pages_per_block: 256,
            page_bytes: 8192,
            spare_bytes: 448,
        },
        die: DieTiming {
            cell: Cell::Mlc,
            pairing: Pairing::Shadow,
            read_ns: vec![75_000],
            program_ns: vec![1_017_900],
            erase_ns: 3_000_000,
            retry_ns: None,
            cache_read: true,
            cache_program: false,
            program_suspend: None,
            erase_suspend: None,
            slc_mode: None,
        },
        bus: BusTiming {
            bytes_per_second: 40_000_000,
            command_overhead_ns: 0,
            transfer_spare: false,
            reads_ahead: 8,
        },
    }
}

/// The flash of Tencent's TSSD: 51 channels (3 controllers of 17) with 4 chips of 8 GiB each, 1.6
/// TiB in all, pages of 4 KiB and flash blocks of 512 KiB.
///
/// The paper names no part and no times. They are those of the MLC family with these pages and
/// blocks in chips of 64 Gbit, Micron MT29F64G08 (data sheet "16, 32, 64, 128Gb NAND Flash
/// Memory"): four dies of two planes of 2048 blocks, tR 50 us, tPROG 900 us, tBERS 3.5 ms, 25 ns a
/// byte on the bus, cache reads and cache programs. One time for lower and upper pages, as the data
/// sheet has only that. The spare bytes of a page (218) cross the bus, because its ECC is in the
/// controller.
pub fn tssd() -> ArrayConfig {
    ArrayConfig {
        geometry: Geometry {
            channels: 51,
            chips_per_channel: 4,
            dies_per_chip: 4,
            planes_per_die: 2,
            blocks_per_plane: 2048,
            pages_per_block: 128,
            page_bytes: 4096,
            spare_bytes: 218,
        },
        die: DieTiming {
            cell: Cell::Mlc,
            pairing: Pairing::Shadow,
            read_ns: vec![50_000],
            program_ns: vec![900_000],
            erase_ns: 3_500_000,
            retry_ns: None,
            cache_read: true,
            cache_program: true,
            program_suspend: None,
            erase_suspend: None,
            slc_mode: None,
        },
        bus: BusTiming {
            bytes_per_second: 40_000_000,
            command_overhead_ns: 0,
            transfer_spare: true,
            reads_ahead: 8,
        },
    }
}

/// A small MLC array for tests: 2 channels x 2 chips x 2 planes x 8 blocks x 16 pages of 4 KiB,
/// with round times that are easy to add up, no cache registers and no suspend. A page takes 10 us
/// on the bus, 50 us to read, 200 us (lower) or 600 us (upper) to program; an erase takes 2 ms.
pub fn small() -> ArrayConfig {
    ArrayConfig {
        geometry: Geometry {
            channels: 2,
            chips_per_channel: 2,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 8,
            pages_per_block: 16,
            page_bytes: 4096,
            spare_bytes: 0,
        },
        die: DieTiming {
            cell: Cell::Mlc,
            pairing: Pairing::Shadow,
            read_ns: vec![50_000],
            program_ns: vec![200_000, 600_000],
            erase_ns: 2_000_000,
            retry_ns: Some(40_000),
            cache_read: false,
            cache_program: false,
            program_suspend: None,
            erase_suspend: None,
            slc_mode: None,
        },
        bus: BusTiming {
            bytes_per_second: 409_600_000,
            command_overhead_ns: 0,
            transfer_spare: false,
            reads_ahead: 8,
        },
    }
}

/// A TLC array of about 256 GiB with cache registers and suspend: 8 channels x 8 dies x 2 planes x
/// 172 blocks x 768 pages of 16 KiB (258 GiB, the nearest number of whole blocks).
///
/// Times per level are those of FEMU's TLC model (tR 56.5, 77.5, 106 us; tPROG 820.5, 2225, 5734
/// us; tBERS 3 ms), suspend times those of MQSim's defaults (program 100 us, erase 700 us), the bus
/// 8 bits at 800 MT/s. They represent a class of flash, not one part.
pub fn tlc() -> ArrayConfig {
    let suspend = |suspend_ns| SuspendTiming { suspend_ns, resume_ns: 20_000, at_most: 8 };
    ArrayConfig {
        geometry: Geometry {
            channels: 8,
            chips_per_channel: 8,
            dies_per_chip: 1,
            planes_per_die: 2,
            blocks_per_plane: 172,
            pages_per_block: 768,
            page_bytes: 16_384,
            spare_bytes: 2048,
        },
        die: DieTiming {
            cell: Cell::Tlc,
            pairing: Pairing::Shadow,
            read_ns: vec![56_500, 77_500, 106_000],
            program_ns: vec![820_500, 2_225_000, 5_734_000],
            erase_ns: 3_000_000,
            retry_ns: None,
            cache_read: true,
            cache_program: true,
            program_suspend: Some(suspend(100_000)),
            erase_suspend: Some(suspend(700_000)),
            slc_mode: None,
        },
        bus: BusTiming {
            bytes_per_second: 800_000_000,
            command_overhead_ns: 300,
            transfer_spare: true,
            reads_ahead: 8,
        },
    }
}
