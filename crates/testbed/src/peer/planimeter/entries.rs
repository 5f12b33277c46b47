//! Table entries in the format of the control socket.

use serde_json::{Value, json};

use crate::peer::{PortNeighbor, PortRoute, Station, TagRule, mac_text};

pub(super) fn station(station: &Station) -> Value {
    json!({ "mac": mac_text(station.mac), "port": station.port })
}

pub(super) fn neighbor(neighbor: &PortNeighbor) -> Value {
    let (address, mac) = (neighbor.address.to_string(), mac_text(neighbor.mac));
    json!({ "port": neighbor.port, "address": address, "mac": mac })
}

pub(super) fn route(route: &PortRoute) -> Value {
    let to = format!("{}/{}", route.prefix, route.length);
    json!({ "to": to, "via": route.via.to_string(), "port": route.port })
}

pub(super) fn rule(rule: &TagRule) -> Value {
    let mut asked = json!({ "vlan": rule.vlan, "priority": rule.priority });
    if let Some((first, last)) = rule.dscp {
        asked["dscp"] = json!([first, last]);
    }
    if let Some(port) = rule.udp_destination {
        asked["udp_destination"] = json!(port);
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_format_of_the_control_socket() {
        let to_ten = PortRoute {
            prefix: "10.0.0.0".parse().unwrap(),
            length: 8,
            via: "10.1.0.2".parse().unwrap(),
            port: 2,
        };
        let expected = json!({ "to": "10.0.0.0/8", "via": "10.1.0.2", "port": 2 });
        assert_eq!(route(&to_ten), expected);
        let behind = Station { mac: [2, 0, 0, 0, 0xab, 1], port: 1 };
        let expected = json!({ "mac": "02:00:00:00:ab:01", "port": 1 });
        assert_eq!(station(&behind), expected);
        let tag = TagRule { dscp: Some((40, 47)), udp_destination: None, vlan: 100, priority: 5 };
        assert_eq!(rule(&tag), json!({ "dscp": [40, 47], "vlan": 100, "priority": 5 }));
    }
}
