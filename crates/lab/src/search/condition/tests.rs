//! Conditions: what they say of figures, and what is said of mistakes.

use super::*;

fn condition(text: &str) -> Condition {
    text.parse().unwrap()
}

fn figures(all: &[(&str, f64)]) -> Figures {
    all.iter().map(|(name, figure)| ((*name).to_owned(), *figure)).collect()
}

#[test]
fn terms_bind_as_people_expect() {
    let figures = figures(&[("p999_us", 1500.0), ("waf", 3.0), ("kept_up", 1.0), ("iops", 9e4)]);
    for (text, holds) in [
        ("p999_us < 2000", true),
        ("2000 > p999_us", true),
        ("p999_us < 2000 and kept_up", true),
        ("p999_us < 1000 and kept_up", false),
        ("not kept_up", false),
        ("not not kept_up", true),
        ("waf = 3 and waf == 3.0", true),
        ("waf != 3", false),
        // `and` before `or`: the last alternative holds.
        ("waf < 1 and kept_up or iops >= 90_000", true),
        ("waf < 1 and (kept_up or iops >= 90_000)", false),
        ("not (waf > 2 and iops > 1e5)", true),
        ("not (waf > 2 or iops > 1e5)", false),
        ("not waf > 2 or kept_up", true),
        ("iops > 8.9e+4 and waf > -1", true),
        ("waf<=3 and(kept_up)", true),
        ("p999_us < iops", true),
    ] {
        assert_eq!(condition(text).holds(&figures), holds, "{text}");
    }
}

#[test]
fn the_gap_is_the_share_by_which_a_figure_is_wrong() {
    let at = |text: &str, figure| condition(text).gap(&figures(&[("waf", figure), ("iops", 5.0)]));
    assert_eq!(at("waf < 2", 1.9), 0.0);
    assert_eq!(at("waf < 2", 4.0), 0.5);
    assert_eq!(at("waf < 2 and iops > 10", 2.5), 0.5);
    assert_eq!(at("waf < 2 or iops > 10", 2.5), 0.2);
    assert!(at("waf < 2", 2.2) < at("waf < 2", 2.4));
    assert_eq!(at("waf < 0", f64::INFINITY), 1.0);
}

#[test]
fn measures_are_named_once_in_their_order() {
    let names = |text: &str| -> Vec<String> {
        condition(text).measures().iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names("waf < 2 and not (kept_up and waf > 1)"), ["waf", "kept_up"]);
    assert_eq!(names("figures.capacity_share > 0.9"), ["figures.capacity_share"]);
}

#[test]
fn mistakes_are_named_with_their_column() {
    for (text, column, words) in [
        ("", 1, "a measure or a number is missing"),
        ("p99_us <", 9, "a measure or a number is missing"),
        ("p99_us", 1, "`p99_us` is a number: compare it"),
        ("3 and kept_up", 1, "a number alone says nothing"),
        ("kept_up = 1", 1, "true or false"),
        ("(waf < 2", 9, "a `)` is missing"),
        ("waf < 2)", 8, "a `)` without `(`"),
        ("1 < waf < 2", 9, "a comparison has two sides"),
        ("waf < 2 kept_up", 9, "`and` or `or` is missing"),
        ("waf < 2ms", 7, "`2ms` is no number"),
        ("waf & 2", 5, "`&` is not understood"),
        ("wfa < 2", 1, "unknown measure `wfa`; near it are `waf`"),
        ("p999 < 2000", 1, "unknown measure `p999`; near it are `p999_s`"),
        ("keptup", 1, "`kept_up`"),
    ] {
        let error = text.parse::<Condition>().unwrap_err();
        assert_eq!(error.column, column, "{error}");
        assert!(error.problem.contains(words), "{error}");
    }
    let deep = "(".repeat(1000);
    assert!(deep.parse::<Condition>().unwrap_err().problem.contains("inside each other"));
    let deep = "not ".repeat(1000) + "kept_up";
    assert!(deep.parse::<Condition>().unwrap_err().problem.contains("inside each other"));
}

#[test]
fn a_figure_that_a_run_does_not_have_is_an_error_and_not_a_failure_of_the_condition() {
    let error = condition("write_p99_us < 5").figures(&Outcome::default()).unwrap_err();
    assert!(error.contains("`write_p99_us`: the run has no writes"), "{error}");
}
