//! What the replay must know about a statement's text: its kind, its shape without values, its parameters.
//!
//! Texts are scanned, not parsed: the server parses them.

pub use crate::script::statement::Flavour;
use crate::script::{guard, statement::executed_comment};

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'t> {
    /// Blanks and comments.
    Blank,
    /// A name or a keyword, quoted names too.
    Word(&'t str),
    /// A number or a text in quotes.
    Value,
    /// `$1`: its number.
    Parameter(usize),
    /// Any other character.
    Sign(&'t str),
}

/// The effect of a statement, as far as a replay needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Begins a transaction.
    Begin,
    /// Ends one.
    End,
    /// Begins a transaction and ends it, in one text.
    Whole,
    /// Reads rows.
    Reads,
    /// Changes rows, or might.
    Writes,
    /// From now on a transaction begins implicitly (`true`), or each statement is one.
    Implicit(bool),
    /// Defines or maintains tables, accounts, the server.
    Defines,
    /// Transfers rows outside of the statement (COPY).
    Copies,
    /// Changes the state of its session: a setting, a prepared statement, a lock.
    SessionState,
    /// Several statements of which some begin or end a transaction, but not exactly one whole transaction.
    Several,
    /// Only blanks and comments.
    Nothing,
}

/// The pieces of `sql`, each with its text.
pub fn pieces(sql: &str, flavour: Flavour) -> impl Iterator<Item = (Piece<'_>, &str)> {
    let mut scanner = Scanner::new(sql, flavour);
    std::iter::from_fn(move || {
        let before = scanner.rest;
        let piece = scanner.next()?;
        Some((piece, &before[..before.len() - scanner.rest.len()]))
    })
}

/// The number of parameters that `sql` has: the highest of `$1`, `$2`, ….
pub fn parameters_of(sql: &str, flavour: Flavour) -> usize {
    let number = |piece| if let Piece::Parameter(number) = piece { number } else { 0 };
    Scanner::new(sql, flavour).map(number).max().unwrap_or(0)
}

/// True if the text of a statement of MariaDB or MySQL has a `?` in place of a value.
pub fn has_placeholder(sql: &str) -> bool {
    Scanner::new(sql, Flavour::MySql).any(|piece| piece == Piece::Sign("?"))
}

/// `sql` with a `?` in place of each value, one blank between words, and lists of values reduced to one.
pub fn shape(sql: &str, flavour: Flavour) -> String {
    let mut shape = String::new();
    let mut blank = false;
    for piece in Scanner::new(sql, flavour) {
        let text = match piece {
            Piece::Blank => {
                blank = true;
                continue;
            }
            Piece::Word(word) => word,
            Piece::Value | Piece::Parameter(_) => "?",
            Piece::Sign(sign) => sign,
        };
        if text == "?" && is_signed(&shape) {
            shape.pop();
        }
        if std::mem::take(&mut blank) && !shape.is_empty() && !matches!(text, "," | ")" | ";") && !shape.ends_with('(')
        {
            shape.push(' ');
        }
        shape.push_str(text);
        // `?, ?, ?` becomes `?`, and so do rows of them.
        for (list, one) in [("?, ?", "?"), ("?,?", "?"), ("(?), (?)", "(?)"), ("(?),(?)", "(?)")] {
            if shape.ends_with(list) {
                shape.truncate(shape.len() - list.len() + one.len());
            }
        }
    }
    shape.truncate(shape.trim_end_matches([';', ' ']).len());
    shape
}

/// True if `shape` ends with the sign of the following number: `a + -`, `(-`.
fn is_signed(shape: &str) -> bool {
    let before = shape.strip_suffix('-').map(str::trim_end);
    before.is_some_and(|before| before.ends_with(['+', '-', '*', '/', '=', '<', '>', '(', ',', '%']))
}

/// The kind of `sql`.
pub fn kind(sql: &str, flavour: Flavour) -> Kind {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for piece in Scanner::new(sql, flavour).chain([Piece::Sign(";")]) {
        match piece {
            Piece::Word(word) => words.push(word),
            Piece::Sign(";") if !words.is_empty() => {
                kinds.push(kind_of_words(&words, sql, flavour));
                words.clear();
            }
            _ => {}
        }
    }
    match kinds.as_slice() {
        [] => Kind::Nothing,
        [one] => *one,
        [Kind::Begin, inner @ .., Kind::End] if inner.iter().all(|kind| !moves(*kind)) => whole(inner),
        all if all.iter().any(|kind| moves(*kind)) => Kind::Several,
        all => worst(all),
    }
}

/// A transaction in one text that contains `inner`.
fn whole(inner: &[Kind]) -> Kind {
    match worst(inner) {
        Kind::Reads | Kind::Writes | Kind::Nothing => Kind::Whole,
        other => other,
    }
}

/// True for a kind that begins or ends transactions.
fn moves(kind: Kind) -> bool {
    matches!(kind, Kind::Begin | Kind::End | Kind::Whole | Kind::Implicit(_))
}

/// The kind that prevents the replay of all `kinds`, or that one of them writes.
fn worst(kinds: &[Kind]) -> Kind {
    let order = [Kind::Defines, Kind::Copies, Kind::SessionState, Kind::Several, Kind::Writes, Kind::Reads];
    order.into_iter().find(|kind| kinds.contains(kind)).unwrap_or(Kind::Nothing)
}

fn kind_of_words(words: &[&str], sql: &str, flavour: Flavour) -> Kind {
    let upper = |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let has = |word: &str| words.iter().any(|it| it.trim_start_matches('@').eq_ignore_ascii_case(word));
    let (first, second) = (upper(0), upper(1));
    match (first.as_str(), second.as_str()) {
        ("COMMIT" | "ROLLBACK", "PREPARED") | ("PREPARE", "TRANSACTION") | ("XA", _) => Kind::Several,
        ("COMMIT" | "ROLLBACK" | "END", _) if has("CHAIN") && !has("NO") => Kind::Several,
        ("ROLLBACK", _) if has("TO") => Kind::Writes,
        ("BEGIN", _) | ("START", "TRANSACTION") => Kind::Begin,
        ("COMMIT" | "END" | "ROLLBACK" | "ABORT", _) => Kind::End,
        ("SAVEPOINT" | "RELEASE", _) => Kind::Writes,
        ("SET", _) if flavour == Flavour::MySql && has("autocommit") => {
            Kind::Implicit(sql.trim_end_matches([';', ' ']).ends_with('0') || has("OFF"))
        }
        ("SET", "LOCAL" | "TRANSACTION" | "CONSTRAINTS") => Kind::Writes,
        (
            "SET" | "RESET" | "DISCARD" | "LISTEN" | "UNLISTEN" | "PREPARE" | "EXECUTE" | "DEALLOCATE" | "USE"
            | "HANDLER",
            _,
        )
        | ("UNLOCK", _) => Kind::SessionState,
        ("LOCK", "TABLES") if flavour == Flavour::MySql => Kind::SessionState,
        ("SELECT" | "WITH", _) if words.iter().any(|word| guard::lasts(word)) => Kind::SessionState,
        ("SELECT" | "WITH", _) if words.iter().any(|word| guard::maintains(word)) => Kind::Defines,
        ("SELECT" | "WITH", _) if OUTWARD.into_iter().any(has) => Kind::Defines,
        ("COPY", _) if has("STDIN") || has("STDOUT") || has("FROM") => Kind::Copies,
        ("LOAD", "DATA" | "XML") => Kind::Copies,
        ("SELECT", _) if has("OUTFILE") || has("DUMPFILE") => Kind::Copies,
        ("SELECT", _) if has("INTO") && flavour == Flavour::Postgres => Kind::Defines,
        ("SELECT" | "WITH" | "VALUES", _) if has("INSERT") || has("UPDATE") || has("DELETE") || has("MERGE") => {
            Kind::Writes
        }
        (
            "SELECT" | "WITH" | "VALUES" | "TABLE" | "SHOW" | "EXPLAIN" | "DESCRIBE" | "DESC" | "FETCH" | "DECLARE"
            | "CLOSE" | "MOVE",
            _,
        ) => Kind::Reads,
        ("INSERT" | "UPDATE" | "DELETE" | "MERGE" | "REPLACE" | "CALL" | "DO" | "LOCK", _) => Kind::Writes,
        _ => Kind::Defines,
    }
}

/// Functions that reach listeners or other servers, which a replay on a running server must not.
const OUTWARD: [&str; 8] =
    ["pg_notify", "dblink", "dblink_exec", "http_delete", "http_get", "http_post", "http_put", "query_export_to_s3"];

struct Scanner<'t> {
    rest: &'t str,
    flavour: Flavour,
    /// True within a comment that the server runs.
    executed: bool,
}

impl<'t> Scanner<'t> {
    fn new(rest: &'t str, flavour: Flavour) -> Self {
        Self { rest, flavour, executed: false }
    }

    /// The length of a text in quotes at the beginning of `rest[from..]`, from there on.
    fn quoted(&self, from: usize, backslashes: bool) -> usize {
        let bytes = self.rest.as_bytes();
        let quote = bytes[from];
        let mut at = from + 1;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' if backslashes => at += 2,
                byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
                byte if byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        bytes.len()
    }

    /// The length of `$tag$ … $tag$` at the beginning; `None` where none begins.
    fn dollar_quoted(&self) -> Option<usize> {
        let inner = self.rest.strip_prefix('$')?;
        let tag = inner.find(|it: char| !(it.is_alphanumeric() || it == '_'))?;
        if !inner[tag..].starts_with('$') || inner.starts_with(|it: char| it.is_ascii_digit()) {
            return None;
        }
        let quote = &self.rest[..tag + 2];
        let end = self.rest[quote.len()..].find(quote);
        Some(end.map_or(self.rest.len(), |end| end + 2 * quote.len()))
    }

    /// The length of the comment at the beginning. PostgreSQL's may contain others.
    fn comment(&self) -> usize {
        if self.flavour == Flavour::MySql {
            return self.until("*/");
        }
        let bytes = self.rest.as_bytes();
        let (mut at, mut depth) = (0, 0);
        while at < bytes.len() {
            match &bytes[at..] {
                [b'/', b'*', ..] => depth += 1,
                [b'*', b'/', ..] if depth == 1 => return at + 2,
                [b'*', b'/', ..] => depth -= 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
        }
        bytes.len()
    }

    fn until(&self, end: &str) -> usize {
        self.rest.find(end).map_or(self.rest.len(), |at| at + end.len())
    }
}

impl<'t> Iterator for Scanner<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let is_word = |it: char| it.is_alphanumeric() || it == '_' || it == '$' || it == '@';
        let my = self.flavour == Flavour::MySql;
        let rest = self.rest;
        let first = rest.chars().next()?;
        let word_length = || rest.find(|it: char| !is_word(it)).unwrap_or(rest.len());
        let (length, piece) = match first {
            it if it.is_whitespace() => (rest.find(|it: char| !it.is_whitespace()).unwrap_or(rest.len()), Piece::Blank),
            // In MySQL `5--1` is 6.
            '-' if rest.starts_with("--") && (!my || rest[2..].chars().next().is_none_or(char::is_whitespace)) => {
                (self.until("\n"), Piece::Blank)
            }
            '#' if my => (self.until("\n"), Piece::Blank),
            '/' if rest.starts_with("/*") => match executed_comment(rest, self.flavour) {
                Some(length) => {
                    self.executed = true;
                    (length, Piece::Blank)
                }
                None => (self.comment(), Piece::Blank),
            },
            '*' if self.executed && rest.starts_with("*/") => {
                self.executed = false;
                (2, Piece::Blank)
            }
            '\'' => (self.quoted(0, my), Piece::Value),
            '"' if my => (self.quoted(0, true), Piece::Value),
            '"' | '`' => {
                let length = self.quoted(0, false);
                (length, Piece::Word(rest.get(..length).unwrap_or(rest)))
            }
            'e' | 'E' if !my && rest[1..].starts_with('\'') => (self.quoted(1, true), Piece::Value),
            '$' if !my => {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                match self.dollar_quoted() {
                    Some(length) => (length, Piece::Value),
                    None if digits > 0 => {
                        (1 + digits, Piece::Parameter(rest[1..=digits].parse().unwrap_or(usize::MAX)))
                    }
                    None => (1, Piece::Sign("$")),
                }
            }
            it if it.is_ascii_digit() => {
                let is_number = |it: char| it.is_ascii_alphanumeric() || it == '.';
                (rest.find(|it: char| !is_number(it)).unwrap_or(rest.len()), Piece::Value)
            }
            it if is_word(it) => {
                let length = word_length();
                (length, Piece::Word(&rest[..length]))
            }
            it => (it.len_utf8(), Piece::Sign(&rest[..it.len_utf8()])),
        };
        // An unclosed quote may end within a character.
        self.rest = rest.get(length..).unwrap_or("");
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_shape_has_no_values() {
        let told = |sql| shape(sql, Flavour::Postgres);
        assert_eq!(told("select  1 ,\n 'it''s' -- a remark\n from t;"), "select ? from t");
        assert_eq!(told("UPDATE t SET a = a + -41.5 WHERE id=$1;"), "UPDATE t SET a = a + ? WHERE id=?");
        assert_eq!(told("select a - 1, b -1, (-1), 2 * -3"), "select a - ?, b -?, (?), ? * ?");
        assert_eq!(told("INSERT INTO t VALUES (1, 'a'), (2, E'b\\'')"), "INSERT INTO t VALUES (?)");
        assert_eq!(
            told("SELECT \"a b\", $x$ it's $x$ FROM t1 WHERE b IN (1,2,3)"),
            "SELECT \"a b\", ? FROM t1 WHERE b IN (?)"
        );
        assert_eq!(shape("select \"x\", `y` # a remark\n", Flavour::MySql), "select ?, `y`");
        assert_eq!(shape("select 'it\\'s', 2", Flavour::MySql), "select ?");
        let hinted = "select /*!40001 sql_no_cache */ a from t where b = 1";
        assert_eq!(shape(hinted, Flavour::MySql), "select sql_no_cache a from t where b = ?");
        assert_eq!(shape(hinted, Flavour::Postgres), "select a from t where b = ?");
    }

    #[test]
    fn kinds_say_what_a_replay_must_know() {
        let told = |sql| kind(sql, Flavour::Postgres);
        for (sql, expected) in [
            ("begin;", Kind::Begin),
            ("START TRANSACTION READ ONLY", Kind::Begin),
            ("END;", Kind::End),
            ("ROLLBACK", Kind::End),
            ("rollback to savepoint a", Kind::Writes),
            ("COMMIT AND CHAIN", Kind::Several),
            ("BEGIN; UPDATE t SET a = 1; COMMIT", Kind::Whole),
            ("BEGIN; UPDATE t SET a = 1", Kind::Several),
            ("select 1; select 2;", Kind::Reads),
            ("/* hint */ select ';' from t", Kind::Reads),
            ("/* a /* b */ drop */ select 1", Kind::Reads),
            ("with x as (delete from t returning 1) select * from x", Kind::Writes),
            ("create table t (a int)", Kind::Defines),
            ("copy t from stdin", Kind::Copies),
            ("set work_mem = '5MB'", Kind::SessionState),
            ("set local work_mem = '5MB'", Kind::Writes),
            ("execute p(4)", Kind::SessionState),
            ("select pg_try_advisory_lock(7)", Kind::SessionState),
            ("with x as (select 1) select pg_advisory_lock_shared(7) from x", Kind::SessionState),
            ("select pg_try_advisory_xact_lock(7)", Kind::Reads),
            ("select pg_stat_statements_reset()", Kind::Defines),
            ("select pg_reload_conf() from t", Kind::Defines),
            ("select pg_notify('jobs', $1)", Kind::Defines),
            ("notify jobs", Kind::Defines),
            ("select net.http_post('https://db.example', body) from t", Kind::Defines),
            ("-- nothing", Kind::Nothing),
            ("vacuum", Kind::Defines),
        ] {
            assert_eq!(told(sql), expected, "{sql}");
        }
        assert_eq!(kind("/*!40101 SET NAMES utf8 */", Flavour::MySql), Kind::SessionState);
        assert_eq!(kind("/*M!999999 SET NAMES utf8 */", Flavour::MySql), Kind::Nothing);
        assert_eq!(kind("SET autocommit=0", Flavour::MySql), Kind::Implicit(true));
        assert_eq!(kind("set @@autocommit = 1", Flavour::MySql), Kind::Implicit(false));
        assert_eq!(kind("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", Flavour::MySql), Kind::Copies);
    }

    #[test]
    fn parameters_are_those_outside_of_quotes() {
        assert_eq!(parameters_of("select $1, '$3', $2 -- $4", Flavour::Postgres), 2);
        assert_eq!(parameters_of("select $$ $1 $$", Flavour::Postgres), 0);
        assert!(has_placeholder("select * from t where a = ?"));
        assert!(has_placeholder("select 5--1 from t where a = ?"));
        assert!(!has_placeholder("select '?', \"?\" from `t?` -- ?"));
    }

    proptest! {
        #[test]
        fn any_text_is_scanned(sql in "(?s)[\\\\'\"`$;,?()#*/a-zE0-9 é\\n-]{0,60}") {
            for flavour in [Flavour::Postgres, Flavour::MySql] {
                let shape = shape(&sql, flavour);
                prop_assert!(shape.len() <= sql.len(), "{shape}");
                let _ = kind(&sql, flavour);
            }
        }
    }
}
