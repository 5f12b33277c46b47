//! Claims files, and verdicts on runs whose truth is known.

use super::*;

#[test]
fn rows_are_read_or_refused_with_their_line() {
    const HEADER: &str = "study,item,subject,condition,claim,value,unit,relation\n";
    let read = |row: &str| parse(&format!("{HEADER}{row}"));
    let claims = read("s,fig2,\"a, b\",\"\"\"c\"\"\",is,40,percent,about\r\n").unwrap();
    assert_eq!((claims[0].subject.as_str(), claims[0].condition.as_str()), ("a, b", "\"c\""));
    assert_eq!(read("a,b,c"), Err(ClaimsError::Fields { line: 2, have: 3 }));
    assert_eq!(read("\na,\"b"), Err(ClaimsError::OpenQuote { line: 3 }));
    let odd = ClaimsError::Relation { line: 2, have: "maybe".into() };
    assert_eq!(read("a,b,c,d,e,f,g,maybe"), Err(odd));
    assert_eq!(parse("a,b"), Err(ClaimsError::Header));
}
