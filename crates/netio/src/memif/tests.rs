//! Our ports with each other, and with peers that send invalid data. A hostile end writes any data
//! into the shared memory. The port must detect it, count it, stay inside its memory and
//! disconnect.

mod hostile;
mod peers;
mod random;
