//! Parameters in XML: elements with a text, or with further elements.

use super::ImportError;
use quick_xml::Reader;
use quick_xml::events::Event;

/// The deepest nesting of a configuration.
const DEEPEST: usize = 16;

/// An element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its text, without space around it.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
    /// The elements in it.
    pub children: Vec<Element>,
}

/// The outermost element of the text of `file`. A closing tag closes the innermost element,
/// whatever its name: MQSim does not compare the names. A remark tells where they differ.
pub fn parse(file: &str, text: &str, remarks: &mut Vec<String>) -> Result<Element, ImportError> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<Element> = Vec::new();
    loop {
        let event = reader.read_event();
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let line = line_at(text, at);
        let wrong =
            |problem: String| ImportError { file: file.to_owned(), line: Some(line), problem };
        match event.map_err(|error| wrong(format!("this is no XML: {error}")))? {
            Event::Start(start) => {
                if open.len() == DEEPEST {
                    return Err(wrong(format!("more than {DEEPEST} elements inside each other")));
                }
                open.push(element(start.name().as_ref(), line));
            }
            Event::Empty(empty) => match open.last_mut() {
                Some(parent) => parent.children.push(element(empty.name().as_ref(), line)),
                None => return Ok(element(empty.name().as_ref(), line)),
            },
            Event::Text(piece) => {
                if let Some(inner) = open.last_mut() {
                    inner.text += String::from_utf8_lossy(piece.as_ref()).trim();
                }
            }
            Event::End(end) => {
                let Some(ended) = open.pop() else { continue };
                let name = String::from_utf8_lossy(end.name().as_ref()).into_owned();
                if name != ended.name {
                    let (inner, begun) = (&ended.name, ended.line);
                    remarks.push(format!(
                        "{file}: line {line}: `</{name}>` closes `{inner}` of line {begun}, as in MQSim"
                    ));
                }
                match open.last_mut() {
                    Some(parent) => parent.children.push(ended),
                    None => return Ok(ended),
                }
            }
            Event::Eof => {
                return Err(wrong(match open.last() {
                    Some(inner) => format!("the file ends inside of `{}`", inner.name),
                    None => "the file has no element; give a file of MQSim".to_owned(),
                }));
            }
            _ => {}
        }
    }
}

fn element(name: &[u8], line: usize) -> Element {
    let name = String::from_utf8_lossy(name).into_owned();
    Element { name, text: String::new(), line, children: Vec::new() }
}

fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}
