//! What a page paints: its strings, put together to words by where they stand.

use std::collections::HashMap;
use std::rc::Rc;

use super::file::File;
use super::font::Font;
use super::object::{Lexer, Object};
use crate::sink::{Sink, Step, Stop};

/// Forms within forms.
const FORMS: usize = 6;
/// States that are set aside.
const SAVED: usize = 128;
/// Operands of one operator.
const OPERANDS: usize = 4096;

type Matrix = [f64; 6];
const ONE: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

fn times(a: Matrix, b: Matrix) -> Matrix {
    [
        a[0] * b[0] + a[1] * b[2],
        a[0] * b[1] + a[1] * b[3],
        a[2] * b[0] + a[3] * b[2],
        a[2] * b[1] + a[3] * b[3],
        a[4] * b[0] + a[5] * b[2] + b[4],
        a[4] * b[1] + a[5] * b[3] + b[5],
    ]
}

/// Paints pages of one file; fonts are read once.
#[derive(Debug)]
pub(crate) struct Painter<'a> {
    file: &'a File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    /// Where the last string ended.
    ended: Option<(f64, f64)>,
}

/// What operators change and `q` keeps.
#[derive(Clone, Debug)]
struct State {
    place: Matrix,
    font: Rc<Font>,
    size: f64,
    spacing: f64,
    word_spacing: f64,
    stretch: f64,
    leading: f64,
}

/// Where the next string goes.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    text: Matrix,
    line: Matrix,
}

impl<'a> Painter<'a> {
    pub(crate) fn new(file: &'a File<'a>) -> Self {
        Self { file, fonts: HashMap::new(), ended: None }
    }

    pub(crate) fn paint(&mut self, content: &[u8], resources: &Object, sink: &mut Sink) -> Step {
        let state = State {
            place: ONE,
            font: Rc::new(Font::default()),
            size: 1.0,
            spacing: 0.0,
            word_spacing: 0.0,
            stretch: 1.0,
            leading: 0.0,
        };
        self.ended = None;
        self.run(content, resources, state, FORMS, sink)
    }

    fn run(
        &mut self,
        content: &[u8],
        resources: &Object,
        mut state: State,
        forms: usize,
        sink: &mut Sink,
    ) -> Step {
        let mut lexer = Lexer::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        let mut saved: Vec<State> = Vec::new();
        let mut cursor = Cursor { text: ONE, line: ONE };
        while let Some(object) = lexer.next() {
            sink.tick()?;
            let Object::Word(word) = object else {
                if operands.len() < OPERANDS {
                    operands.push(object);
                }
                continue;
            };
            let number = |place: usize| operands.get(place).and_then(Object::number).unwrap_or(0.0);
            match word.as_slice() {
                b"q" if saved.len() < SAVED => saved.push(state.clone()),
                b"Q" => state = saved.pop().unwrap_or(state),
                b"cm" => {
                    let matrix = std::array::from_fn(number);
                    state.place = times(matrix, state.place);
                }
                b"BT" => cursor = Cursor { text: ONE, line: ONE },
                b"Tf" => {
                    if let Some(Object::Name(name)) = operands.first() {
                        state.font = self.font(name, resources, sink)?;
                    }
                    state.size = number(1);
                }
                b"Tc" => state.spacing = number(0),
                b"Tw" => state.word_spacing = number(0),
                b"Tz" => state.stretch = number(0) / 100.0,
                b"TL" => state.leading = number(0),
                b"Td" => cursor.shift(number(0), number(1)),
                b"TD" => {
                    state.leading = -number(1);
                    cursor.shift(number(0), number(1));
                }
                b"Tm" => {
                    let matrix = std::array::from_fn(number);
                    cursor = Cursor { text: matrix, line: matrix };
                }
                b"T*" => cursor.shift(0.0, -state.leading),
                b"Tj" => self.show(operands.first(), &state, &mut cursor, sink)?,
                b"'" | b"\"" => {
                    cursor.shift(0.0, -state.leading);
                    self.show(operands.last(), &state, &mut cursor, sink)?;
                }
                b"TJ" => {
                    if let Some(Object::Array(parts)) = operands.first() {
                        for part in parts {
                            match part.number() {
                                Some(back) => {
                                    cursor.advance(-back / 1000.0 * state.size * state.stretch)
                                }
                                None => self.show(Some(part), &state, &mut cursor, sink)?,
                            }
                        }
                    }
                }
                b"Do" => {
                    if let (Some(Object::Name(name)), Some(forms)) =
                        (operands.first(), forms.checked_sub(1))
                    {
                        self.form(name, resources, &state, forms, sink)?;
                    }
                }
                b"ID" => skip_picture(content, &mut lexer),
                _ => {}
            }
            operands.clear();
        }
        Ok(())
    }

    /// A font of the page, read once.
    fn font(&mut self, name: &[u8], resources: &Object, sink: &mut Sink) -> Result<Rc<Font>, Stop> {
        sink.in_time()?;
        let fonts = self.file.resolved(resources.get("Font"));
        let name = String::from_utf8_lossy(name);
        let found = fonts.get(&name);
        if let Object::Reference(number) = found
            && let Some(known) = self.fonts.get(number)
        {
            return Ok(Rc::clone(known));
        }
        let font = Rc::new(Font::read(&self.file.resolved(found), self.file, sink)?);
        if let Object::Reference(number) = found {
            self.fonts.insert(*number, Rc::clone(&font));
        }
        Ok(font)
    }

    /// Paints a form: content with resources of its own.
    fn form(
        &mut self,
        name: &[u8],
        resources: &Object,
        state: &State,
        forms: usize,
        sink: &mut Sink,
    ) -> Step {
        sink.in_time()?;
        let all = self.file.resolved(resources.get("XObject"));
        let reference = all.get(&String::from_utf8_lossy(name)).clone();
        let head = self.file.resolved(&reference);
        if !head.get("Subtype").is_name("Form") {
            return Ok(());
        }
        let content = self.file.stream(&reference, sink)?;
        let own = self.file.resolved(head.get("Resources"));
        let own = if own == Object::Null { resources.clone() } else { own };
        let mut state = state.clone();
        if let Object::Array(matrix) = self.file.resolved(head.get("Matrix")) {
            let number = |place: usize| matrix.get(place).and_then(Object::number).unwrap_or(0.0);
            state.place = times(std::array::from_fn(number), state.place);
        }
        self.run(&content, &own, state, forms, sink)
    }

    /// Gives a string, apart from the one before it where it stands apart.
    fn show(
        &mut self,
        string: Option<&Object>,
        state: &State,
        cursor: &mut Cursor,
        sink: &mut Sink,
    ) -> Step {
        let Some(Object::Text(string)) = string else { return Ok(()) };
        let at = times(cursor.text, state.place);
        let size = (state.size * at[3].hypot(at[2])).abs().max(0.1);
        if let Some((x, y)) = self.ended {
            if (at[5] - y).abs() > size * 0.5 {
                sink.line();
            } else if at[4] - x > size * 0.15 || at[4] - x < -size {
                sink.space();
            }
        }
        for (text, width) in state.font.decoded(string) {
            sink.tick()?;
            sink.push(&text)?;
            let extra = if text == " " { state.word_spacing } else { 0.0 };
            let wide = width / 1000.0 * state.size + state.spacing + extra;
            cursor.advance(wide * state.stretch);
        }
        let end = times(cursor.text, state.place);
        self.ended = Some((end[4], end[5]));
        Ok(())
    }
}

impl Cursor {
    fn shift(&mut self, x: f64, y: f64) {
        self.line = times([1.0, 0.0, 0.0, 1.0, x, y], self.line);
        self.text = self.line;
    }

    fn advance(&mut self, x: f64) {
        self.text = times([1.0, 0.0, 0.0, 1.0, x, 0.0], self.text);
    }
}

/// Goes on behind a picture that lies within the content.
fn skip_picture(content: &[u8], lexer: &mut Lexer<'_>) {
    let rest = content.get(lexer.at..).unwrap_or_default();
    let end = memchr::memmem::find_iter(rest, b"EI").find(|place| {
        let blank = |at: Option<&u8>| at.is_none_or(|byte| super::object::is_blank(*byte));
        blank(place.checked_sub(1).and_then(|at| rest.get(at))) && blank(rest.get(place + 2))
    });
    lexer.at += end.map_or(rest.len(), |place| place + 2);
}
