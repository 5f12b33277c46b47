//! A port with front ends that are correct, that send invalid data, and that write random data.

mod front;
mod hostile;
mod peers;
mod random;
