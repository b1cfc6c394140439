//! The inherent methods that a source defines and calls, from its syntax tree. An edge of methods
//! leads from a file that calls one to the file of the same crate that defines it.
//!
//! The types are not known. So a call counts only if its name tells where the method is: exactly
//! one file of the crate defines a function of this name in an `impl` or a trait, no crate of the
//! project that it depends on exports one, and no type of the standard library has a method of it
//! (see [`STANDARD`]).

use super::uses::{is_for_tests, is_item_for_tests};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{
    Expr, FnArg, ImplItem, ImplItemFn, Item, ItemImpl, ItemTrait, Macro, Signature, TraitItem,
    Visibility,
};

/// Names that a crate may define and that are also methods of types of `std`, or of a library such
/// as `bytes`: a call does not tell which one is meant. A name that one file of a crate defines
/// belongs in this list if the sources call a method of a library by it.
const STANDARD: &str = "\
    abs add advance all any append as_bytes as_mut as_ref as_slice as_str borrow borrow_mut by_ref \
    bytes capacity chain clear clone close cmp collect contains contains_key count drain drop \
    entry eq extend field fill filter find finish first flush fmt fold format freeze get get_mut \
    has_remaining hash id index insert into_inner is_closed is_empty is_none is_ready is_some iter \
    iter_mut join keys kind last len lines load lock map max metadata min name next notify_one nth \
    open parse path peek poll pop position push put range read recv remaining remove replace \
    reserve resize retain rev scan seek send set shutdown skip slice sort spawn split split_at \
    start store sub sum swap take then trim truncate update upgrade values wait wake write zip";

/// The methods of a source, without tests.
#[derive(Debug, Default)]
pub struct Methods {
    /// Functions in impls and traits.
    defined: BTreeSet<String>,
    /// Those with a receiver in inherent impls.
    inherent: BTreeSet<String>,
    /// Those that other crates can call.
    exported: BTreeSet<String>,
    /// Names in calls `.name(…)` and in paths `Type::name`.
    called: BTreeSet<String>,
}

/// The only module of the crate that defines a method, by the method's name.
pub type Homes<'a> = BTreeMap<&'a str, &'a [String]>;

impl Methods {
    /// The methods of a parsed source.
    pub fn of(file: &syn::File) -> Methods {
        let mut methods = Methods::default();
        methods.visit_file(file);
        methods
    }

    /// The names of the methods that other crates can call.
    pub fn exported(&self) -> impl Iterator<Item = &str> {
        self.exported.iter().map(String::as_str)
    }

    /// The modules to which calls can lead; none for the names that `elsewhere` has.
    pub fn homes<'a>(
        modules: impl Iterator<Item = (&'a [String], &'a Methods)>,
        elsewhere: &BTreeSet<&str>,
    ) -> Homes<'a> {
        let mut places: BTreeMap<&str, Vec<(&[String], bool)>> = BTreeMap::new();
        for (module, methods) in modules {
            for name in &methods.defined {
                let is_inherent = methods.inherent.contains(name);
                places.entry(name).or_default().push((module, is_inherent));
            }
        }
        let standard: BTreeSet<&str> = STANDARD.split_whitespace().collect();
        let is_clear = |name: &str| !standard.contains(name) && !elsewhere.contains(name);
        let only = places.into_iter().filter_map(|(name, places)| match places[..] {
            [(module, true)] if is_clear(name) => Some((name, module)),
            _ => None,
        });
        only.collect()
    }

    /// The calls that lead to another module than `module`: the name, and the module.
    pub fn calls<'a>(
        &'a self,
        module: &'a [String],
        homes: &'a Homes<'a>,
    ) -> impl Iterator<Item = (&'a str, &'a [String])> {
        let homes = self.called.iter().filter_map(|name| homes.get_key_value(name.as_str()));
        homes.map(|(name, home)| (*name, *home)).filter(move |(_, home)| *home != module)
    }

    fn define(&mut self, signature: &Signature, is_inherent: bool, is_exported: bool) {
        let name = signature.ident.to_string();
        if is_inherent && matches!(signature.inputs.first(), Some(FnArg::Receiver(_))) {
            self.inherent.insert(name.clone());
        }
        if is_exported {
            self.exported.insert(name.clone());
        }
        self.defined.insert(name);
    }

    /// Calls in the tokens of a macro, whose syntax is not known: a dot, a name, parentheses.
    fn look_into(&mut self, tokens: &str) {
        for after in tokens.split('.').skip(1) {
            let after = after.trim_start();
            let end = after.find(|sign: char| !sign.is_alphanumeric() && sign != '_');
            let (name, rest) = after.split_at(end.unwrap_or(after.len()));
            if rest.trim_start().starts_with('(') {
                self.called.insert(name.to_owned());
            }
        }
    }
}

impl<'ast> Visit<'ast> for Methods {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_item_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        for item in &block.items {
            if let ImplItem::Fn(function) = item
                && !is_for_tests(&function.attrs)
            {
                let is_public = matches!(function.vis, Visibility::Public(_));
                self.define(&function.sig, block.trait_.is_none(), is_public);
            }
        }
        visit::visit_item_impl(self, block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        for item in &item.items {
            if let TraitItem::Fn(function) = item {
                self.define(&function.sig, false, true);
            }
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::MethodCall(call) => drop(self.called.insert(call.method.to_string())),
            Expr::Path(path) => {
                let mut ends = path.path.segments.iter().rev().map(|part| part.ident.to_string());
                if let (Some(name), Some(of)) = (ends.next(), ends.next())
                    && of.starts_with(char::is_uppercase)
                {
                    self.called.insert(name);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.look_into(&call.tokens.to_string());
        visit::visit_macro(self, call);
    }
}
