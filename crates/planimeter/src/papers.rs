//! What the studies print and state, as data that comes with the program.
//!
//! The files and their sources are described in `papers/README.md`. Nothing in them was read off
//! a picture.

use results::claims;
use results::record::Claim;

/// What the studies' texts state.
const CLAIMS: &str = include_str!("papers/claims.csv");

/// The claims of all studies, or what is wrong with the file.
pub fn claims() -> Result<Vec<Claim>, String> {
    claims::parse(CLAIMS).map_err(|error| format!("papers/claims.csv, {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_claims_that_come_with_the_program_can_be_read() {
        let claims = claims().unwrap();
        let figures = ["fig2", "fig3", "fig4"];
        for item in figures {
            let found = claims.iter().any(|it| it.study == "bianco2010" && it.item == item);
            assert!(found, "no claim about {item}");
        }
    }
}
