//! A program that ends at once leaves no half-written file. Alone in its process: nothing is written after it.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::{fs, thread};

/// A stream that says when it is asked and then keeps one waiting.
struct Waiting(Sender<()>, Receiver<()>);

impl Read for Waiting {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let _ = self.0.send(());
        let _ = self.1.recv();
        Ok(0)
    }
}

#[test]
fn what_is_being_written_is_removed() {
    let place = tempfile::tempdir().unwrap();
    let ((asked, is_asked), (_hold, held)) = (channel(), channel());
    let path = place.path().join("file");
    thread::spawn(move || esscher_lab::place_file(&path, &mut Waiting(asked, held), 10, "sum"));
    is_asked.recv().unwrap();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    esscher_lab::abandon_writes();
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}
