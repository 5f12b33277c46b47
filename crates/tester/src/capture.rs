//! Capture: filters and counts received frames and writes them to a capture file.
//!
//! - All frames are counted by protocol and size before the filter, and again if it keeps them.
//! - [`Capture::freeze`] reads all counters at one time, with no frame received in between.
//! - A frame has its timestamp with the clock that took it.
//! - A truncated frame can carry a checksum of the removed part ([`packet::capture::truncation`]).
//! - A failed port is reported and not polled again. The other ports continue and the file stays
//!   valid.

use std::collections::VecDeque;
use std::io::Write;

use netio::capture::{CaptureError, CaptureOptions, CaptureWriter, Format};
use netio::port::{Port, PortCounters, PortDrop, PortError};
use os::clock::RealtimeLine;
use packet::batch_copy::Copies;
use packet::capture::Statistics;
use packet::capture::truncation::Cut;
use packet::capture::write::{Frame, FrameNotes};
use packet::filter::{Counts, Entry, Filter, TooMany};
use packet::time::{Clock, Nanos, Stamp};
use packet::traffic::{Class, Count, Traffic};

/// Maximum number of frames per receive call.
const RECEIVE_FRAMES: usize = 64;

/// Parameters of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// File format.
    pub format: Format,
    /// Maximum number of bytes to store of each frame.
    pub snap_bytes: usize,
    /// Whether to store a checksum of the truncated part (pcapng only).
    pub sums: bool,
    /// Maximum number of frames to write.
    pub frames_max: u64,
    /// File size in bytes from which no further frame is written.
    pub bytes_max: u64,
    /// Comment on the whole file (pcapng only).
    pub comment: Option<String>,
}

/// A capture in progress.
pub struct Capture<W: Write> {
    capture_ports: Vec<CapturePort>,
    filter: Filter,
    settings: Settings,
    file: Option<CaptureWriter<W>>,
    frames_written: u64,
    /// End offsets of written frames that the output may not have taken yet.
    waiting: VecDeque<u64>,
    /// Frames that passed the filter when the file was already full.
    frames_late: u64,
    received: Copies,
    line: RealtimeLine,
    begun: Nanos,
}

/// A port of the capture.
struct CapturePort {
    port: Box<dyn Port>,
    arrived: Traffic,
    captured: Traffic,
    written: u64,
    failure: Option<PortError>,
    before: PortCounters,
}

/// All counters at one time.
#[derive(Debug, Clone)]
pub struct CaptureSnapshot {
    /// Time of the counters, on the monotonic clock.
    pub at: Nanos,
    /// Counters by port.
    pub ports: Vec<PortFrozen>,
    /// Counters of the filter.
    pub filter: Counts,
    /// Frames in the file.
    pub frames_written: u64,
    /// Frames that passed the filter when the file was already full.
    pub frames_late: u64,
    /// Size of the file in bytes.
    pub file_bytes: u64,
}

/// Counters of one port.
#[derive(Debug, Clone)]
pub struct PortFrozen {
    /// Name of the port.
    pub name: String,
    /// Kind of the port.
    pub kind: &'static str,
    /// Clock that stamps its frames.
    pub stamps: Clock,
    /// Frames that the filter dropped at the entry to the host, on ports that support it. The
    /// port's other counters do not include them.
    pub kernel_filter_counters: Count,
    /// Received frames.
    pub arrived: Traffic,
    /// Received frames that passed the filter.
    pub captured: Traffic,
    /// Counters of the port itself and of the kernel.
    pub counters: PortCounters,
    /// Error of a failed port.
    pub failure: Option<String>,
}

impl<W: Write> Capture<W> {
    /// Creates a capture at these ports (at least one), into `output` if given.
    ///
    /// The filter keeps nothing until entries are loaded.
    pub fn new(
        ports: Vec<Box<dyn Port>>,
        settings: Settings,
        output: Option<W>,
    ) -> Result<Self, CaptureError> {
        let capture_port = |mut port: Box<dyn Port>| CapturePort {
            before: port.counters(),
            port,
            arrived: Traffic::new(),
            captured: Traffic::new(),
            written: 0,
            failure: None,
        };
        let capture_ports: Vec<CapturePort> = ports.into_iter().map(capture_port).collect();
        let mut described = capture_ports
            .iter()
            .map(|capture_port| described(capture_port.port.as_ref(), &settings));
        let file = match (output, described.next()) {
            (Some(output), Some(first)) => {
                let mut file = CaptureWriter::new(output, &first)?;
                for other in described {
                    file.add_interface(&other)?;
                }
                Some(file)
            }
            _ => None,
        };
        let mut line = RealtimeLine::measure();
        let now = os::clock::now();
        Ok(Capture {
            begun: line.since_1970(now, now),
            capture_ports,
            filter: Filter::closed(),
            settings,
            file,
            frames_written: 0,
            waiting: VecDeque::new(),
            frames_late: 0,
            received: Copies::new(RECEIVE_FRAMES),
            line,
        })
    }

    /// Receives at most one batch from each port. Returns the number of frames.
    ///
    /// Fails if the file cannot be written.
    pub fn step(&mut self, now: Nanos) -> Result<usize, CaptureError> {
        let mut count = 0;
        for index in 0..self.capture_ports.len() {
            let capture_port = &mut self.capture_ports[index];
            if capture_port.failure.is_some() {
                continue;
            }
            match capture_port.port.receive_copies(&mut self.received, now) {
                Ok(0) => {}
                Ok(some) => {
                    count += some;
                    self.sort(index, now)?;
                }
                Err(error) => capture_port.failure = Some(error),
            }
        }
        Ok(count)
    }

    fn sort(&mut self, index: usize, now: Nanos) -> Result<(), CaptureError> {
        for place in 0..self.received.len() {
            let bytes = self.received.frame(place);
            let class = Class::of(bytes, bytes.len());
            self.capture_ports[index].arrived.add_alike(class, 1);
            if self.filter.keeps(bytes) {
                self.capture_ports[index].captured.add_alike(class, 1);
                self.keep(index, place, now)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, index: usize, place: usize, now: Nanos) -> Result<(), CaptureError> {
        let is_full = self.is_full();
        let Some(file) = &mut self.file else { return Ok(()) };
        if is_full {
            self.frames_late += 1;
            return Ok(());
        }
        let bytes = self.received.frame(place);
        let late = Stamp { at: now, clock: Clock::UserSpace };
        let Stamp { at, clock } = self.received.stamp(place).unwrap_or(late);
        let at = match clock {
            Clock::File => at,
            _ => self.line.since_1970(at, now),
        };
        let (kept, cut) = bytes.split_at(bytes.len().min(self.settings.snap_bytes));
        let capture_port = &mut self.capture_ports[index];
        // The interface's comment names the source of all other timestamps.
        let comment = (clock != capture_port.port.facts().stamps).then(|| stamp_remark(clock));
        let notes = FrameNotes {
            comment: comment.as_deref(),
            cut: (self.settings.sums && !cut.is_empty()).then(|| Cut::of(cut)),
            ..FrameNotes::default()
        };
        let original_bytes = bytes.len() as u32;
        file.write(&Frame { interface: index as u32, at, bytes: kept, original_bytes, notes })?;
        capture_port.written += 1;
        self.frames_written += 1;
        self.waiting.push_back(file.bytes());
        let taken = file.bytes_taken();
        while self.waiting.front().is_some_and(|end| *end <= taken) {
            self.waiting.pop_front();
        }
        Ok(())
    }

    /// Returns whether the file is full.
    pub fn is_full(&self) -> bool {
        let bytes = self.file.as_ref().map_or(0, CaptureWriter::bytes);
        self.file.is_some()
            && (self.frames_written >= self.settings.frames_max || bytes >= self.settings.bytes_max)
    }

    /// Returns the number of frames that passed the filter.
    pub fn frames_captured(&self) -> u64 {
        self.filter.counts().captured
    }

    /// Returns whether every port has failed or ended.
    pub fn is_over(&self) -> bool {
        self.capture_ports
            .iter()
            .all(|capture_port| capture_port.failure.is_some() || capture_port.port.is_over())
    }

    /// Returns the working ports, to wait for.
    pub fn working(&self) -> impl Iterator<Item = &dyn Port> {
        self.capture_ports
            .iter()
            .filter(|capture_port| capture_port.failure.is_none())
            .map(|capture_port| capture_port.port.as_ref() as _)
    }

    /// Loads the filter's entries. Ports that can drop frames themselves do so from then on.
    pub fn load(&mut self, entries: &[Entry]) -> Result<(), TooMany> {
        self.filter.load(entries.to_vec())?;
        for capture_port in &mut self.capture_ports {
            capture_port.port.install_kernel_filter(entries);
        }
        Ok(())
    }

    /// Reads all counters.
    pub fn freeze(&mut self, now: Nanos) -> CaptureSnapshot {
        let mut filter = self.filter.counts().clone();
        let ports = self
            .capture_ports
            .iter_mut()
            .map(|capture_port| capture_port.freeze(&mut filter))
            .collect();
        CaptureSnapshot {
            at: now,
            ports,
            filter,
            frames_written: self.frames_written,
            frames_late: self.frames_late,
            file_bytes: self.file.as_ref().map_or(0, CaptureWriter::bytes),
        }
    }

    /// Writes the ports' counters to the file, and returns the final counters and the output.
    ///
    /// Frames that the output did not take before an error do not count as written.
    pub fn finish(mut self, now: Nanos) -> (CaptureSnapshot, Result<Option<W>, CaptureError>) {
        let mut frozen = self.freeze(now);
        let Some(mut file) = self.file else { return (frozen, Ok(None)) };
        let ended_at = self.line.since_1970(now, now);
        let mut ended = Ok(());
        for (place, (capture_port, port)) in
            self.capture_ports.iter().zip(&frozen.ports).enumerate()
        {
            let lost: u64 = port.counters.drops.iter().map(|(_, frames)| frames).sum();
            let counted = Statistics {
                interface: place as u32,
                at: Some(ended_at),
                started_at: Some(self.begun),
                ended_at: Some(ended_at),
                received: Some(port.counters.rx_frames + lost + port.kernel_filter_counters.frames),
                dropped: None,
                accepted: Some(port.captured.total.frames),
                dropped_by_system: Some(port.counters.lost(PortDrop::ReceiveRingFull)),
                delivered: Some(capture_port.written),
            };
            ended = ended.and_then(|()| file.statistics(&counted));
        }
        if let Err(error) = ended.and_then(|()| file.flush()) {
            let taken = file.bytes_taken();
            frozen.frames_written -= self.waiting.iter().filter(|end| **end > taken).count() as u64;
            frozen.file_bytes = taken;
            return (frozen, Err(error));
        }
        frozen.file_bytes = file.bytes();
        (frozen, file.finish(None).map(Some))
    }
}

impl CapturePort {
    /// Reads this port's counters, and adds the frames it dropped itself to the filter's counts.
    fn freeze(&mut self, decided: &mut Counts) -> PortFrozen {
        let counts = self.port.kernel_filter_counters();
        let mut kernel_filter_counters = Count::default();
        counts.iter().for_each(|count| kernel_filter_counters.add(count.frames, count.bytes));
        if let Some((unmatched, by_entry)) = counts.split_last() {
            decided.unmatched += unmatched.frames;
            for (hits, count) in decided.hits.iter_mut().zip(by_entry) {
                *hits += count.frames;
                decided.dropped += count.frames;
            }
        }
        let facts = self.port.facts();
        PortFrozen {
            kernel_filter_counters,
            name: facts.name.clone(),
            kind: facts.kind,
            stamps: facts.stamps,
            arrived: self.arrived.clone(),
            captured: self.captured.clone(),
            failure: self.failure.as_ref().map(PortError::to_string),
            counters: self.port.counters().since(&self.before),
        }
    }
}

fn described(port: &dyn Port, settings: &Settings) -> CaptureOptions {
    let facts = port.facts();
    CaptureOptions {
        format: settings.format,
        mac: (facts.mac != [0; 6]).then_some(facts.mac),
        interface_comment: Some(stamp_remark(facts.stamps)),
        comment: settings.comment.clone(),
        snap_bytes: settings.snap_bytes,
        ..CaptureOptions::pcapng(&facts.name)
    }
}

fn stamp_remark(clock: Clock) -> String {
    format!("stamps by {}", clock.name())
}

#[cfg(test)]
mod tests;
