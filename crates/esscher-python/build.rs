//! Tells the module which commit it is built from, as the command line's build script does.

#[path = "../esscher/build.rs"]
mod command_line;

fn main() {
    command_line::main();
}
