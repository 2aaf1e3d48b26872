//! Databases of other programs, opened so that nothing of theirs is changed.

use rusqlite::{Connection, OpenFlags, types::ValueRef};
use serde_json::Value;

use crate::source::{File, Source};
use crate::{Error, Result};

/// Opens a database for reading only.
pub(crate) fn open(source: &Source, file: &File) -> Result<Connection> {
    let connection = match file.on_disk() {
        Some(path) => {
            let mut journal = path.as_os_str().to_owned();
            journal.push("-wal");
            // With a journal its program may be running, and its newest rows are there. Without
            // one the file is promised not to change, so that no lock file is made beside it.
            let quiet = std::fs::metadata(&journal).map_or(true, |about| about.len() == 0);
            let mut uri = String::from("file:");
            for byte in path.to_string_lossy().bytes() {
                match byte {
                    b'?' | b'#' | b'%' => uri.push_str(&format!("%{byte:02X}")),
                    _ => uri.push(char::from(byte)),
                }
            }
            if path.to_string_lossy().is_ascii() {
                uri.push_str(if quiet { "?mode=ro&immutable=1" } else { "?mode=ro" });
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(uri, flags)?
            } else {
                Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?
            }
        }
        None => {
            let bytes = file.bytes(source.limits().database)?;
            let mut connection = Connection::open_in_memory()?;
            let length = bytes.len();
            connection.deserialize_read_exact("main", &bytes[..], length, true)?;
            connection
        }
    };
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // A hostile schema must not run anything, nor may a damaged page lead far.
    connection.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA query_only=ON;")?;
    Ok(connection)
}

/// Returns the columns of a table; none when there is no such table.
pub(crate) fn columns(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// Returns a column as JSON; bytes that are text are text.
pub(crate) fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::from(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// Reads the rows of a table as objects, whatever columns it has. `rest` is what follows the
/// table's name: which rows, and in which order.
pub(crate) fn each_row(
    connection: &Connection,
    table: &str,
    rest: &str,
    parameters: impl rusqlite::Params,
    mut take: impl FnMut(crate::json::Object) -> Result<()>,
) -> Result<()> {
    // The names are read as values: asking a statement for them panics where one is not UTF-8.
    let names = columns(connection, table)?;
    if names.is_empty() {
        return Err(Error::form(format!("there is no table {table}")));
    }
    let quoted: Vec<String> =
        names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    let sql = format!("SELECT {} FROM {table} {rest}", quoted.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query(parameters)?;
    while let Some(row) = rows.next()? {
        let mut object = crate::json::Object::new();
        for (index, name) in names.iter().enumerate() {
            object.insert(name.clone(), json(row.get_ref(index)?));
        }
        take(object)?;
    }
    Ok(())
}

/// Returns a name that may stand in a statement.
pub(crate) fn has(columns: &[String], name: &str) -> Result<(), Error> {
    if columns.iter().any(|column| column == name) {
        return Ok(());
    }
    Err(Error::form(format!("the table has no column {name}")))
}
