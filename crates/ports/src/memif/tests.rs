//! Ports of ours with each other, and with peers that lie: a hostile end writes whatever it likes
//! into the shared memory, and ours must find it, count it, stay inside and let go.

mod hostile;
mod peers;
mod random;
