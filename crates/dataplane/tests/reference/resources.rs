//! Groups, meters and links of both switches: drawn, added and changed.

use dataplane::action::Action;
use dataplane::group::{BucketPlace, BucketSpec, GroupKind, GroupSpec};
use dataplane::meter::{Band, BandKind, CONTROLLER, MeterSpec, Unit};
use packet::frame::PortNo;

use crate::draw::{self, Place};
use crate::group::{Bucket, Group};
use crate::meter::Meter;
use crate::pair::{PORTS, Pair};

impl Pair {
    /// Adds all groups and meters that entries may use, and sometimes the controller's meter.
    pub fn add_resources(&mut self) {
        self.naive.groups.up = PORTS.into();
        for number in 1..=self.scene.groups {
            let group = self.group(number);
            self.pipeline.add_group(spec(number, &group), self.now).unwrap();
            self.naive.groups.groups.insert(number, group);
        }
        let controllers = (self.dice.roll(3) == 0).then_some(CONTROLLER);
        for number in (1..=self.scene.meters).chain(controllers) {
            let meter = self.meter(number);
            self.pipeline.add_meter(meter.clone(), self.now).unwrap();
            self.naive.meters.insert(number, Meter::new(meter, self.now));
        }
    }

    fn group(&mut self, number: u32) -> Group {
        let kinds = [GroupKind::All, GroupKind::Select, GroupKind::Select, GroupKind::FastFailover];
        let kind =
            if self.dice.roll(6) == 0 { GroupKind::Indirect } else { self.dice.pick(&kinds) };
        let count = if kind == GroupKind::Indirect { 1 } else { self.dice.roll(4) };
        let mut buckets: Vec<_> = (0..count).map(|_| self.draw_bucket(number, kind)).collect();
        if let Some(first) = buckets.first_mut().filter(|_| kind == GroupKind::Select) {
            // Several buckets need at least one weight.
            first.weight = first.weight.max(1);
        }
        Group { kind, buckets }
    }

    fn draw_bucket(&mut self, number: u32, kind: GroupKind) -> Bucket {
        let dice = &mut self.dice;
        let lower: Vec<u32> = (1..number).filter(|at| self.watched[*at as usize]).collect();
        let watches = kind == GroupKind::FastFailover || self.watched[number as usize];
        let group = watches && !lower.is_empty() && dice.roll(3) == 0;
        let port = watches && (!group || dice.roll(3) == 0);
        self.bucket += 1;
        Bucket {
            id: self.bucket,
            weight: if kind == GroupKind::Select { dice.pick(&[1, 1, 2, 5, 0]) } else { 0 },
            watch_port: port.then(|| dice.pick(&PORTS)),
            watch_group: group.then(|| dice.pick(&lower)),
            actions: draw::set(dice, &self.scene, Place::Bucket(number)),
        }
    }

    /// Sends many flows through a select group while buckets are removed or fail.
    pub fn flows_stay(&mut self, place: &str) {
        for port in PORTS {
            self.set_link(port, true);
        }
        let number = self.scene.groups;
        let mut bucket = |port| {
            self.bucket += 1;
            let weight = self.dice.pick(&[1, 2, 3]);
            let actions = vec![Action::Output { port: self.dice.pick(&[port, 1]) }];
            Bucket { id: self.bucket, weight, watch_port: Some(port), watch_group: None, actions }
        };
        let group = Group { kind: GroupKind::Select, buckets: PORTS.map(&mut bucket).into() };
        let before = self.naive.groups.clone();
        self.pipeline.modify_group(spec(number, &group)).unwrap();
        self.naive.groups.groups.insert(number, group);
        self.choices.settle(&before, &self.naive.groups, true);
        self.add_first(61, number);
        self.scene.frames = (0..20).map(|_| draw::frame(&mut self.dice)).collect();
        for _ in 0..2 {
            self.traffic(place);
            self.traffic(place);
            if self.dice.roll(2) == 0 {
                let buckets = self.naive.groups.groups[&number].buckets.len();
                let at = self.dice.roll(buckets as u64) as usize;
                self.remove_bucket(number, at);
            } else {
                let port = self.dice.pick(&PORTS);
                self.set_link(port, false);
            }
        }
        self.traffic(place);
        self.traffic(place);
    }

    fn remove_bucket(&mut self, number: u32, at: usize) {
        let before = self.naive.groups.clone();
        let group = self.naive.groups.groups.get_mut(&number).expect("the group is there");
        let gone = group.buckets.remove(at);
        self.pipeline.remove_buckets(number, BucketPlace::Id(gone.id)).unwrap();
        self.stayed += self.choices.settle(&before, &self.naive.groups, false);
    }

    /// Replaces a group, or adds or removes a bucket.
    pub fn change_group(&mut self) {
        let number = 1 + self.dice.roll(self.scene.groups.into()) as u32;
        let before = self.naive.groups.clone();
        let old = &before.groups[&number];
        let fixed = old.kind == GroupKind::Indirect;
        let mut group = old.clone();
        match self.dice.roll(4) {
            0 | 1 if !fixed && !old.buckets.is_empty() => {
                let at = self.dice.roll(old.buckets.len() as u64) as usize;
                let others = old.buckets.iter().enumerate().filter(|(place, _)| *place != at);
                let weightless = others.clone().all(|(_, bucket)| bucket.weight == 0);
                if old.kind != GroupKind::Select || others.count() < 2 || !weightless {
                    return self.remove_bucket(number, at);
                }
            }
            2 if !fixed => {
                let mut bucket = self.draw_bucket(number, old.kind);
                if old.kind == GroupKind::Select && old.buckets.iter().all(|it| it.weight == 0) {
                    bucket.weight = bucket.weight.max(1);
                }
                let more = vec![bucket_spec(&bucket)];
                let first = self.dice.roll(2) == 0;
                let place = if first { BucketPlace::First } else { BucketPlace::Last };
                self.pipeline.insert_buckets(number, place, more).unwrap();
                group.buckets.insert(if first { 0 } else { group.buckets.len() }, bucket);
            }
            _ => {
                group = self.group(number);
                self.pipeline.modify_group(spec(number, &group)).unwrap();
            }
        }
        self.naive.groups.groups.insert(number, group);
        self.choices.settle(&before, &self.naive.groups, true);
    }

    /// Changes the state of a link.
    pub fn change_link(&mut self) {
        let port = self.dice.pick(&PORTS);
        self.set_link(port, !self.naive.groups.up.contains(&port));
    }

    fn set_link(&mut self, port: PortNo, up: bool) {
        let before = self.naive.groups.clone();
        self.pipeline.set_link(port, up);
        if up {
            self.naive.groups.up.insert(port);
        } else {
            self.naive.groups.up.remove(&port);
        }
        self.stayed += self.choices.settle(&before, &self.naive.groups, up);
    }

    /// Draws bands with bursts so large that slack has no effect.
    fn meter(&mut self, number: u32) -> MeterSpec {
        let dice = &mut self.dice;
        let unit = dice.pick(&[Unit::Kilobits, Unit::Packets]);
        let mut rates: Vec<u32> = (0..1 + dice.roll(3)).map(|_| 1 + dice.roll(90) as u32).collect();
        rates.sort_unstable();
        rates.dedup();
        if dice.roll(2) == 0 {
            rates.reverse();
        }
        let band = |rate| {
            let levels = 1 + dice.roll(2) as u8;
            let kind = dice.pick(&[BandKind::Drop, BandKind::DscpRemark { levels }]);
            let least = if unit == Unit::Packets { 2 } else { 8 };
            Band { kind, rate, burst: least + dice.roll(8) as u32 }
        };
        let bands = rates.into_iter().map(band).collect();
        MeterSpec { number, unit, burst: true, stats: true, bands }
    }

    /// Replaces the bands of a meter.
    pub fn change_meter(&mut self) {
        let number = 1 + self.dice.roll(self.scene.meters.into()) as u32;
        let spec = self.meter(number);
        self.pipeline.modify_meter(spec.clone(), self.now).unwrap();
        let mut meter = Meter::new(spec, self.now);
        meter.traffic = self.naive.meters[&number].traffic;
        self.naive.meters.insert(number, meter);
    }
}

fn spec(number: u32, group: &Group) -> GroupSpec {
    GroupSpec { number, kind: group.kind, buckets: group.buckets.iter().map(bucket_spec).collect() }
}

fn bucket_spec(bucket: &Bucket) -> BucketSpec {
    BucketSpec {
        watch_port: bucket.watch_port,
        watch_group: bucket.watch_group,
        ..BucketSpec::new(bucket.id, bucket.weight, &bucket.actions)
    }
}
