//! The uses of a source within its own crate, from its syntax tree.

use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, Path, UseTree, Visibility};

/// Names that a file uses, without tests.
#[derive(Debug, Default)]
pub struct Uses {
    /// All path segments of `use` declarations that are not re-exports, and of paths in code.
    pub paths: Vec<Vec<String>>,
    /// Re-exports: the path, and the name that it has here.
    pub handed_on: Vec<(Vec<String>, String)>,
    /// All identifiers of the code.
    pub words: BTreeSet<String>,
}

impl Uses {
    /// The uses of a parsed source.
    pub fn of(file: &File) -> Uses {
        let mut uses = Uses::default();
        uses.visit_file(file);
        uses
    }

    fn add(&mut self, tree: &UseTree, before: &[String], handed_on: bool) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.add(&path.tree, &with(path.ident.to_string()), handed_on),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add(tree, before, handed_on));
            }
            UseTree::Glob(_) => self.paths.push(before.to_vec()),
            UseTree::Name(name) => self.name(with(name.ident.to_string()), handed_on, None),
            UseTree::Rename(name) => {
                let here = name.rename.to_string();
                self.name(with(name.ident.to_string()), handed_on, Some(here));
            }
        }
    }

    fn name(&mut self, path: Vec<String>, handed_on: bool, here: Option<String>) {
        match (handed_on, here.or_else(|| path.last().cloned())) {
            (true, Some(here)) => self.handed_on.push((path, here)),
            _ => self.paths.push(path),
        }
    }
}

/// Whether an item is compiled for tests only.
pub fn is_item_for_tests(item: &Item) -> bool {
    match item {
        Item::Mod(module) => is_for_tests(&module.attrs),
        Item::Fn(function) => is_for_tests(&function.attrs),
        Item::Impl(block) => is_for_tests(&block.attrs),
        Item::Use(declaration) => is_for_tests(&declaration.attrs),
        _ => false,
    }
}

/// Whether these attributes exclude their item from builds that are not for tests.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |path: &Path| path.is_ident("test");
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Path>().is_ok_and(|path| is_test(&path))
    })
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            item if is_item_for_tests(item) => {}
            Item::Use(declaration) => {
                let handed_on = !matches!(declaration.vis, Visibility::Inherited);
                self.add(&declaration.tree, &[], handed_on);
            }
            other => visit::visit_item(self, other),
        }
    }

    /// The path in `pub(in …)` says who may use an item, not what the item uses.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match &segments[..] {
            [word] => drop(self.words.insert(word.clone())),
            [word, ..] => {
                self.words.insert(word.clone());
                self.paths.push(segments);
            }
            [] => {}
        }
        visit::visit_path(self, path);
    }
}
