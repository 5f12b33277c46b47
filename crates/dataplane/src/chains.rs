//! Chained hash table of numbers, which never moves its contents.
//!
//! The heads are reserved at creation and committed on first use; links grow with the highest
//! number. So no change takes long, whereas a map of the standard library rehashes all keys when it
//! is full. Instead, chains become longer: there should be about as many heads as numbers.
//!
//! The caller interprets the numbers and passes their hashes.

/// A number's neighbors in its chain. All zero means that the number is in no chain.
#[derive(Debug, Clone, Copy, Default)]
struct Link {
    /// The next number plus one; 0 at the end.
    next: u32,
    /// The previous number plus two; 1 at the head.
    before: u32,
}

/// Numbers by hash.
#[derive(Debug)]
pub struct Chains {
    /// The first number of each chain plus one.
    heads: Vec<u32>,
    links: Vec<Link>,
    len: usize,
}

impl Chains {
    /// Creates a table without numbers. `heads` is rounded up to a power of two.
    pub fn new(heads: usize) -> Chains {
        Chains { heads: vec![0; heads.next_power_of_two()], links: Vec::new(), len: 0 }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of chains.
    pub fn count_heads(&self) -> usize {
        self.heads.len()
    }

    fn place(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.heads.len() - 1)
    }

    /// Adds a number below 2^31 that is not in the table.
    pub fn add(&mut self, number: u32, hash: u64) {
        let (at, place) = (number as usize, self.place(hash));
        if at >= self.links.len() {
            self.links.resize((at + 1).next_power_of_two(), Link::default());
        }
        let next = std::mem::replace(&mut self.heads[place], number + 1);
        if next != 0 {
            self.links[next as usize - 1].before = number + 2;
        }
        self.links[at] = Link { next, before: 1 };
        self.len += 1;
    }

    /// Removes a number. Returns false if it is not in the table.
    pub fn remove(&mut self, number: u32, hash: u64) -> bool {
        let link = self.links.get(number as usize).copied().unwrap_or_default();
        let place = self.place(hash);
        match link.before {
            0 => return false,
            1 => self.heads[place] = link.next,
            before => self.links[before as usize - 2].next = link.next,
        }
        if link.next != 0 {
            self.links[link.next as usize - 1].before = link.before;
        }
        self.links[number as usize] = Link::default();
        self.len -= 1;
        true
    }

    /// Returns the numbers in the chain of a hash, including numbers with other hashes.
    pub fn chain(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let mut next = self.heads[self.place(hash)];
        std::iter::from_fn(move || {
            let number = next.checked_sub(1)?;
            next = self.links[number as usize].next;
            Some(number)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hash::mix;
    use crate::rng::Rng;

    #[test]
    fn chains_have_the_contents_of_a_set() {
        let (mut dice, mut set, mut chains) = (Rng::new(1), BTreeSet::new(), Chains::new(60));
        let hash = |number: u32| mix(u64::from(number / 2), 3);
        for _ in 0..4000 {
            let number = dice.roll(300) as u32;
            match set.insert(number) {
                true => chains.add(number, hash(number)),
                false => {
                    set.remove(&number);
                    assert!(chains.remove(number, hash(number)));
                    assert!(!chains.remove(number, hash(number)));
                }
            }
            assert_eq!(chains.len(), set.len());
            let number = dice.roll(300) as u32;
            let found = chains.chain(hash(number)).filter(|&other| other == number).count();
            assert_eq!(found, usize::from(set.contains(&number)));
        }
    }
}
