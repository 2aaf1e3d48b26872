//! Times and lengths of time: what is read prints as something that reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use yore_domain::{Span, Timestamp};

fuzz_target!(|text: &str| {
    if let Ok(time) = text.parse::<Timestamp>() {
        assert_eq!(time.to_string().parse::<Timestamp>().expect("our own spelling"), time);
        assert!((Timestamp::MIN..=Timestamp::MAX).contains(&time));
    }
    for span in [Span::parse_iso(text), Span::parse_human(text)].into_iter().flatten() {
        assert!(span.micros() >= 0);
        let (early, late) = (Timestamp::MIN.plus(span), Timestamp::MAX.minus(span));
        assert!(early >= Timestamp::MIN && late <= Timestamp::MAX);
    }
    if let Ok(time) = serde_json::from_str::<Timestamp>(text) {
        assert_eq!(time.to_string().parse::<Timestamp>().expect("our own spelling"), time);
    }
});
