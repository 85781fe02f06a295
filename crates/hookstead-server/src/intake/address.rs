//! The text of an address, for what is kept with an event.

use std::net::{IpAddr, Ipv4Addr};

/// Bytes of the longest IPv4 address.
const V4_BYTES_MAX: usize = 15;

/// An address as people write it. IPv4 in an IPv6 address is IPv4.
pub(crate) fn text(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => address.to_string(),
    }
}

/// Nearly every address; without the general way of writing numbers it takes a tenth of the instructions.
fn v4(address: Ipv4Addr) -> String {
    let mut text = String::with_capacity(V4_BYTES_MAX);
    for (index, number) in address.octets().into_iter().enumerate() {
        if index > 0 {
            text.push('.');
        }
        if number >= 100 {
            text.push(digit(number / 100));
        }
        if number >= 10 {
            text.push(digit(number / 10 % 10));
        }
        text.push(digit(number % 10));
    }
    text
}

fn digit(value: u8) -> char {
    char::from(b'0' + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_everywhere() {
        for number in 0..=u8::MAX {
            let address = Ipv4Addr::new(number, 255 - number, number.rotate_left(4), 0);
            assert_eq!(v4(address), address.to_string());
        }
        for (address, expected) in [("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::1")] {
            assert_eq!(text(address.parse().unwrap()), expected);
        }
    }
}
