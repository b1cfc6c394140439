//! A real source tree to unpack and compile: the C sources of zstd, which the project depends on
//! and cargo has downloaded.

use crate::Outcome;
use crate::checksums::{self, Checksums};
use crate::interrupt;
use crate::run::output;
use crate::tool::limited;
use crate::workspace;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a build makes beside an object of each source.
const LIBRARY: &str = "libzstd.so";

/// The tree, packed, with what it must become.
pub struct SourceTree {
    archive: PathBuf,
    /// Checksums of the unpacked tree.
    pub checksums: Checksums,
    /// The products in the order in which they are built.
    pub products: Vec<Product>,
}

/// A file that is made by a command in the tree.
pub struct Product {
    pub name: String,
    /// The checksum of the file, where it was made on another file system.
    pub checksum: u64,
    /// The sources, in the tree; none: the library of all objects.
    source: Option<PathBuf>,
}

impl SourceTree {
    /// Packs the tree, unpacks it at `place` and builds it there. `quick`: only a part of it.
    pub fn prepare(place: &Path, quick: bool) -> Outcome<SourceTree> {
        let (archive, unpacked) = (place.join("source.tar"), place.join("source"));
        let build = place.join("build");
        let mut tar = limited(60, "tar");
        output(tar.arg("-cf").arg(&archive).arg("-C").arg(sources()?).arg("lib"))?;
        let mut tree = SourceTree { archive, checksums: BTreeMap::new(), products: Vec::new() };
        tree.unpack(&unpacked)?;
        tree.checksums = checksums::of(&unpacked)?;
        let in_quick = |path: &Path| path.starts_with("lib/common");
        let is_source = |path: &&PathBuf| {
            path.extension().is_some_and(|end| end == "c") && (!quick || in_quick(path))
        };
        let sources = tree.checksums.keys().filter(is_source);
        tree.products = sources.map(|path| Product::of(path)).collect();
        tree.products.push(Product { name: LIBRARY.to_owned(), checksum: 0, source: None });
        fs::create_dir_all(&build).map_err(|error| format!("{}: {error}", build.display()))?;
        eprintln!("compiling {} files, to compare with later", tree.products.len());
        for product in &mut tree.products {
            interrupt::check()?;
            product.make(&unpacked, &build)?;
            product.checksum = checksums::of_file(&build.join(&product.name))?;
        }
        Ok(tree)
    }

    /// Unpacks the tree into a new directory.
    pub fn unpack(&self, directory: &Path) -> Outcome {
        fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut tar = limited(60, "tar");
        output(tar.arg("-xf").arg(&self.archive).arg("-C").arg(directory)).map(drop)
    }
}

impl Product {
    fn of(source: &Path) -> Product {
        let name = source.with_extension("o").display().to_string().replace('/', "-");
        Product { name, checksum: 0, source: Some(source.to_owned()) }
    }

    /// Makes it from an unpacked tree in a directory for products. The compiler gets relative
    /// paths, so that equal sources give equal bytes everywhere.
    pub fn make(&self, tree: &Path, build: &Path) -> Outcome {
        let mut compile = limited(60, "cc");
        match &self.source {
            Some(source) => {
                compile.args(["-O0", "-fPIC", "-DZSTD_DISABLE_ASM", "-c"]).arg(source);
                compile.arg("-o").arg(build.join(&self.name)).current_dir(tree)
            }
            None => {
                let mut objects: Vec<_> = names(build)?;
                objects.retain(|name| name.ends_with(".o"));
                compile.arg("-shared").args(objects).args(["-o", &self.name]).current_dir(build)
            }
        };
        output(&mut compile).map(drop)
    }
}

/// The names in a directory, in order.
fn names(directory: &Path) -> Outcome<Vec<String>> {
    let failed = |error| format!("{}: {error}", directory.display());
    let entries = fs::read_dir(directory).map_err(failed)?.filter_map(Result::ok);
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// The directory of zstd in cargo's registry.
fn sources() -> Outcome<PathBuf> {
    Ok(workspace::package("zstd-sys")?.join("zstd"))
}
