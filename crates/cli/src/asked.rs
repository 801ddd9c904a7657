//! What the user asks for: an experiment file, the built-in experiment, or a database in a few words that stand for
//! one.

use std::path::{Path, PathBuf};

use tithe_model::{
    catalogue::{Catalogue, OfferedDatabase, PropertyFile},
    compose::{self, Composed, Words, WorkloadFile, quoted},
    diagnostic::{Diagnostic, nearest, text_of},
    experiment::Url,
};
use tithe_plugin::{product::Product, setup::Setup};

use crate::{
    AskedArgs, complain,
    exit::{self, Stop},
    offer,
};

/// The experiment that runs when none is named.
const BUILT_IN: &str = include_str!("../../../experiments/sqlite-page-encryption.toml");

/// The preset that `--like-production` stands for.
const LIKE_PRODUCTION: &str = "calls";

/// An experiment before it is read.
pub struct Source {
    /// Its name in diagnostics.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The base folder of its relative paths.
    pub base: PathBuf,
    /// Where it comes from.
    pub kind: Kind,
}

/// Where an experiment comes from.
pub enum Kind {
    /// A file, or a text of Tithe's own.
    Text,
    /// Nothing was named.
    BuiltIn,
    /// A few words.
    Words(Composed),
}

impl Source {
    /// An experiment of Tithe's own.
    pub fn own(name: String, text: String) -> Self {
        Self { name, text, base: PathBuf::new(), kind: Kind::Text }
    }

    /// The experiment in the file at `path`.
    pub fn file(path: &Path) -> Result<Self, Stop> {
        let bytes = std::fs::read(path).map_err(|error| {
            Stop::new(exit::USAGE, format!("cannot read the experiment {}: {error}", path.display()))
        })?;
        let text = text_of(&bytes)
            .map_err(|line| usage(format!("line {line} of {} is not UTF-8: save the file as UTF-8", path.display())))?;
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { name: path.display().to_string(), text: text.to_owned(), base, kind: Kind::Text })
    }

    /// The experiment on standard input, with paths relative to the current folder.
    fn standard_input() -> Result<Self, Stop> {
        let text = std::io::read_to_string(std::io::stdin()).map_err(|error| {
            Stop::new(exit::USAGE, format!("cannot read the experiment on standard input: {error}"))
        })?;
        Ok(Self::own("standard input".to_owned(), text))
    }

    /// The built-in experiment.
    pub fn built_in() -> Self {
        Self { kind: Kind::BuiltIn, ..Self::own("built-in experiment".to_owned(), BUILT_IN.to_owned()) }
    }

    /// The experiment that the words stand for, to be shown; `None` if it comes from a file or is built in.
    pub fn composed(&self) -> Option<&str> {
        matches!(self.kind, Kind::Words(_)).then_some(self.text.as_str())
    }

    /// Reports what is wrong with it; points at the command line if the experiment comes from there.
    pub fn complain(&self, diagnostics: Vec<Diagnostic>) -> Stop {
        match &self.kind {
            // Words are checked for passwords before they are composed.
            Kind::Words(composed) => complain::shown(&self.name, &composed.line, &composed.point(diagnostics)),
            Kind::Text | Kind::BuiltIn => complain::about(&self.name, &self.text, &diagnostics),
        }
    }
}

/// The experiment that the `arguments` of `command` ask for.
pub fn source(arguments: &AskedArgs, command: &str) -> Result<Source, Stop> {
    let Some(path) = &arguments.experiment.file else {
        return match option_of_words(arguments) {
            Some(option) => Err(usage(format!(
                "{option} needs a database: name it, or the URL of a running server, as in `tithe {command} postgres \
                 --protect tls`"
            ))),
            None => Ok(Source::built_in()),
        };
    };
    let catalogue = offer::catalogue();
    let target = path.to_str().unwrap_or_default();
    if target == "-" {
        return match option_of_words(arguments) {
            Some(option) => Err(usage(format!("{option} cannot change an experiment, which names its own arms"))),
            None => Source::standard_input(),
        };
    }
    // A file takes precedence; a folder is no experiment.
    if path.exists() && !path.is_dir() {
        return in_file(path, arguments, catalogue.database(target));
    }
    match database(target, &catalogue)? {
        Some(database) => in_words(target, database, arguments, command, &catalogue),
        None if target.contains(['/', '.']) => Source::file(path),
        None => Err(neither(target, &catalogue)),
    }
}

/// The experiment in the file at `path`; `homonym` is the database with the same name.
fn in_file(path: &Path, arguments: &AskedArgs, homonym: Option<&OfferedDatabase>) -> Result<Source, Stop> {
    let name = path.display();
    let otherwise = homonym.map(|database| {
        format!("to measure {}, run tithe in a folder without a file of that name", database.entry.title)
    });
    if let Some(option) = option_of_words(arguments) {
        let advice =
            otherwise.unwrap_or_else(|| "name a database or the URL of a running server in its place".to_owned());
        return Err(usage(format!("{option} cannot change {name}, which is a file and names its own arms; {advice}")));
    }
    otherwise
        .iter()
        .for_each(|otherwise| crate::shown::telln!("tithe: {name} is a file here, and tithe reads it; {otherwise}"));
    Source::file(path)
}

/// The option in `arguments` that only experiments in words have.
fn option_of_words(arguments: &AskedArgs) -> Option<&'static str> {
    let given = [
        (!arguments.protect.is_empty(), "--protect"),
        (!arguments.workload.is_empty(), "--workload"),
        (!arguments.ycsb_file.is_empty(), "--ycsb-file"),
        (!arguments.script.is_empty(), "--script"),
        (!arguments.replay.is_empty(), "--replay"),
        (arguments.prepare.is_some(), "--prepare"),
        (arguments.like_production, "--like-production"),
        (arguments.plain.is_some(), "--plain"),
    ];
    given.into_iter().find_map(|(given, option)| given.then_some(option))
}

/// The database that `target` names, or whose server it is the URL of; `None` if it is neither.
pub fn database<'c>(target: &str, catalogue: &'c Catalogue) -> Result<Option<&'c OfferedDatabase>, Stop> {
    let url = Url::new(target);
    let scheme = url.scheme();
    if scheme.is_empty() {
        if target.trim().is_empty() {
            return Err(usage("the URL is empty: is the variable set that it comes from?".to_owned()));
        }
        // It may hold a password, and is not shown.
        let lower = target.to_ascii_lowercase();
        if lower.contains(';') && ["password=", "pwd=", "server=", "host="].iter().any(|word| lower.contains(word)) {
            let form = "write scheme://user@host:port/name, and give the password by the product's variable";
            return Err(usage(format!("this is a connection string of .NET, ODBC or PHP: {form}")));
        }
        if target.contains(['@', ' ', '=']) && !target.ends_with(".toml") && !Path::new(target).exists() {
            return Err(usage(
                "this is neither a file nor an address (scheme://user@host:port/name); it is not shown, because it may \
                 hold a password"
                    .to_owned(),
            ));
        }
        return Ok(catalogue.database(target));
    }
    let found = offer::at(&url).and_then(|product| catalogue.database(product.id()));
    found.map(Some).ok_or_else(|| unknown_scheme(scheme, catalogue))
}

/// The error for a URL whose `scheme` is that of no database.
pub fn unknown_scheme(scheme: &str, catalogue: &Catalogue) -> Stop {
    let entries = || catalogue.databases.iter().map(|database| database.entry);
    if let Some(entry) = entries().find(|entry| entry.embedded && scheme.trim_end_matches('3') == entry.id) {
        let (id, title) = (entry.id, entry.title);
        let instead = format!("name {id} in place of a URL, and your data by --prepare and --script");
        return usage(format!("{title} has no server: {instead}"));
    }
    let over_http = entries().filter(|entry| entry.over_http).filter_map(|entry| entry.url_tls.schemes);
    let instead: Vec<String> = match scheme {
        "https" => over_http.map(|(tls, _)| format!("{tls}://")).collect(),
        "http" => over_http.map(|(_, plain)| format!("{plain}://")).collect(),
        _ => Vec::new(),
    };
    if !instead.is_empty() {
        return usage(format!("{scheme}:// does not name the product: write {} in its place", instead.join(" or ")));
    }
    let known: Vec<&str> = entries().flat_map(|entry| entry.schemes).copied().collect();
    usage(format!("a URL begins with one of {} and ://{}", known.join(", "), meant(scheme, &known)))
}

/// The error for a `name` that is neither a file nor a database.
pub fn neither(name: &str, catalogue: &Catalogue) -> Stop {
    if catalogue.built_with(name).is_some() {
        return usage(offer::no_database(name));
    }
    if Path::new(name).is_dir() {
        return usage(format!("{name} is a folder: name the experiment file in it"));
    }
    let ids: Vec<&str> = catalogue.databases.iter().map(|database| database.entry.id).collect();
    // The name of a product that is measured as another one, such as Valkey, or of a URL's scheme.
    let is_got_as = |product: &&'static dyn Product| product.download().and_then(|it| it.name) == Some(name);
    let got = offer::databases().into_iter().find(is_got_as).map(|product| product.id());
    let known = got.or_else(|| catalogue.owner_of(name).map(|owner| owner.entry.id));
    let guess = known.map_or_else(|| meant(name, &ids), |id| format!(" (did you mean {id}?)"));
    let all = ids.join(", ");
    usage(format!(
        "{name} is neither a file nor a database{guess}; name an experiment file, a database ({all}) or the URL of a running server"
    ))
}

/// ` (did you mean tls?)` if one of the `known` is similar to `name`; otherwise empty.
pub fn meant(name: &str, known: &[&str]) -> String {
    nearest(name, known.iter().copied()).map_or(String::new(), |guess| format!(" (did you mean {guess}?)"))
}

/// The error for a `what` that is not called `name`, with the names that exist.
pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Stop {
    let known: Vec<&str> = known.collect();
    usage(format!("{what} {name}{}; there are {}", meant(name, &known), known.join(", ")))
}

/// The experiment that a few words stand for.
fn in_words(
    target: &str,
    database: &OfferedDatabase,
    arguments: &AskedArgs,
    command: &str,
    catalogue: &Catalogue,
) -> Result<Source, Stop> {
    let asked = &arguments.experiment;
    for (given, option) in [(asked.scale.is_some(), "--scale"), (asked.warehouses.is_some(), "--warehouses")] {
        if given {
            return Err(usage(format!("{option} is for files: without one write --records N")));
        }
    }
    if arguments.prepare.is_some() && arguments.script.is_empty() && arguments.replay.is_empty() {
        let words = "--prepare restores the data of --script or --replay, and there is neither: name your statements";
        return Err(usage(words.to_owned()));
    }
    check_target(target, database)?;
    if let Some(plain) = &arguments.plain {
        check_plain(plain, target, database, catalogue)?;
    }
    let id = database.entry.id;
    // Users with their own workload want to see it run, so the first protection is chosen: most users ask for it.
    let brings = !(arguments.ycsb_file.is_empty() && arguments.script.is_empty() && arguments.replay.is_empty())
        || arguments.like_production;
    let first = database.protections.first().filter(|_| brings);
    let first: Vec<String> = first.map(|entry| entry.id.to_owned()).into_iter().collect();
    let protections = if arguments.protect.is_empty() { &first } else { &arguments.protect };
    if protections.is_empty() {
        let all: Vec<&str> = database.protections.iter().map(|entry| entry.id).collect();
        let shown = if Url::is_url(target) { "URL" } else { target };
        return Err(usage(format!(
            "{id} alone has nothing to be compared with: add for example `--protect {}`; its protections are {} \
             (`tithe ls` explains them, `tithe init {shown}` writes a file)",
            all.first().unwrap_or(&"tls"),
            all.join(", ")
        )));
    }
    let files = arguments.ycsb_file.iter().map(|path| ycsb_file(path));
    let files: Vec<WorkloadFile> =
        files.chain(arguments.replay.iter().map(|path| log(path))).collect::<Result<_, _>>()?;
    let script_keys = script_keys(arguments)?;
    let replay_keys = pairs("properties", "--property", &arguments.property)?;
    let mut workloads = arguments.workload.clone();
    workloads.extend(arguments.like_production.then(|| LIKE_PRODUCTION.to_owned()));
    let words = Words {
        command,
        target,
        scripts: &arguments.script,
        script_keys: &script_keys,
        replay_keys: &replay_keys,
        prepare: arguments.prepare.as_deref(),
        plain: arguments.plain.as_deref(),
        protections,
        workloads: &workloads,
        files: &files,
        clients: &asked.clients,
        records: asked.records,
        budget: asked.budget.as_deref(),
        quick: arguments.quick,
        explained: false,
    };
    of_words(&words, database, catalogue)
}

/// The keys of a workload of scripts that the options stand for.
fn script_keys(arguments: &AskedArgs) -> Result<Vec<(String, String)>, Stop> {
    let mut keys = Vec::new();
    keys.extend(arguments.protocol.as_ref().map(|protocol| ("protocol".to_owned(), quoted(protocol))));
    keys.extend(arguments.max_tries.map(|tries| ("max_tries".to_owned(), tries.to_string())));
    keys.extend(pairs("define", "--define", &arguments.define)?);
    keys.extend(arguments.write_in_place.as_ref().map(|tables| ("write_in_place".to_owned(), quoted(tables))));
    Ok(keys)
}

/// The keys in `group` that the words of `option` stand for: `NAME=VALUE` each.
fn pairs(group: &str, option: &str, words: &[String]) -> Result<Vec<(String, String)>, Stop> {
    let pair = |word: &String| {
        let is_name = |name: &str| name.chars().all(|sign| sign == '_' || sign.is_ascii_alphanumeric());
        let pair = word.split_once('=').filter(|(name, _)| !name.is_empty() && is_name(name));
        let (name, value) =
            pair.ok_or_else(|| usage(format!("{option} {word}: write NAME=VALUE, a name of letters, digits and _")))?;
        Ok((format!("{group}.{name}"), quoted(value)))
    };
    words.iter().map(pair).collect()
}

/// A property file of YCSB, with the experiment keys that it sets. Its mistakes are reported when the experiment is
/// read.
fn ycsb_file(path: &Path) -> Result<WorkloadFile, Stop> {
    let name = path.to_str().ok_or_else(|| usage(format!("--ycsb-file {}: its name is not text", path.display())))?;
    let kind = tithe_workloads::ycsb::entry();
    let bytes = std::fs::read(path).unwrap_or_default();
    let file = PropertyFile { name, weight: None, number: 1, bytes: &bytes, protocol: None };
    let properties = (kind.read)(&file).unwrap_or_default();
    let asks = (kind.asks)(&properties).into_iter().map(|asked| asked.of).collect();
    Ok(WorkloadFile { kind, path: name.to_owned(), asks })
}

/// A log to replay.
fn log(path: &Path) -> Result<WorkloadFile, Stop> {
    let name = path.to_str().ok_or_else(|| usage(format!("--replay {}: its name is not text", path.display())))?;
    Ok(WorkloadFile { kind: tithe_workloads::replay::entry(), path: name.to_owned(), asks: Vec::new() })
}

/// Checks whether the plain arm for `target` can use the URL `plain`.
fn check_plain(plain: &str, target: &str, database: &OfferedDatabase, catalogue: &Catalogue) -> Result<(), Stop> {
    let schemes = database.entry.schemes;
    let owner = catalogue.owner_of(Url::new(plain).scheme());
    let is_url = owner.is_some_and(|owner| owner.entry.speaks_as(&database.entry));
    if !Url::is_url(target) {
        return Err(usage(format!("--plain is for running servers: name the URL of one in place of {target}")));
    }
    if !is_url {
        return Err(usage(format!("--plain needs the URL of a running server: {}://…", schemes.join("://… or "))));
    }
    check_target(plain, database)
}

/// The experiment that `words` stand for, whose target was checked.
pub fn of_words(words: &Words<'_>, database: &OfferedDatabase, catalogue: &Catalogue) -> Result<Source, Stop> {
    let name = "the command line";
    let composed = compose::compose(words, database, catalogue)
        .map_err(|diagnostics| complain::shown(name, &compose::line(words), &diagnostics))?;
    Ok(Source { name: name.to_owned(), text: composed.text.clone(), base: PathBuf::new(), kind: Kind::Words(composed) })
}

/// Refuses a URL that must not be shown, or that cannot be used at all. The message does not quote it.
pub fn check_target(target: &str, database: &OfferedDatabase) -> Result<(), Stop> {
    if !Url::is_url(target) {
        return Ok(());
    }
    if Url::new(target).holds_secret() {
        return Err(usage(format!(
            "the URL contains a password, or something like one, and everybody on this machine can read arguments: \
             give it by the environment variable {} instead; nothing was started",
            database.entry.password_variable
        )));
    }
    let found = offer::databases().into_iter().find(|product| product.id() == database.entry.id);
    let check = |product: &dyn Product| product.check_url(&Url::new(target), &Setup::bare());
    found
        .map_or(Ok(()), check)
        .map_err(|fault| usage(format!("{}; nothing was started", complain::without_lead(&fault.to_string()))))
}

fn usage(message: String) -> Stop {
    Stop::new(exit::USAGE, message)
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn values_of_options_may_have_any_sign() {
        let words = ["prefix=%m [%p] 'é\"\\'".to_owned()];
        let read = pairs("properties", "--property", &words).expect("a pair");
        assert_eq!(read, [("properties.prefix".to_owned(), r#""%m [%p] 'é\"\\'""#.to_owned())]);
    }
}
