//! The words of a condition.

use super::Comparison;

/// A word.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// The name of a measure.
    Name(String),
    Number(f64),
    Compare(Comparison),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// A word and its column, from 1.
pub(super) type Placed = (Token, usize);

/// Splits a text into words; the error is the column and the problem.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed>, (usize, String)> {
    let characters: Vec<char> = text.chars().collect();
    let (mut at, mut tokens) = (0, Vec::new());
    while let Some(&first) = characters.get(at) {
        let column = at + 1;
        if first.is_whitespace() {
            at += 1;
            continue;
        }
        let taken = |fits: fn(char) -> bool| {
            let rest = characters.get(at..).unwrap_or_default();
            rest.iter().take_while(|c| fits(**c)).collect::<String>()
        };
        let (token, length) = if first.is_ascii_digit() || first == '.' || first == '-' {
            let word = number_at(characters.get(at..).unwrap_or_default());
            let number: f64 = word
                .replace('_', "")
                .parse()
                .map_err(|_| (column, format!("`{word}` is no number, as 2000 or 0.5")))?;
            (Token::Number(number), word.chars().count())
        } else if first.is_alphabetic() || first == '_' {
            let word = taken(|c| c.is_alphanumeric() || c == '_' || c == '.');
            let length = word.chars().count();
            let token = match word.as_str() {
                "and" => Token::And,
                "or" => Token::Or,
                "not" => Token::Not,
                _ => Token::Name(word),
            };
            (token, length)
        } else {
            symbol(first, characters.get(at + 1).copied()).ok_or_else(|| {
                let problem = format!(
                    "`{first}` is not understood; a condition compares measures, as \
                     `p999_us < 2000 and kept_up`"
                );
                (column, problem)
            })?
        };
        tokens.push((token, column));
        at += length;
    }
    Ok(tokens)
}

/// The characters of the number at the beginning: digits, a point, an exponent with its sign.
fn number_at(characters: &[char]) -> String {
    let mut word = String::new();
    for &c in characters {
        let after_exponent = word.ends_with(['e', 'E']);
        let fits = c.is_alphanumeric()
            || c == '.'
            || c == '_'
            || ((c == '-' || c == '+') && (word.is_empty() || after_exponent));
        if !fits {
            break;
        }
        word.push(c);
    }
    word
}

/// A symbol, and how many characters it has.
fn symbol(first: char, second: Option<char>) -> Option<(Token, usize)> {
    use Comparison::{AtLeast, AtMost, Equal, Less, More, NotEqual};
    Some(match (first, second) {
        ('<', Some('=')) => (Token::Compare(AtMost), 2),
        ('>', Some('=')) => (Token::Compare(AtLeast), 2),
        ('=', Some('=')) => (Token::Compare(Equal), 2),
        ('!', Some('=')) => (Token::Compare(NotEqual), 2),
        ('<', _) => (Token::Compare(Less), 1),
        ('>', _) => (Token::Compare(More), 1),
        ('=', _) => (Token::Compare(Equal), 1),
        ('(', _) => (Token::Open, 1),
        (')', _) => (Token::Close, 1),
        _ => return None,
    })
}
