//! A port between front ends that behave, that lie, and that write anything.

mod front;
mod hostile;
mod peers;
mod random;
