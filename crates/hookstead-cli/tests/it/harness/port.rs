//! Ports that are kept while nothing listens at them. A port that was bound and given back can be anybody's a moment
//! later, in a program with hundreds of tests; one that a socket holds is given to nobody else.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};

use socket2::{Domain, Socket, Type};

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: i32 = 128;

/// A port on loopback at which nothing listens: who connects is refused at once.
pub(crate) struct ClosedPort(Socket);

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&any_port().into()).expect("a port");
        Self(socket)
    }

    /// The number of the port.
    pub(crate) fn number(&self) -> u16 {
        address_of(&self.0).port()
    }

    /// From now on, connections are taken.
    pub(crate) fn listen(self) -> TcpListener {
        self.0.listen(BACKLOG).expect("it can listen");
        self.0.into()
    }
}

/// An address on loopback that a server may come back to: kept for whoever asks for this very port.
pub(crate) struct KeptAddress(Socket);

impl KeptAddress {
    pub(crate) fn new() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        // The server says the same of its socket. The kernel then lets it have the port beside this one, which never
        // listens, and still gives it to nobody who asks for any.
        socket.set_reuse_address(true).expect("a socket option");
        socket.bind(&any_port().into()).expect("a port");
        Self(socket)
    }

    /// Host and port.
    pub(crate) fn address(&self) -> String {
        address_of(&self.0).to_string()
    }
}

fn any_port() -> SocketAddr {
    SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0).into()
}

fn address_of(socket: &Socket) -> SocketAddr {
    let address = socket.local_addr().expect("a bound socket has an address");
    address.as_socket().expect("an address of IP")
}
