//! The Lambda function: wiring only. To try it without AWS, type `make run`.

use std::process::ExitCode;

use charge_once::{lambda, wiring::ConfiguredCharge};

fn main() -> ExitCode {
    lambda::run(ConfiguredCharge::build)
}
