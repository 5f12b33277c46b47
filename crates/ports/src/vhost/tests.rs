mod front;
mod hostile;
mod peers;
mod random;
