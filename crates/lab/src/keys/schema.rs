//! Goes through the schema of a structure and lists its keys.

use super::unit::{stated, unit};
use super::{Choice, Key};
use schemars::Schema;
use serde_json::{Map, Value};

/// The type of a key with a list of values.
pub const ONE_OF: &str = "one of its values";

/// The largest whole number that TOML has.
const LARGEST: u64 = i64::MAX as u64;

/// A walk through a schema.
pub struct Walk<'a> {
    /// The structures that others refer to.
    definitions: Option<&'a Map<String, Value>>,
    only_in: Option<String>,
    /// The keys so far.
    pub keys: Vec<Key>,
}

impl<'a> Walk<'a> {
    /// The beginning of a walk; all its keys are only in files of that kind.
    pub fn of(schema: &'a Schema, only_in: Option<&str>) -> Walk<'a> {
        Walk {
            definitions: schema.get("$defs").and_then(Value::as_object),
            only_in: only_in.map(str::to_owned),
            keys: Vec::new(),
        }
    }

    /// Adds the keys of a table: first those with a value, then those that are tables themselves.
    pub fn table(&mut self, prefix: &str, schema: &'a Value) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|r| r == name));
        let is_table = |field: &Value| self.inner(self.resolved(field)).is_some();
        let (tables, plain): (Vec<_>, Vec<_>) =
            properties.iter().partition(|(_, field)| is_table(field));
        for (name, field) in plain.into_iter().chain(tables) {
            self.field(prefix, name, field, is_required(name));
        }
    }

    fn field(&mut self, prefix: &str, name: &str, field: &'a Value, required: bool) {
        let (key, schema) = (format!("{prefix}{name}"), self.resolved(field));
        let unit = match field.get("unit").and_then(Value::as_str) {
            Some(given) => stated(given),
            None => unit(name),
        };
        self.keys.push(Key {
            what: self.what(schema),
            // Those of its keys are the default of a table.
            default: field
                .get("default")
                .filter(|value| !value.is_null() && !is_table(schema))
                .map(in_toml),
            unit: unit.filter(|_| is_number(schema)),
            range: range(if is_list(schema) { &schema["items"] } else { merged(field, schema) }),
            required,
            meaning: meaning(field),
            values: self.choices(schema),
            only_in: self.only_in.clone(),
            key: key.clone(),
        });
        if let Some(inner) = self.inner(schema) {
            self.table(&format!("{key}."), inner);
        }
        for (variant, table) in self.variants_with_keys(schema) {
            self.table(&format!("{key}.{variant}."), table);
        }
        if let Some(inner) = alternatives(schema).find_map(|one| self.inner(one)) {
            self.table(&format!("{key}."), inner);
        }
    }

    /// Follows a reference, and leaves out the alternative that the key is absent.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
            let name = name.trim_start_matches("#/$defs/");
            return self.definitions.and_then(|all| all.get(name)).unwrap_or(schema);
        }
        match alternatives(schema).collect::<Vec<_>>().as_slice() {
            [one, absent] if absent.get("type").is_some_and(|t| t == "null") => self.resolved(one),
            _ => schema,
        }
    }

    /// The table that a key is, or a list of which it is.
    fn inner(&self, schema: &'a Value) -> Option<&'a Value> {
        let own = schema.get("properties").is_some() && schema.get("oneOf").is_none();
        if own { Some(schema) } else { self.rows(schema) }
    }

    /// The table of which a key is a list.
    fn rows(&self, schema: &'a Value) -> Option<&'a Value> {
        let items = self.resolved(schema.get("items")?);
        items.get("properties").map(|_| items)
    }

    /// The variants of an enum that are tables with keys of their own.
    fn variants_with_keys(&self, schema: &'a Value) -> Vec<(&'a str, &'a Value)> {
        let table = |variant: &'a Value| {
            let (name, payload) = payload(variant)?;
            let keys = self.resolved(payload);
            (variant.get("form").is_none() && keys.get("properties").is_some())
                .then_some((name, keys))
        };
        variants(schema).filter_map(table).collect()
    }

    /// The values of an enum.
    fn choices(&self, schema: &Value) -> Vec<Choice> {
        let of = |variant: &Value| Choice { value: value_of(variant), meaning: meaning(variant) };
        variants(schema).map(of).collect()
    }

    /// The type of a value, in words.
    fn what(&self, schema: &'a Value) -> String {
        if variants(schema).next().is_some() {
            return ONE_OF.to_owned();
        }
        let several: Vec<String> =
            alternatives(schema).map(|one| self.what(self.resolved(one))).collect();
        if !several.is_empty() {
            return several.join(", or ");
        }
        match simple(schema) {
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "boolean" => "true or false".to_owned(),
            "string" => "text".to_owned(),
            "array" if self.rows(schema).is_some() => "list of tables".to_owned(),
            "array" => format!("list of {}s", self.what(self.resolved(&schema["items"]))),
            _ => "table".to_owned(),
        }
    }
}

/// The type of a value; that it may be absent is no part of it.
fn simple(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or("object")
        }
        Some(one) => one.as_str().unwrap_or("object"),
        None => "object",
    }
}

fn is_list(schema: &Value) -> bool {
    simple(schema) == "array"
}

fn is_table(schema: &Value) -> bool {
    simple(schema) == "object" && variants(schema).next().is_none()
}

fn is_number(schema: &Value) -> bool {
    let of = |schema: &Value| matches!(simple(schema), "integer" | "number");
    of(schema) || schema.get("items").is_some_and(of) || alternatives(schema).any(of)
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("anyOf").and_then(Value::as_array).into_iter().flatten()
}

fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    schema.get("oneOf").and_then(Value::as_array).into_iter().flatten()
}

/// The name and the contents of a variant that is a table.
fn payload(variant: &Value) -> Option<(&str, &Value)> {
    let (name, payload) = variant.get("properties")?.as_object()?.iter().next()?;
    Some((name, payload))
}

/// The value of a variant, in TOML.
fn value_of(variant: &Value) -> String {
    let text = variant.get("form").or(variant.get("const")).and_then(Value::as_str);
    match (text, payload(variant)) {
        (Some(text), _) => format!("{text:?}"),
        (None, Some((name, payload))) => match payload.get("properties") {
            Some(_) => format!("{{ {name} = {{ ... }} }}"),
            None => format!("{{ {name} = {} }}", simple(payload).to_uppercase()),
        },
        (None, None) => String::new(),
    }
}

/// The range of a number is that of its field, or else that of its type.
fn merged<'a>(field: &'a Value, schema: &'a Value) -> &'a Value {
    if field.get("type").is_some() { field } else { schema }
}

/// The range of a number, in words.
fn range(schema: &Value) -> Option<String> {
    let one = alternatives(schema).find(|one| is_number(one)).unwrap_or(schema);
    let whole = simple(one) == "integer";
    if !whole && one.get("minimum").or(one.get("maximum")).is_none() {
        return None;
    }
    let of_type = match one.get("format").and_then(Value::as_str) {
        Some("uint32") => u64::from(u32::MAX),
        _ => LARGEST,
    };
    let number = |name: &str| one.get(name).map(|number| number.to_string());
    let least = number("minimum").unwrap_or_else(|| "0".to_owned());
    Some(match number("maximum").or((whole && of_type < LARGEST).then(|| of_type.to_string())) {
        Some(most) => format!("{} to {}", plain(&least), plain(&most)),
        None => format!("from {}", plain(&least)),
    })
}

/// A number without a fraction of zero.
fn plain(number: &str) -> &str {
    number.strip_suffix(".0").unwrap_or(number)
}

/// The doc comment of a structure or a field, as plain text in one line.
pub fn meaning(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // A link of rustdoc is its text.
    let (mut plain, mut rest) = (String::new(), text.as_str());
    while let Some((before, link)) = rest.split_once("[`") {
        let (word, after) = link.split_once("`]").unwrap_or((link, ""));
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        plain += &format!("{before}`{}`", word.to_lowercase());
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

/// A value of JSON in TOML, in one line.
fn in_toml(value: &Value) -> String {
    let table = toml::Value::try_from(value).map(|value| value.to_string());
    table.unwrap_or_else(|_| value.to_string())
}
