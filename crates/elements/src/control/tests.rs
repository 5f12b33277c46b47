//! Tests with well-behaved and misbehaving clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::*;
use crate::budget::MESSAGE_STEPS;

/// Budget steps of one turn: 256 entries.
const STEPS: u64 = 256 * MESSAGE_STEPS as u64;

/// A socket in a temporary folder, which is removed on drop.
struct Rig {
    folder: PathBuf,
    control: Control,
    asked: usize,
}

impl Rig {
    fn new(name: &str) -> Rig {
        let folder = std::env::temp_dir().join(format!("switch-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Rig { control: Control::open(&folder.join("c")).unwrap(), folder, asked: 0 }
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("c")).unwrap()
    }

    /// Replies to every request with its content.
    fn turn(&mut self) -> usize {
        let asked = &mut self.asked;
        self.control.turn(Budget::of_steps(STEPS), &mut |task, _| {
            TaskOutcome::Done(match task.into_request() {
                Request::Get(what) => Ok(json!(format!("{what:?}"))),
                Request::AddRoutes(routes) => Ok(json!(routes.len())),
                Request::Watch(_) => Ok(json!(1)),
                // This request is done at its third processing.
                Request::Check(document) if *asked < 2 => {
                    *asked += 1;
                    return TaskOutcome::Later(Task::Whole(Request::Check(document)));
                }
                Request::Check(document) => Ok(json!(document.text)),
                other => Err(format!("no {other:?}")),
            })
        })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn ask(rig: &mut Rig, client: &mut UnixStream, text: &str) -> String {
    client.write_all(text.as_bytes()).unwrap();
    rig.turn();
    let mut line = String::new();
    BufReader::new(client).read_line(&mut line).unwrap();
    line
}

#[test]
fn requests_are_answered_in_order_with_errors() {
    let mut rig = Rig::new("order");
    let mut client = rig.connect();
    assert_eq!(ask(&mut rig, &mut client, "{\"get\":\"counters\"}\n"), "{\"ok\":\"Counters\"}\n");
    let reply = ask(&mut rig, &mut client, "{\"get\":\"nonsense\"}\n");
    assert!(reply.starts_with("{\"error\":\"invalid request: unknown variant"), "{reply}");
    client.write_all(b"{\"get\":\"macs\"}\n{\"flush\":\"routes\"}\n{\"get\":").unwrap();
    assert_eq!(rig.turn(), 2);
    client.write_all(b"\"about\"}\n").unwrap();
    assert_eq!(rig.turn(), 1);
    client.shutdown(std::net::Shutdown::Write).unwrap();
    rig.turn();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "{\"ok\":\"Macs\"}\n{\"error\":\"no Flush(Routes)\"}\n{\"ok\":\"About\"}\n");
    assert!(rig.control.clients.is_empty());
}

#[test]
fn a_request_with_a_hundred_thousand_routes_is_accepted() {
    let mut rig = Rig::new("many");
    let mut client = rig.connect();
    let route = "{\"to\":\"10.200.100.0/24\",\"via\":\"10.1.0.2\",\"port\":2}";
    let line = format!("{{\"add_routes\":[{}]}}\n", vec![route; 131_072].join(","));
    let writer = std::thread::spawn(move || {
        client.write_all(line.as_bytes()).unwrap();
        client
    });
    while rig.turn() == 0 {
        std::thread::yield_now();
    }
    let mut answer = String::new();
    BufReader::new(writer.join().unwrap()).read_line(&mut answer).unwrap();
    assert_eq!(answer, "{\"ok\":131072}\n");
}

#[test]
fn a_long_list_is_executed_over_turns_while_others_are_answered() {
    let mut rig = Rig::new("turns");
    let (mut long, mut short) = (rig.connect(), rig.connect());
    let route = "{\"to\":\"10.200.100.0/24\",\"via\":\"10.1.0.2\",\"port\":2}";
    let line = format!("{{\"add_routes\":[{}]}}\n", vec![route; 1000].join(","));
    long.write_all(line.as_bytes()).unwrap();
    let (mut added, mut most, mut turns, mut answers) = (0, 0, 0, 0);
    loop {
        short.write_all(b"{\"get\":\"macs\"}\n").unwrap();
        let before = added;
        let mut carry = |task: Task, budget: &mut Budget<'_>| match task {
            Task::AddRoutes(batch) => batch.carry(budget, Task::AddRoutes, |_| {
                added += 1;
                Ok(())
            }),
            task => {
                answers += 1;
                TaskOutcome::Done(Ok(json!(format!("{task:?}"))))
            }
        };
        let answered = rig.control.turn(Budget::of_steps(STEPS), &mut carry);
        (turns, most) = (turns + 1, most.max(added - before));
        assert_eq!(answers, turns, "the other client does not wait");
        if answered == 2 {
            break;
        }
    }
    // Half of 256 entries per turn, as they are parsed and then added.
    assert!(
        added == 1000 && most <= 256 && turns >= 8,
        "{added} added, {most} of a turn, {turns} turns"
    );
}

#[test]
fn a_list_is_sent_as_fast_as_the_client_reads() {
    let mut rig = Rig::new("list");
    let mut client = rig.connect();
    client.write_all(b"{\"get\":\"macs\"}\n{\"get\":\"about\"}\n").unwrap();
    let (mut made, mut held) = (0, 0);
    let rows = 100_000;
    let mut turn = |control: &mut Control| {
        control.turn(Budget::of_steps(STEPS), &mut |task, budget| match task {
            Task::List(what, from) => task::list_places((what, from, rows), budget, |at| {
                made += 1;
                (at % 2 == 0).then(|| json!(at))
            }),
            _ => TaskOutcome::Done(Ok(json!("about"))),
        });
        held = held.max(control.clients.first().map_or(0, |client| client.output.len()));
        made
    };
    let mut stopped = 0;
    while stopped < 10 {
        let before = turn(&mut rig.control);
        stopped += usize::from(turn(&mut rig.control) == before);
    }
    let reader = std::thread::spawn(move || {
        let mut lines = BufReader::new(client).lines();
        [lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap()]
    });
    while !reader.is_finished() {
        turn(&mut rig.control);
    }
    let [list, about] = reader.join().unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let wanted: Vec<usize> = (0..rows).step_by(2).collect();
    assert_eq!((&list["ok"], &*about), (&json!(wanted), "{\"ok\":\"about\"}"));
    assert!(made == rows && held < READ_BYTES, "{held} bytes buffered");
}

#[test]
fn an_endless_line_is_rejected_at_the_limit() {
    let mut rig = Rig::new("endless");
    let mut client = rig.connect();
    let writer = std::thread::spawn(move || {
        let chunk = vec![b' '; 1 << 20];
        while client.write_all(&chunk).is_ok() {}
        client
    });
    rig.turn();
    while !rig.control.clients.is_empty() {
        rig.turn();
        let held: usize = rig.control.clients.iter().map(|client| client.input.bytes_held()).sum();
        assert!(held <= 3 * LINE_BYTES_MAX);
    }
    let mut answer = [0; 100];
    let count = writer.join().unwrap().read(&mut answer).unwrap();
    assert!(answer[..count].starts_with(b"{\"error\":\"request too long: at most 16777216 bytes"));
}

#[test]
fn requests_of_a_client_that_does_not_read_are_not_read() {
    let mut rig = Rig::new("deaf");
    let mut client = rig.connect();
    client.set_nonblocking(true).unwrap();
    let chunk = "{\"get\":\"counters\"}\n".repeat(1000);
    let mut refused = 0;
    while refused < 10 {
        refused += usize::from(client.write(chunk.as_bytes()).is_err());
        rig.turn();
    }
    let held = &rig.control.clients[0];
    assert!(held.input.bytes_held() + held.output.len() < 4 * READ_BYTES);
}

#[test]
fn silent_clients_are_replaced_and_active_ones_stay() {
    let mut rig = Rig::new("crowd");
    let mut asking: Vec<_> = (1..CONNECTIONS.per_source).map(|_| rig.connect()).collect();
    for client in &mut asking {
        assert!(ask(&mut rig, client, "{\"get\":\"macs\"}\n").contains("ok"));
    }
    let mut silent: Vec<_> = (0..20).map(|_| rig.connect()).collect();
    rig.turn();
    rig.turn();
    assert_eq!(
        rig.control.clients.len(),
        CONNECTIONS.per_source,
        "one user has no more connections"
    );
    assert_eq!(silent[18].read(&mut [0; 9]).unwrap(), 0);
    // The last client replaced the others. Once it has sent a request, a further one is rejected.
    assert!(ask(&mut rig, &mut silent[19], "{\"get\":\"macs\"}\n").contains("ok"));
    let mut refused = rig.connect();
    rig.turn();
    assert_eq!(refused.read(&mut [0; 9]).unwrap(), 0);
    // Seven with requests, 20 silent ones (one is still connected), and the rejected one.
    let counters = rig.control.counters();
    assert_eq!((counters.admitted, counters.refused, counters.displaced), (27, 1, 19));
    assert!(ask(&mut rig, &mut asking[0], "{\"get\":\"macs\"}\n").contains("ok"));
}

#[test]
fn pipelined_requests_are_answered_in_limited_numbers_per_turn() {
    const REQUESTS: usize = 500;
    let mut rig = Rig::new("pipelined");
    let mut client = rig.connect();
    client.write_all(&b"[]\n".repeat(REQUESTS)).unwrap();
    let (mut answered, mut turns) = (0, 0);
    while answered < REQUESTS {
        let now = rig.turn();
        assert!(now <= REQUESTS_A_TURN, "{now} requests in one turn");
        answered += now;
        turns += 1;
        assert!(turns < 10 * REQUESTS);
        if answered > 0 && answered < REQUESTS {
            assert!(rig.control.next_event(Nanos::ZERO).is_some(), "there is more to do");
        }
        client.set_nonblocking(true).unwrap();
        while client.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
    }
}

#[test]
fn events_are_sent_to_watching_clients_within_a_limit() {
    let mut rig = Rig::new("watch");
    let (mut deaf, mut watching) = (rig.connect(), rig.connect());
    ask(&mut rig, &mut deaf, "{\"get\":\"about\"}\n");
    assert_eq!(ask(&mut rig, &mut watching, "{\"watch\":{}}\n"), "{\"ok\":1}\n");
    let event = json!({ "event": "x".repeat(1000) });
    // As many as the socket and the event buffer hold, and some more.
    let reported = (1..).take_while(|_| {
        rig.control.tell(&event);
        rig.control.clients.iter().all(|client| client.events_lost == 0)
    });
    let reported = reported.count();
    (0..9).for_each(|_| rig.control.tell(&event));
    let waiting = rig.control.clients.iter().map(|client| client.output.len() - client.sent);
    assert!(waiting.max() <= Some(EVENT_BYTES_MAX + 2000));
    let mut lines = BufReader::new(watching.try_clone().unwrap());
    let mut read = |rig: &mut Rig, count: usize| {
        let mut line = String::new();
        for _ in 0..count {
            line.clear();
            rig.turn();
            lines.read_line(&mut line).unwrap();
        }
        line
    };
    assert_eq!(read(&mut rig, reported), format!("{event}\n"));
    rig.control.tell(&event);
    assert_eq!(read(&mut rig, 1), "{\"events_lost\":10}\n");
    assert_eq!(read(&mut rig, 1), format!("{event}\n"));
    deaf.set_nonblocking(true).unwrap();
    assert!(deaf.read(&mut [0]).is_err(), "a client that does not watch receives no events");
}

#[test]
fn a_long_request_is_polled_and_later_requests_wait() {
    let mut rig = Rig::new("later");
    let mut client = rig.connect();
    let check = "{\"check\":{\"name\":\"a\",\"text\":\"done\"}}\n";
    client.write_all(format!("{check}{{\"get\":\"about\"}}\n").as_bytes()).unwrap();
    // A client that closed its sending side still receives its replies.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!((rig.turn(), rig.turn()), (0, 0));
    assert!(rig.control.next_event(Nanos::ZERO).is_some(), "the request must be polled again");
    assert_eq!(rig.turn(), 2);
    rig.turn();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "{\"ok\":\"done\"}\n{\"ok\":\"About\"}\n");
}
