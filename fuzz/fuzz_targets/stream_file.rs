//! Parses any text as a stream file. The result is a list of streams and replays, or a one-line
//! error. Valid streams have complete frames and rising send times.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packet::time::Nanos;
use tester::generator::schedule::Schedule;
use tester::generator::templates::Templates;
use tester::signature::{SendTime, Sequence};
use tester::stream::Stream;
use tester::stream::file::{read, read_all};

/// Frame numbers to check.
const NUMBERS: [u64; 5] = [0, 1, 2, 1023, 1024];

/// Maximum number of streams whose frames are built: more would be slow and find nothing new.
const STREAMS_MAX: usize = 4;

fuzz_target!(|text: &str| {
    match read_all(text, 2) {
        Ok(contents) => {
            assert!(contents.streams.iter().all(|stream| stream.validate().is_empty()));
            assert!(contents.replays.iter().all(|replay| replay.validate(2).is_empty()));
            assert_eq!(read(text, 2).is_ok(), contents.replays.is_empty());
            contents.streams.iter().take(STREAMS_MAX).for_each(send);
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});

/// Builds frames of a stream and their send times.
fn send(stream: &Stream) {
    let [leaving, arriving] = Templates::both(stream, 7);
    let second = Nanos::from_secs(1);
    let schedule = Schedule::of(stream, Nanos(5), Nanos::ZERO, second, false);
    let mut last = Nanos::ZERO;
    for number in NUMBERS {
        for templates in [&leaving, &arriving] {
            let template = templates.of(number);
            let (mut indices, mut frame) = (Vec::new(), template.bytes().to_vec());
            template.draw(number, &mut indices);
            let sequence = Sequence { is_warmup: false, epoch: 1, number };
            template.write(sequence, SendTime::new(Nanos(9)), &indices, &mut frame);
            assert!(template.matches(template.signature_at(), &indices, &frame));
        }
        let cursor = schedule.seek(number);
        assert!(cursor.due >= last);
        last = cursor.due;
        if number < schedule.count {
            assert!(cursor.due < Nanos(5) + second && schedule.due(cursor.due) > number);
        }
        assert_eq!(schedule.after(cursor), schedule.seek(number + 1));
    }
}
