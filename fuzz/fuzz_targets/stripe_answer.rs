#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| charge_once_fuzz::run("stripe_answer", data));
