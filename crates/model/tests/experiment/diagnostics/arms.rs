//! Diagnostics of arms: protections and their options, settings, URLs, statements.

use super::*;

#[test]
fn databases() {
    check(
        &SHORT.replace("postgres", "postgresql"),
        expect![[r#"
        3:12 there is no database `postgresql` (did you mean `postgres`? this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("postgres", "mongodb"),
        expect![[r#"
        3:12 there is no database `mongodb` (build tithe with it: cargo install --locked --path crates/cli --features mongodb)
    "#]],
    );
    check(
        &SHORT.replace("postgres", "oracle"),
        expect![[r#"
        3:12 there is no database `oracle` (this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
}

#[test]
fn protections() {
    check(
        &SHORT.replace("postgres", "sqlite"),
        expect![[r#"
        12:24 sqlite has no `tls`: its protections are `columns` (databases that have it: `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("use = \"tls\"", "use = \"pgaudti\""),
        expect![[r#"
        12:24 there is no protection `pgaudti` (did you mean `pgaudit`? protections of postgres are: `tls`, `pgaudit`, `columns`, `volume`)
    "#]],
    );
    check(
        &SHORT.replace("{ use = \"tls\" }", "{ use = \"tls\" }, { use = \"tls\" }"),
        expect![[r#"
        12:41 the arm has `tls` twice (remove one of the two)
    "#]],
    );
}

#[test]
fn options() {
    let with = |options: &str| SHORT.replace("{ use = \"tls\" }", options);
    check(
        &with("{ use = \"columns\", share = 1.5, shares = 1 }"),
        expect![[r#"
        12:43 `share` must be from 0 to 1, this is 1.5 (write for example `share = 1`)
        12:48 `columns` has no option `shares` (did you mean `share`? its options are: `share`)
    "#]],
    );
    check(
        &with("{ use = \"volume\" }"),
        expect![[r#"
        12:16 `volume` needs the option `kind`: What encrypts the volume. (add `kind = "luks"`)
    "#]],
    );
    check(
        &with("{ use = \"volume\", kind = \"lukz\" }"),
        expect![[r#"
        12:41 `kind` cannot be `lukz` (did you mean `luks`? it is one of: `luks`, `gocryptfs`)
    "#]],
    );
    check(
        &with("{ use = \"pgaudit\", log = true, catalogue = \"no\" }"),
        expect![[r#"
        12:41 `log` must be a text in quotes, this is true or false (write for example `log = "all"`)
        12:59 `catalogue` must be true or false, this is a text (write for example `catalogue = false`)
    "#]],
    );
}

#[test]
fn arms() {
    check(
        &with_arms("postgres", "[[arm]]\nname = \"only\""),
        expect![[r#"
        8:1 the experiment has one arm, and nothing to compare it with (add at least two `[[arm]]`: first the plain one, then one with `protections`)
    "#]],
    );
    check(
        &with_arms("postgres", ""),
        expect![[r#"
        8:1 the experiment has no arms (add at least two `[[arm]]`: first the plain one, then one with `protections`)
    "#]],
    );
    check(
        &with_arms("postgres", "[[arm]]\nname = \"a\"\nprotections = [{ use = \"tls\" }]\n[[arm]]\nname = \"b\""),
        expect![[r#"
            10:1 the first arm is the baseline and must have no protections (put a plain arm first: `[[arm]]` and below it `name = "plain"`)
        "#]],
    );
}

#[test]
fn settings_of_a_protection() {
    let audited = SHORT.replace("use = \"tls\"", "use = \"pgaudit\"");
    assert_ne!(audited, SHORT);
    let given = "[settings]\n\"pgaudit.log\" = \"none\"\n\"pgaudit.role\" = \"x\"\n\
                 [[resources]]\nsettings.\"pgaudit.log\" = 1\n[data]";
    check(
        &audited.replace("[data]", given),
        expect![[r#"
        5:1 `pgaudit.log` cannot be set: the protection `pgaudit` of arm `tls` sets it (remove it from the settings, or the protection from the arm)
        8:10 `pgaudit.log` cannot be set: the protection `pgaudit` of arm `tls` sets it (remove it from the settings, or the protection from the arm)
    "#]],
    );
    // If no arm has the protection, nothing of the setting is lost.
    read_experiment(&SHORT.replace("[data]", given)).expect("an experiment");
}

#[test]
fn settings() {
    check(
        &SHORT.replace("[data]", "[settings]\nPort = 5432\nx = \"a\\nport = 1\"\n[data]"),
        expect![[r#"
            5:1 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
            6:5 `x` must be one line without control characters (a setting or property is one line of its file)
        "#]],
    );
    check(
        &SHORT.replace("[data]", "[[resources]]\nsettings = { port = 1 }\n[[resources]]\nname = \"x\"\n[data]"),
        expect![[r#"
            4:1 `[[resources]]` has no `name` (add for example `name = "in memory"`)
            5:14 `port` cannot be set: Tithe chooses a free port (remove it from the settings)
        "#]],
    );
    check(
        &SHORT.replace("[data]", "[settings]\nlist = [1]\n[data]"),
        expect![[r#"
        5:8 `list` must be a text, a number, or true or false; this is a list (write the value in quotes, as the database's own files have it)
    "#]],
    );
}

#[test]
fn a_password_is_no_setting() {
    let settings = "masterauth = \"x\"\nprimary_conninfo = \"user=a password=x\"\nexpire_password = \"off\"\n";
    check(
        &SHORT.replace("[data]", &format!("[settings]\n{settings}[data]")),
        expect![[r#"
        5:14 `masterauth` would show its password in records and reports (leave it out, or have the server read the password from a file that only you can read)
        6:20 `primary_conninfo` would show its password in records and reports (leave it out, or have the server read the password from a file that only you can read)
    "#]],
    );
    let own = "{ use = \"custom\", name = \"a\", settings = { masterauth = \"x\" } }";
    let said = problems(&SHORT.replace("{ use = \"tls\" }", own), &catalogue::catalogue());
    assert!(said.iter().any(|problem| problem.contains("would show its password")), "{said:?}");
}

#[test]
fn encrypted_swap() {
    let with = |value: &str| format!("encrypted_swap = {value}{SHORT}");
    check(
        &with("\"4 kB\""),
        expect![[r#"
        1:18 `encrypted_swap` must be a size from 1 MiB on with its unit (kB, MB, GB, KiB, MiB, GiB) (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
    check(
        &with("512"),
        expect![[r#"
        1:18 `encrypted_swap` must be a text in quotes, this is a whole number (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
    check(
        &with("\"1 GB\"").replace("name = \"tls\"", "name = \"tls\"\nurl = \"postgres://db.example.org\""),
        expect![[r#"
            1:18 `encrypted_swap` needs servers that Tithe starts: leave out every `url` (write for example `encrypted_swap = "512 MiB"`)
            12:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
        "#]],
    );
}

#[test]
fn versions_of_the_server() {
    let with = |versions: &str| format!("versions = {versions}{SHORT}");
    assert!(read_experiment(&with("[\"18\"]")).is_ok());
    check(
        &with("[]"),
        expect![[r#"
        1:12 `versions` names no version (write for example `versions = ["15", "18"]`)
    "#]],
    );
    check(
        &with("[\"15\", \"fifteen\", \"15\", \"18.\"]"),
        expect![[r#"
        1:19 `fifteen` is not a version (write its first numbers, for example "15" or "18.6")
        1:30 there are two versions called `15` (give each its own name: reports tell them apart by it)
        1:36 `18.` is not a version (write its first numbers, for example "15" or "18.6")
    "#]],
    );
    check(
        &with("[\"15\"]").replace("postgres", "sqlite").replace("use = \"tls\"", "use = \"columns\""),
        expect![[r#"
        1:12 `versions` needs a server, and sqlite runs inside Tithe's own process (write for example `versions = ["15", "18"]`)
    "#]],
    );
    check(
        &with("[\"15\"]").replace("name = \"tls\"", "name = \"tls\"\nurl = \"postgres://db.example.org\""),
        expect![[r#"
        1:12 `versions` needs servers that Tithe starts: leave out every `url` (write for example `versions = ["15", "18"]`)
        12:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
    "#]],
    );
}

#[test]
fn encrypted_swap_that_nobody_uses() {
    let limited = "\n[[resources]]\nname = \"a\"\nmemory = \"64 MiB\"\n[[resources]]\nname = \"b\"\n";
    let with = |resources: &str| {
        format!("encrypted_swap = \"1 GB\"{}", SHORT.replace("\n[data]", &format!("{resources}[data]")))
    };
    assert!(read_experiment(&with(limited)).is_ok());
    check(
        &with(&format!("{limited}data_per_memory = 2\n")),
        expect![[r#"
        1:18 `encrypted_swap` would not be used: all servers have a limit of memory, and such a server does not swap (write for example `encrypted_swap = "512 MiB"`)
    "#]],
    );
}

#[test]
fn urls() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    check(
        &two("url = \"redis://:hunter2@h\"", "url = \"mysql://u:hunter2@h\""),
        expect![[r#"
            10:7 the scheme `redis` is that of redis, and the experiment is about postgres (write for example `postgres://user@host/name`)
            13:7 the scheme `mysql` is that of no database that this build of Tithe knows, and the experiment is about postgres (write for example `postgres://user@host/name`)
        "#]],
    );
    check(
        &two("url = \"u:hunter2@h\"", "url = 5"),
        expect![[r#"
        10:7 `url` is not an address: it has no scheme and `://` (write for example `postgres://user@host/name`)
        13:7 `url` must be a text in quotes, this is a whole number (write for example `url = "postgres://user@host:5432/db"`)
    "#]],
    );
    check(
        &two("url = \"$PGURL\"", "url = \"u:hunter2@h/x?next=https://other\""),
        expect![[r#"
        10:7 `url` is a variable, and variables are not replaced (write the URL here, without its password, which is taken from the variable of the product)
        13:7 `url` is not an address: it has no scheme and `://` (write for example `postgres://user@host/name`)
    "#]],
    );
    check(
        &two("", "url = \"postgres://u@h\""),
        expect![[r#"
        13:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
    "#]],
    );
    check(
        &two("url = \"postgres://u@h\"", ""),
        expect![[r#"
        11:1 some arms have a `url` and some have none: servers that Tithe starts and servers that it attaches to cannot be compared (give every arm a `url`, the first included, or none)
    "#]],
    );
    check(
        &two(
            "url = \"postgres://u@h\"",
            "url = \"postgres://u@h\"\nprotections = [{ use = \"volume\", kind = \"luks\" }]",
        ),
        expect![[r#"
            14:24 `volume` cannot be measured on a server that Tithe does not start (leave out every `url` to let Tithe start the servers; attached servers can be measured with: `tls`, `pgaudit`, `columns`)
        "#]],
    );
    // Only the servers can show whether these are one server.
    let three = "url = \"postgres://u@h\"\n[[arm]]\nname = \"c\"\nurl = \"postgres://u@other\"";
    assert!(read_experiment(&two("url = \"postgres://u@h\"", three)).is_ok());
    check(
        &with_arms("sqlite", "[[arm]]\nname = \"a\"\nurl = \"file://x\"\n[[arm]]\nname = \"b\"\nurl = \"file://y\""),
        expect![[r#"
        10:7 sqlite cannot be attached to: it has no address (leave out `url`, and Tithe creates the database itself)
        13:7 sqlite cannot be attached to: it has no address (leave out `url`, and Tithe creates the database itself)
    "#]],
    );
    check(
        &two("url = \"postgres://u@h\"", "url = \"postgres://u@h\"").replace("[data]", "[settings]\na = 1\n[data]"),
        expect![[r#"
            4:2 settings cannot be given to a server that Tithe does not start (change them on the server itself and remove them here, or leave out every `url`)
        "#]],
    );
}

#[test]
fn switches() {
    let two = |first: &str, second: &str| {
        with_arms("postgres", &format!("[[arm]]\nname = \"a\"\n{first}\n[[arm]]\nname = \"b\"\n{second}\n"))
    };
    let url = "url = \"postgres://u@h\"";
    check(
        &two(url, &format!("{url}\non = [\"SET x\"]")),
        expect![[r#"
            14:1 `on` is given without `off` (add `off = ["…"]`: the next slot belongs to another arm of the same server)
        "#]],
    );
    check(
        &two(url, &format!("{url}\noff = [\"SET x\"]")),
        expect![[r#"
            14:1 `off` is given without `on` (add `on = ["…"]`: the next slot belongs to another arm of the same server)
        "#]],
    );
    check(
        &two(url, &format!("{url}\non = []\noff = [\" \"]")),
        expect![[r#"
            14:6 `on` has no statement (write for example `on = ["SET pgaudit.log = 'read'"]`)
            15:8 `off` has an empty statement (write for example `off = ["RESET pgaudit.log"]`)
        "#]],
    );
    check(
        &two("", "on = [\"SET x\"]\noff = [\"RESET x\"]"),
        expect![[r#"
            13:1 `on` and `off` switch a protection on a running server, and this arm has no `url` (give all arms a `url`, or use `protections`)
        "#]],
    );
    check(
        &two(&format!("{url}\non = [\"x\"]\noff = [\"y\"]"), url),
        expect![[r#"
        11:1 the first arm is the baseline: it has nothing to switch with `on` (move the statements to the arm whose protection they switch)
    "#]],
    );
}

#[test]
fn passwords_are_not_quoted() {
    check(
        &SHORT.replace("\"postgres\"", "\"postgres://u:hunter2@h/db\""),
        expect![[r#"
        3:12 there is no database `postgres://**************` (this build of Tithe has: `sqlite`, `postgres`, `redis`)
    "#]],
    );
    check(
        &SHORT.replace("[data]", "[load]\narrivals = \"postgres://u:hunter2@h/db\"\nrate = 1\n[data]"),
        expect![[r#"
        5:12 `arrivals` cannot be `postgres://**************` (it is one of: `even`, `poisson`)
    "#]],
    );
}

/// An attached pair of arms, the second with these lines.
fn attached(rest: &str) -> String {
    with_arms(
        "postgres",
        &format!(
            "[[arm]]\nname = \"plain\"\nurl = \"postgres://u@h/d\"\n[[arm]]\nname = \"audit\"\nurl = \"postgres://u@h/d\"\n{rest}\n"
        ),
    )
}

#[test]
fn what_a_provider_switches_is_said_in_full() {
    check(
        &attached("switch = { on = [\"a\", \"on\"] }"),
        expect![[r#"
        14:10 `switch` has no `off` (add for example `off = ["./audit", "off"]`)
        14:10 `switch` has no `ready` (add for example `ready = "SELECT current_setting('log_statement') = 'all'"`)
    "#]],
    );
    check(
        &attached("switch = { on = \"a on\", off = [], ready = \" \", side = \"1 ms\", timeout = \"5\", wait = 1 }"),
        expect![[r#"
            14:17 `on` must be a list of a program and its arguments, this is a text (no shell reads it: write `on = ["program", "argument"]`; for a shell `["sh", "-c", "…"]`)
            14:31 `off` names no program (write for example `off = ["./audit", "off"]`)
            14:43 `ready` asks nothing (write for example `ready = "SELECT current_setting('log_statement') = 'all'"`)
            14:55 `side` must be a time from 1 s to 1 h with its unit (ms, s, min, h), this is `1 ms` (write for example `side = "1 min"`)
            14:73 `timeout` must be a time from 1 s to 24 h with its unit (ms, s, min, h), this is `5` (write for example `timeout = "10 min"`)
            14:78 `switch` has no key `wait` (its keys are: `on`, `off`, `ready`, `side`, `timeout`)
        "#]],
    );
    let help = "have the program read it from a file that only you can read, or from its own configuration";
    for words in ["\"--master-password\", \"hunter2\"", "\"x\", \"--token=hunter2\"", "\"x\", \"--pwd=hunter2\""] {
        let text = attached(&format!(
            "switch = {{ on = [\"a\", {words}], off = [\"a\", \"--no-password\", \"x\"], ready = \"SELECT true\" }}"
        ));
        let told = read_experiment(&text).expect_err("a password");
        assert_eq!(told.iter().map(|one| one.help.as_str()).collect::<Vec<_>>(), [help], "{words}");
    }
    check(
        &attached(
            "switch = { on = [\"a\", \"https://me:hunter2@example.org/on\"], off = [\"a\", 1], ready = \"SELECT true\" }",
        ),
        expect![[r#"
            14:23 an argument holds a password, and everybody on the machine can read arguments (have the program read it from a file that only you can read, or from its own configuration)
            14:73 `off` must be a text in quotes, this is a whole number (write for example `off = ["./audit", "off"]`)
        "#]],
    );
}

#[test]
fn a_command_that_says_whether_the_server_is_on_names_a_program() {
    let ready = |ready: &str| attached(&format!("switch = {{ on = [\"a\"], off = [\"b\"], ready = {ready} }}"));
    check(
        &ready("[]"),
        expect![[r#"
        14:45 `ready` names no program (write for example `ready = "SELECT current_setting('log_statement') = 'all'"`)
    "#]],
    );
    check(
        &ready("7"),
        expect![[r#"
        14:45 `ready` must be a text in quotes, this is a whole number (write for example `ready = "SELECT current_setting('log_statement') = 'all'"`)
    "#]],
    );
}

#[test]
fn a_provider_switches_one_server_that_is_both_arms() {
    let switch = "switch = { on = [\"a\", \"on\"], off = [\"a\", \"off\"], ready = \"SELECT true\" }";
    check(
        &attached(&format!("{switch}\non = [\"SET a\"]\noff = [\"RESET a\"]")),
        expect![[r#"
        14:1 `on` and `off` of an arm switch its sessions every few milliseconds, `switch` the server every few minutes (keep one of the two: the statements where sessions can be switched)
    "#]],
    );
    check(
        &attached(&format!("{switch}\n[[arm]]\nname = \"third\"\nurl = \"postgres://u@h/d\"")),
        expect![[r#"
        14:1 a provider switches the whole server, and every arm on it: there can be no arm but the first one and this one (give the other arms an experiment of their own)
    "#]],
    );
    check(
        &with_arms("postgres", &format!("[[arm]]\nname = \"plain\"\n{switch}\n[[arm]]\nname = \"other\"")),
        expect![[r#"
            10:1 the first arm is the baseline: it has nothing to switch with `switch` (move it to the arm whose protection the provider switches)
        "#]],
    );
    check(
        &with_arms("postgres", &format!("[[arm]]\nname = \"plain\"\n[[arm]]\nname = \"other\"\n{switch}")),
        expect![[r#"
            12:1 `switch` is for a running server, and this arm has no `url` (give both arms the `url` of the server, or use `protections` on servers that Tithe starts)
        "#]],
    );
    let measured = |measure: &str| attached(switch).replace("[data]", &format!("[measure]\n{measure}\n[data]"));
    check(
        &measured("budget = \"5 min\""),
        expect![[r#"
        5:10 a budget of 5 min buys 2 pairs of sides of cell `c`, and an interval needs 3 (write at least `budget = "6 min"` in `[measure]`, or a shorter `side` in `switch`, or measure fewer workloads or resources)
    "#]],
    );
    check(
        &measured("budget = \"20 min\"\ndesign = \"slices\""),
        expect![[r#"
        6:10 the provider switches the server, so its sides follow each other in pairs (leave `design` out with `switch`)
    "#]],
    );
    check(
        &measured("budget = \"20 min\"\naa_arm = true"),
        expect![[r#"
        6:10 a server that its provider switches is two arms in turn, and there is no place for an A/A arm (leave `aa_arm` out)
    "#]],
    );
    check(
        &measured("budget = \"20 min\"\nepochs = 2"),
        expect![[r#"
        6:10 a server that its provider switches is set up once, and every pair of its sides has evidence of its own (leave `epochs` out with `switch`)
    "#]],
    );
    let short = switch.replace(" }", ", side = \"10 s\" }");
    check(
        &attached(&short).replace("[data]", "[measure]\nbudget = \"20 min\"\nslot = \"2 s\"\n[data]"),
        expect![[r#"
        6:8 a side of 10 s does not hold 3 frames of 4 s (write a longer `side` in `switch`, or a shorter `slot`)
    "#]],
    );
}

/// The problems of arms `a` and `b` of PostgreSQL with these lines; empty if there are none.
fn said(first: &[&str], second: &[&str]) -> String {
    let arm = |name: &str, lines: &[&str]| format!("[[arm]]\nname = \"{name}\"\n{}\n", lines.join("\n"));
    let text = with_arms("postgres", &(arm("a", first) + &arm("b", second)));
    read_experiment(&text).err().map_or_else(String::new, |them| render(&text, &them))
}

#[test]
fn observers_are_beside_all_servers_or_beside_none() {
    let (url, observer) = ("url = \"postgres://u@h/db\"", "observer = { name = \"db1\" }");
    assert_eq!(said(&[url, observer], &[url, observer]), "");
    assert!(said(&[observer], &[observer]).contains("an arm has no `url`"));
    for (first, second) in [(vec![url, observer], vec![url]), (vec![url], vec![url, observer])] {
        let said = said(&first, &second);
        assert!(said.contains("some arms have an `observer` and some have none"), "{said}");
    }
    let switch = "switch = { on = [\"a\"], off = [\"b\"], ready = \"SELECT true\" }";
    assert!(said(&[url, observer], &[url, observer, switch]).contains("no observer knows which it is"));
}

#[test]
fn an_observer_has_a_name_that_is_part_of_a_subject() {
    let url = "url = \"postgres://u@h/db\"";
    for (name, is_name) in [("db1", true), ("a-b_C", true), ("", false), ("a b", false), ("a.b", false), ("ä", false)]
    {
        let observer = format!("observer = {{ name = \"{name}\" }}");
        let said = said(&[url, &observer], &[url, &observer]);
        assert_eq!(said.is_empty(), is_name, "{name}: {said}");
        assert_eq!(said.contains("is not a name of an observer"), !is_name, "{name}: {said}");
    }
}

#[test]
fn a_switch_of_sessions_and_one_of_the_server_exclude_each_other() {
    let switch = "switch = { on = [\"a\"], off = [\"b\"], ready = \"SELECT true\" }";
    for statements in ["on = [\"SET a\"]", "off = [\"RESET a\"]"] {
        let text = attached(&format!("{switch}\n{statements}"));
        let said = render(&text, &read_experiment(&text).expect_err("two switches"));
        assert!(said.contains("`switch` the server every few minutes"), "{said}");
    }
}

#[test]
fn the_help_about_a_text_in_place_of_a_protection_names_it_if_it_can_be_a_name() {
    let help = |word: &str| said(&[], &[&format!("protections = [{word:?}]")]);
    let named = |word: &str| format!("write for example `{{ use = \"{word}\" }}`");
    let (long, longer) = ("a".repeat(39), "a".repeat(40));
    for name in ["pgaudit", long.as_str()] {
        assert!(help(name).contains(&named(name)), "{}", help(name));
    }
    for other in ["a:b", "a\"b", "a\\b", longer.as_str()] {
        assert!(help(other).contains(&named("tls")), "{}", help(other));
    }
}
