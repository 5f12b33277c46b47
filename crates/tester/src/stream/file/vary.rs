//! Varying fields in a stream file.

use serde::Deserialize;

use super::literal::Literal;
use crate::stream::{
    Field, FieldVariation, Headers, IndexOrder, LIST_VALUES_MAX, Problem, Values, Weights,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VaryEntry {
    count: Option<u64>,
    order: Option<OrderEntry>,
    every: Option<u64>,
    weights: Option<Vec<f64>>,
    seed: Option<u64>,
    mac_source: Option<ValuesEntry>,
    mac_destination: Option<ValuesEntry>,
    vlan_id: Option<ValuesEntry>,
    vlan_tag: Option<ValuesEntry>,
    vlan_inner_id: Option<ValuesEntry>,
    mpls_label: Option<ValuesEntry>,
    tos: Option<ValuesEntry>,
    ip_protocol: Option<ValuesEntry>,
    ip_source: Option<ValuesEntry>,
    ip_destination: Option<ValuesEntry>,
    flow_label: Option<ValuesEntry>,
    ipv6_source: Option<ValuesEntry>,
    ipv6_destination: Option<ValuesEntry>,
    port_source: Option<ValuesEntry>,
    port_destination: Option<ValuesEntry>,
}

#[derive(Deserialize, Clone, Copy, PartialEq)]
#[serde(rename_all = "snake_case")]
enum OrderEntry {
    Sequential,
    Odometer,
    Random,
    Zipf,
    Weighted,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValuesEntry {
    list: Option<Vec<Literal>>,
    first: Option<Literal>,
    last: Option<Literal>,
    step: Option<u64>,
    scattered: Option<u64>,
}

/// Converts the groups of a stream with these headers.
pub fn groups(
    entries: Vec<VaryEntry>,
    headers: &Headers,
    problems: &mut Vec<Problem>,
) -> Vec<FieldVariation> {
    // Number of frames after which the odometer's next wheel advances.
    let mut round = 1u64;
    let mut groups = Vec::new();
    for entry in entries {
        let is_wheel = entry.order == Some(OrderEntry::Odometer);
        let group = entry.vary(round, headers, problems);
        if is_wheel {
            round = round.saturating_mul(group.count.max(1));
        }
        groups.push(group);
    }
    groups
}

impl VaryEntry {
    fn vary(
        mut self,
        round: u64,
        headers: &Headers,
        problems: &mut Vec<Problem>,
    ) -> FieldVariation {
        let listed = [
            (Field::MacSource, self.mac_source.take()),
            (Field::MacDestination, self.mac_destination.take()),
            (Field::VlanId, self.vlan_id.take()),
            (Field::VlanTag, self.vlan_tag.take()),
            (Field::VlanInnerId, self.vlan_inner_id.take()),
            (Field::MplsLabel, self.mpls_label.take()),
            (Field::Tos, self.tos.take()),
            (Field::IpProtocol, self.ip_protocol.take()),
            (Field::IpSource, self.ip_source.take()),
            (Field::IpDestination, self.ip_destination.take()),
            (Field::FlowLabel, self.flow_label.take()),
            (Field::Ipv6Source, self.ipv6_source.take()),
            (Field::Ipv6Destination, self.ipv6_destination.take()),
            (Field::PortSource, self.port_source.take()),
            (Field::PortDestination, self.port_destination.take()),
        ];
        let (mut fields, mut told) = (Vec::new(), None);
        for (field, entry) in listed {
            if let Some(entry) = entry {
                told = told.or(entry.count(field, problems));
                fields.push((field, entry.values(field, headers, problems)));
            }
        }
        told = told.or(self.weights.as_ref().map(|weights| weights.len() as u64));
        let count = self.count.or(told).unwrap_or_else(|| {
            problems.push(Problem::MissingKey("count"));
            1
        });
        let order = self.order(round, problems);
        FieldVariation { count, order, fields }
    }

    fn order(&self, round: u64, problems: &mut Vec<Problem>) -> IndexOrder {
        let seed = self.seed.unwrap_or(0);
        let usual =
            if self.weights.is_some() { OrderEntry::Weighted } else { OrderEntry::Sequential };
        let order = self.order.unwrap_or(usual);
        if self.every.is_some() && order != OrderEntry::Sequential {
            problems.push(Problem::Contradiction("every", "order"));
        }
        if self.weights.is_some() && order != OrderEntry::Weighted {
            problems.push(Problem::Contradiction("weights", "order"));
        }
        match order {
            OrderEntry::Sequential => match self.every {
                None | Some(1) => IndexOrder::Sequential,
                Some(frames) => IndexOrder::Slow { frames },
            },
            OrderEntry::Odometer if round == 1 => IndexOrder::Sequential,
            OrderEntry::Odometer => IndexOrder::Slow { frames: round },
            OrderEntry::Random => IndexOrder::Random { seed },
            OrderEntry::Zipf => IndexOrder::Zipf { seed },
            OrderEntry::Weighted => {
                let Some(given) = &self.weights else {
                    problems.push(Problem::MissingKey("weights"));
                    return IndexOrder::Sequential;
                };
                match Weights::new(given) {
                    Some(weights) => IndexOrder::Weighted { seed, weights },
                    None => {
                        problems.push(Problem::BadWeights);
                        IndexOrder::Sequential
                    }
                }
            }
        }
    }
}

impl ValuesEntry {
    /// Returns the number of values, if this entry determines it.
    fn count(&self, field: Field, problems: &mut Vec<Problem>) -> Option<u64> {
        match (&self.list, self.first, self.last) {
            (Some(list), ..) => Some(list.len() as u64),
            (None, Some(first), Some(last)) => {
                let steps = last.value.checked_sub(first.value);
                let count =
                    steps.and_then(|span| (span / self.step.unwrap_or(1).max(1)).checked_add(1));
                if count.is_none() {
                    problems.push(Problem::BadValue { field, value: last.value });
                }
                count
            }
            _ => None,
        }
    }

    fn values(self, field: Field, headers: &Headers, problems: &mut Vec<Problem>) -> Values {
        let mut literal = |literal: Literal| {
            if !literal.suits(field, headers) {
                problems.push(Problem::BadValue { field, value: literal.value });
            }
            literal.value
        };
        self.last.map(&mut literal);
        if self.last.is_some() && self.first.is_none() {
            problems.push(Problem::MissingKey("first"));
            return Values::Scattered { seed: 0 };
        }
        match (self.list, self.first, self.scattered) {
            (Some(list), None, None) => {
                Values::List(list.into_iter().take(LIST_VALUES_MAX + 1).map(literal).collect())
            }
            (None, Some(first), None) => {
                Values::Range { first: literal(first), step: self.step.unwrap_or(1) }
            }
            (None, None, Some(seed)) => Values::Scattered { seed },
            (list, first, _) => {
                problems.push(match (list, first) {
                    (None, None) => Problem::MissingKey("list, first or scattered"),
                    (Some(_), Some(_)) => Problem::Contradiction("list", "first"),
                    (Some(_), None) => Problem::Contradiction("list", "scattered"),
                    (None, Some(_)) => Problem::Contradiction("first", "scattered"),
                });
                Values::Scattered { seed: 0 }
            }
        }
    }
}
