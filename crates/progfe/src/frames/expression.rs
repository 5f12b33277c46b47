//! Integer expressions over the fields of a header: lengths, and the presence of parts.
//!
//! Examples: `ihl * 4 - 20`, `flags / 128`, `kind gt 1 and not (len = 0)`.
//!
//! - Expressions consist of literals, names of earlier fields, `+ - * / %`, `and`, `or`, `not` and
//!   parentheses.
//! - Comparisons are words, which need no XML escapes, and return 0 or 1.
//! - Computation uses checked 64-bit integers. Overflow and division by zero have no value. A
//!   header whose expression has no value is absent.
//!
//! [`Expression::range`] bounds the values for any frame. A length that can exceed the buffer is
//! therefore found when a format is checked, before any frame arrives.

use std::fmt;

/// Maximum size of the text of an expression in bytes.
pub const EXPRESSION_BYTES_MAX: usize = 256;
/// Maximum nesting of parentheses and signs.
const DEPTH_MAX: usize = 32;

/// A field in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// An item of the header, by its index in the format.
    Item(u16),
    /// A field of the same round of a repeated part, by its index there.
    Round(u16),
}

/// An integer expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    /// A literal.
    Number(i64),
    /// The value of a field, with its name in the text.
    Field(Variable, String),
    /// One if the operand is zero, else zero.
    Not(Box<Expression>),
    /// A binary operation.
    Two(Operator, Box<Expression>, Box<Expression>),
}

/// A binary operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// One if either is not zero.
    Or,
    /// One if both are not zero.
    And,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, cut towards zero.
    Div,
    /// Remainder.
    Rem,
}

/// Operators with their words and precedence; a higher precedence binds tighter.
const OPERATORS: &[(Operator, &str, u8)] = &[
    (Operator::Or, "or", 1),
    (Operator::And, "and", 2),
    (Operator::Eq, "=", 4),
    (Operator::Ne, "ne", 4),
    (Operator::Lt, "lt", 4),
    (Operator::Le, "le", 4),
    (Operator::Gt, "gt", 4),
    (Operator::Ge, "ge", 4),
    (Operator::Add, "+", 5),
    (Operator::Sub, "-", 5),
    (Operator::Mul, "*", 6),
    (Operator::Div, "/", 6),
    (Operator::Rem, "%", 6),
];

impl Operator {
    fn row(self) -> (&'static str, u8) {
        let row = OPERATORS.iter().find(|(operator, ..)| *operator == self);
        row.map(|(_, word, strength)| (*word, *strength)).expect("every operator has a row")
    }

    fn apply(self, a: i64, b: i64) -> Option<i64> {
        let truth = |holds: bool| Some(i64::from(holds));
        match self {
            Operator::Or => truth(a != 0 || b != 0),
            Operator::And => truth(a != 0 && b != 0),
            Operator::Eq => truth(a == b),
            Operator::Ne => truth(a != b),
            Operator::Lt => truth(a < b),
            Operator::Le => truth(a <= b),
            Operator::Gt => truth(a > b),
            Operator::Ge => truth(a >= b),
            Operator::Add => a.checked_add(b),
            Operator::Sub => a.checked_sub(b),
            Operator::Mul => a.checked_mul(b),
            Operator::Div => a.checked_div(b),
            Operator::Rem => a.checked_rem(b),
        }
    }
}

/// Syntax error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte offset in the text.
    pub at: usize,
    /// Description of the error.
    pub what: String,
}

impl Expression {
    /// Parses an expression. `resolve` maps a name to a field or returns an error.
    pub fn parse(
        text: &str,
        resolve: &dyn Fn(&str) -> Result<Variable, String>,
    ) -> Result<Expression, ExpressionError> {
        if text.len() > EXPRESSION_BYTES_MAX {
            let what = format!("expression too long: at most {EXPRESSION_BYTES_MAX} bytes");
            return Err(ExpressionError { at: 0, what });
        }
        let mut parser = Parser { text, at: 0, depth: 0, resolve };
        let expression = parser.operation(0)?;
        match parser.peek() {
            (_, "") => Ok(expression),
            (at, word) => Err(ExpressionError { at, what: format!("unexpected \"{word}\"") }),
        }
    }

    /// Evaluates the expression with field values from `field`. Returns `None` if a field is absent
    /// or the computation has no result.
    pub fn value(&self, field: &impl Fn(Variable) -> Option<i64>) -> Option<i64> {
        match self {
            Expression::Number(number) => Some(*number),
            Expression::Field(variable, _) => field(*variable),
            Expression::Not(operand) => Some(i64::from(operand.value(field)? == 0)),
            Expression::Two(operator, a, b) => operator.apply(a.value(field)?, b.value(field)?),
        }
    }

    /// Returns bounds of the value, with field bounds from `field`. The bounds may be too wide but
    /// are never too narrow.
    pub fn range(&self, field: &impl Fn(Variable) -> (i64, i64)) -> (i64, i64) {
        let (operator, a, b) = match self {
            Expression::Number(number) => return (*number, *number),
            Expression::Field(variable, _) => return field(*variable),
            Expression::Not(_) => return (0, 1),
            Expression::Two(operator, a, b) => (operator, a.range(field), b.range(field)),
        };
        let corners = |of: fn(i128, i128) -> i128| {
            let [a, b] = [a, b].map(|(low, high)| [i128::from(low), i128::from(high)]);
            let all = [of(a[0], b[0]), of(a[0], b[1]), of(a[1], b[0]), of(a[1], b[1])];
            let fit = |value: i128| value.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            let low = all.into_iter().min().map_or(i64::MIN, fit);
            (low, all.into_iter().max().map_or(i64::MAX, fit))
        };
        match operator {
            Operator::Add => corners(|a, b| a + b),
            Operator::Sub => corners(|a, b| a - b),
            Operator::Mul => corners(|a, b| a * b),
            // The magnitude of a quotient does not exceed that of its dividend.
            Operator::Div if b.0 > 0 => corners(|a, b| a / b),
            Operator::Div => magnitude(a.0.unsigned_abs().max(a.1.unsigned_abs())),
            Operator::Rem => {
                let divisor = b.0.unsigned_abs().max(b.1.unsigned_abs()).saturating_sub(1);
                let most = divisor.min(a.0.unsigned_abs().max(a.1.unsigned_abs()));
                let (low, high) = magnitude(most);
                (if a.0 < 0 { low } else { 0 }, if a.1 > 0 { high } else { 0 })
            }
            _ => (0, 1),
        }
    }

    /// Returns `(field, factor, constant)` if the value is that field times the factor plus the
    /// constant.
    pub fn linear(&self) -> Option<(Variable, i64, i64)> {
        let (variable, factor, constant) = self.line()?;
        variable.filter(|_| factor != 0).map(|variable| (variable, factor, constant))
    }

    fn line(&self) -> Option<(Option<Variable>, i64, i64)> {
        match self {
            Expression::Number(number) => Some((None, 0, *number)),
            Expression::Field(variable, _) => Some((Some(*variable), 1, 0)),
            Expression::Two(operator @ (Operator::Add | Operator::Sub), a, b) => {
                let (a, b) = (a.line()?, b.line()?);
                let sign = if *operator == Operator::Add { 1 } else { -1 };
                if a.0.is_some() && b.0.is_some() && a.0 != b.0 {
                    return None;
                }
                let factor = a.1.checked_add(b.1.checked_mul(sign)?)?;
                Some((a.0.or(b.0), factor, a.2.checked_add(b.2.checked_mul(sign)?)?))
            }
            Expression::Two(Operator::Mul, a, b) => match (a.line()?, b.line()?) {
                ((variable, factor, constant), (None, _, by))
                | ((None, _, by), (variable, factor, constant)) => {
                    Some((variable, factor.checked_mul(by)?, constant.checked_mul(by)?))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Calls `each` for every field in the expression.
    pub fn fields(&self, each: &mut dyn FnMut(Variable)) {
        match self {
            Expression::Number(_) => {}
            Expression::Field(variable, _) => each(*variable),
            Expression::Not(operand) => operand.fields(each),
            Expression::Two(_, a, b) => {
                a.fields(each);
                b.fields(each);
            }
        }
    }

    fn show(&self, f: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        match self {
            Expression::Number(number) => write!(f, "{number}"),
            Expression::Field(_, name) => f.write_str(name),
            Expression::Not(operand) => {
                f.write_str("not ")?;
                operand.show(f, u8::MAX)
            }
            Expression::Two(operator, a, b) => {
                let (word, strength) = operator.row();
                if strength < outer {
                    f.write_str("(")?;
                }
                a.show(f, strength)?;
                write!(f, " {word} ")?;
                b.show(f, strength + 1)?;
                if strength < outer { f.write_str(")") } else { Ok(()) }
            }
        }
    }
}

/// Returns the range from minus to plus `most`.
fn magnitude(most: u64) -> (i64, i64) {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    (-most, most)
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, 0)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    resolve: &'a dyn Fn(&str) -> Result<Variable, String>,
}

impl<'a> Parser<'a> {
    /// Returns the next token and its position; empty at the end.
    fn peek(&self) -> (usize, &'a str) {
        let rest = &self.text[self.at..];
        let start = self.at + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !plain(c)).unwrap_or(rest.len());
        let sign = rest.chars().next().map_or(0, char::len_utf8);
        (start, &rest[..length.max(if length == 0 { sign } else { length })])
    }

    fn take(&mut self) -> (usize, &'a str) {
        let (at, word) = self.peek();
        self.at = at + word.len();
        (at, word)
    }

    fn operation(&mut self, least: u8) -> Result<Expression, ExpressionError> {
        let mut left = self.operand()?;
        loop {
            let (_, word) = self.peek();
            let row = OPERATORS.iter().find(|(_, name, _)| *name == word);
            let Some((operator, _, strength)) = row.filter(|(.., strength)| *strength >= least)
            else {
                return Ok(left);
            };
            self.take();
            let right = self.operation(strength + 1)?;
            left = Expression::Two(*operator, Box::new(left), Box::new(right));
        }
    }

    fn operand(&mut self) -> Result<Expression, ExpressionError> {
        let (at, word) = self.take();
        let fail = |what: String| Err(ExpressionError { at, what });
        if matches!(word, "(" | "not" | "-") {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return fail(format!("nesting too deep: at most {DEPTH_MAX} levels"));
            }
            let inside = match word {
                "(" => {
                    let inside = self.operation(0)?;
                    match self.take() {
                        (_, ")") => inside,
                        (at, _) => {
                            return Err(ExpressionError { at, what: "missing \")\"".into() });
                        }
                    }
                }
                "not" => Expression::Not(Box::new(self.operand()?)),
                _ => match self.operand()? {
                    Expression::Number(number) => Expression::Number(-number),
                    other => {
                        let zero = Box::new(Expression::Number(0));
                        Expression::Two(Operator::Sub, zero, Box::new(other))
                    }
                },
            };
            self.depth -= 1;
            return Ok(inside);
        }
        match word.chars().next() {
            None => fail("missing number or field name".into()),
            Some(first) if first.is_ascii_digit() => {
                match crate::xml::number(word).and_then(|number| i64::try_from(number).ok()) {
                    Some(number) => Ok(Expression::Number(number)),
                    None => fail(format!("\"{word}\" is not an integer")),
                }
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                if OPERATORS.iter().any(|(_, name, _)| *name == word) {
                    return fail(format!("missing operand before \"{word}\""));
                }
                match (self.resolve)(word) {
                    Ok(variable) => Ok(Expression::Field(variable, word.to_owned())),
                    Err(what) => fail(what),
                }
            }
            Some(_) => fail(format!("unexpected \"{word}\"")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(name: &str) -> Result<Variable, String> {
        match name {
            "a" => Ok(Variable::Item(0)),
            "b" => Ok(Variable::Item(1)),
            _ => Err(format!("no field \"{name}\"")),
        }
    }

    fn parse(text: &str) -> Expression {
        Expression::parse(text, &names).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn value(text: &str, a: i64, b: i64) -> Option<i64> {
        parse(text).value(&|variable| Some(if variable == Variable::Item(0) { a } else { b }))
    }

    #[test]
    fn operators_have_the_precedence_of_arithmetic() {
        assert_eq!(value("a*4-20", 5, 0), Some(0));
        assert_eq!(value("2 + 3 * (a - 1) % 4", 7, 0), Some(4));
        assert_eq!(value("a gt 1 and not b", 2, 0), Some(1));
        assert_eq!(value("a = 1 or b ne 2", 0, 2), Some(0));
        assert_eq!(value("10 - 3 - 2", 0, 0), Some(5));
        assert_eq!(value("-a + 0x10", 6, 0), Some(10));
        assert_eq!(value("a / b", 6, 0), None);
        assert_eq!(value("a * a", i64::MAX, 0), None);
    }

    #[test]
    fn an_invalid_expression_is_rejected_with_its_offset() {
        let at = |text: &str| Expression::parse(text, &names).expect_err(text).at;
        assert_eq!(at("a * c"), 4);
        assert_eq!(at("a +"), 3);
        assert_eq!(at("(a"), 2);
        assert_eq!(at("a b"), 2);
        assert_eq!(at("and a"), 0);
        assert_eq!(at("a $ b"), 2);
        assert_eq!(at(&"(".repeat(100)), DEPTH_MAX);
        assert_eq!(at(&"a".repeat(1000)), 0);
        assert_eq!(at("99999999999999999999"), 0);
    }

    #[test]
    fn a_length_expression_is_solved_for_its_field() {
        assert_eq!(parse("a*4-20").linear(), Some((Variable::Item(0), 4, -20)));
        assert_eq!(parse("40 + a").linear(), Some((Variable::Item(0), 1, 40)));
        assert_eq!(parse("a + b").linear(), None);
        assert_eq!(parse("a - a").linear(), None);
        assert_eq!(parse("a / 4").linear(), None);
    }

    fn expressions() -> impl Strategy<Value = Expression> {
        let leaf = prop_oneof![
            (0i64..100).prop_map(Expression::Number),
            Just(Expression::Field(Variable::Item(0), "a".into())),
            Just(Expression::Field(Variable::Item(1), "b".into())),
        ];
        leaf.prop_recursive(4, 32, 2, |inner| {
            let operators = (0..OPERATORS.len()).prop_map(|at| OPERATORS[at].0);
            prop_oneof![
                inner.clone().prop_map(|operand| Expression::Not(Box::new(operand))),
                (operators, inner.clone(), inner).prop_map(|(operator, a, b)| Expression::Two(
                    operator,
                    a.into(),
                    b.into()
                )),
            ]
        })
    }

    proptest! {
        #[test]
        fn formatted_expressions_parse_to_the_same_value(expression in expressions()) {
            let shown = expression.to_string();
            prop_assume!(shown.len() <= EXPRESSION_BYTES_MAX);
            prop_assert_eq!(Expression::parse(&shown, &names), Ok(expression));
        }

        #[test]
        fn values_are_within_the_computed_range(expression in expressions(), a in 0i64..256, b in -9i64..10) {
            let of = |variable| if variable == Variable::Item(0) { a } else { b };
            let all = |variable| if variable == Variable::Item(0) { (0, 255) } else { (-9, 9) };
            if let Some(value) = expression.value(&|variable| Some(of(variable))) {
                let (low, high) = expression.range(&all);
                prop_assert!((low..=high).contains(&value), "{value} not in {low}..{high}");
            }
        }

        #[test]
        fn any_text_is_parsed_or_rejected(text in "[ab0-9 ()*+/%=a-z-]{0,40}") {
            let _ = Expression::parse(&text, &names);
        }
    }
}
