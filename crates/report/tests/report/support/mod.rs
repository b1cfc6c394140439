//! Parses the output of a report as strict XML.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what cannot be read fails the test")]
#![allow(dead_code, reason = "every test file uses a part of it")]

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use std::collections::BTreeMap;

/// An element with its attributes and the text directly inside of it.
#[derive(Debug, Clone, Default)]
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    pub text: String,
    /// The text of a `<title>` inside of it.
    pub tip: String,
}

impl Element {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    pub fn number(&self, name: &str) -> f64 {
        self.attribute(name).parse().unwrap()
    }
}

/// All elements in the order in which they end. Panics where the text is not well-formed.
pub fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    let (mut open, mut done): (Vec<Element>, Vec<Element>) = (Vec::new(), Vec::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => open.push(element(&start)),
            Event::Empty(start) => done.push(element(&start)),
            Event::Text(text) => {
                let text = text.decode().unwrap();
                if let Some(innermost) = open.last_mut() {
                    innermost.text.push_str(&text);
                } else {
                    assert_eq!(text.trim(), "", "text outside of the root");
                }
            }
            Event::GeneralRef(reference) => {
                let name = reference.decode().unwrap();
                let known =
                    ["amp", "lt", "gt", "quot", "#39"].iter().zip(["&", "<", ">", "\"", "'"]);
                let meant = known.into_iter().find(|(known, _)| **known == name);
                open.last_mut().unwrap().text.push_str(meant.unwrap().1);
            }
            Event::End(_) => {
                let ended = open.pop().unwrap();
                if let Some(outer) = open.last_mut().filter(|_| ended.name == "title") {
                    outer.tip.clone_from(&ended.text);
                }
                done.push(ended);
            }
            Event::Eof => break,
            Event::DocType(_) => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    done
}

fn element(start: &BytesStart) -> Element {
    let name = String::from_utf8(start.name().as_ref().to_vec()).unwrap();
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let key = String::from_utf8(attribute.key.as_ref().to_vec()).unwrap();
        (key, attribute.unescape_value().unwrap().into_owned())
    });
    Element { name, attributes: attributes.collect(), ..Element::default() }
}

/// Where a text is, going by wide letters: left, right and middle height.
pub fn extent(text: &Element) -> (f64, f64, f64) {
    let width = text.text.chars().count() as f64 * 6.8;
    let x = text.number("x");
    let left = match text.attribute("text-anchor") {
        "start" => x,
        "middle" => x - width / 2.0,
        _ => x - width,
    };
    (left, left + width, text.number("y"))
}

/// Fails where two texts of an SVG lie on each other or one leaves the picture.
pub fn check_labels(svg: &str) {
    let all = elements(svg);
    let texts: Vec<&Element> =
        all.iter().filter(|e| e.name == "text" && !e.text.trim().is_empty()).collect();
    for (index, text) in texts.iter().enumerate() {
        let (left, right, y) = extent(text);
        assert!(left >= -1.0 && right <= 721.0, "{:?} leaves the picture", text.text);
        for other in &texts[index + 1..] {
            let (other_left, other_right, other_y) = extent(other);
            let beside = right <= other_left || other_right <= left;
            let apart = (y - other_y).abs() >= 11.0;
            assert!(beside || apart, "{:?} lies on {:?}", text.text, other.text);
        }
    }
}
