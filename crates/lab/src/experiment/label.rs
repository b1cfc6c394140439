//! Label templates with placeholders for values, as `{device} read {workload.size}`.

use super::fields::Tables;
use toml::Value;

/// The values of the placeholders of a label.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// `{device}`.
    pub device: &'a str,
    /// `{layout}`.
    pub layout: &'a str,
    /// `{workload}`.
    pub workload: &'a str,
    /// `{variant}`.
    pub variant: &'a str,
    /// Paths that the group varies; `{size}` is the one of these that ends in `.size`.
    pub varied: &'a [&'a str],
    /// Everything else, by its path.
    pub tables: &'a Tables,
}

/// Fills the placeholders with values; the error names a placeholder without one.
///
/// Fields whose name ends in `bytes` or `size` are written as KiB, MiB or GiB; `{path:plain}`
/// writes any field unchanged, `{path:size}` any number as bytes.
pub fn fill(template: &str, names: &Names) -> Result<String, String> {
    let mut label = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) =
            after.split_once('}').ok_or_else(|| format!("`{template}`: a `{{` without `}}`"))?;
        label.push_str(before);
        let value = value(place, names).ok_or_else(|| {
            format!("`{template}`: no value for {{{place}}}; neither a field nor a varied one")
        })?;
        label.push_str(&value);
        rest = after;
    }
    label.push_str(rest);
    Ok(label)
}

fn value(place: &str, names: &Names) -> Option<String> {
    let (path, form) = match place.split_once(':') {
        Some((path, form)) => (path, Some(form)),
        None => (place, None),
    };
    let name = match path {
        "device" => names.device,
        "layout" => names.layout,
        "workload" => names.workload,
        "variant" => names.variant,
        _ => {
            let path = names.varied.iter().find(|varied| last(varied) == path).unwrap_or(&path);
            let as_size = match form {
                None => last(path).ends_with("bytes") || last(path).ends_with("size"),
                Some("size") => true,
                Some("plain") => false,
                Some(_) => return None,
            };
            return names.tables.get(path).map(|value| written(value, as_size));
        }
    };
    Some(name.to_owned())
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// A value as labels show it.
pub fn written(value: &Value, as_size: bool) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Integer(bytes) if as_size => size(*bytes),
        other => other.to_string(),
    }
}

/// Bytes in the largest unit that leaves no fraction: `8 KiB`, `100 KB`, `4097 B`.
pub fn size(bytes: i64) -> String {
    let units = [
        (1 << 40, "TiB"),
        (1_000_000_000_000, "TB"),
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1_000, "KB"),
    ];
    let whole = units.iter().find(|(unit, _)| bytes != 0 && bytes % unit == 0);
    match whole {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        let tables = Tables {
            workload: "size = 8192\nclients = 44\npattern = \"random\"".parse().unwrap(),
            parameters: "op_percent = 12.5".parse().unwrap(),
            ..Tables::default()
        };
        let names = Names {
            device: "sdf",
            layout: "sdf",
            workload: "reads",
            variant: "in order",
            varied: &["workload.clients"],
            tables: &tables,
        };
        fill(template, &names)
    }

    #[test]
    fn values_stand_in_their_places() {
        let label = |template| filled(template).unwrap();
        assert_eq!(label("{device} read {workload.size}"), "sdf read 8 KiB");
        assert_eq!(
            label("{clients} clients, {variant}, OP {op_percent} %"),
            "44 clients, in order, OP 12.5 %"
        );
        assert_eq!(
            label("{workload.size:plain} {clients:size} {workload.pattern}"),
            "8192 44 B random"
        );
        assert_eq!(label("no places"), "no places");
    }

    #[test]
    fn a_place_without_a_value_is_named() {
        assert!(filled("{siz}").unwrap_err().contains("no value for {siz}"));
        assert!(filled("{device").unwrap_err().contains("without `}`"));
        assert!(filled("{workload.size:hex}").is_err());
    }

    #[test]
    fn sizes_have_no_fractions() {
        let cases = [
            (8192, "8 KiB"),
            (8 << 20, "8 MiB"),
            (100_000, "100 KB"),
            (512 << 10, "512 KiB"),
            (1_000_000, "1 MB"),
            (4097, "4097 B"),
            (0, "0 B"),
            (22_528, "22 KiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes), expected);
        }
    }
}
