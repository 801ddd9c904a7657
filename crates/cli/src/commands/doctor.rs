//! `tithe doctor`: what this machine offers, and what will limit the precision of figures.

use tithe_harness::{arms::Resolved, volumes};
use tithe_machine::{cgroup, launch::Install, perf, sandbox::account::Account, watch::host};
use tithe_model::{experiment, quantity};
use tithe_plugin::{database::Without, product::Product, wire};

use crate::{
    DoctorArgs, asked,
    commands::inspect::{FIRST_ANSWER_S, Inspected},
    exit::{self, Stop},
    lacking, offer, prepare, team,
};

/// Runs the command; returns the exit status.
pub fn doctor(arguments: &DoctorArgs) -> Result<i32, Stop> {
    if !arguments.urls.is_empty() {
        return servers(&arguments.urls, &arguments.protect);
    }
    let agents = team::doctor(&arguments.team)?;
    let arguments = &arguments.machine;
    let here = std::env::current_dir().unwrap_or_default();
    let machine = host::machine(&here);
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let row = |name: &str, value: String| crate::shown::showln!("{name:<18}{value}");
    row("processor", format!("{} ({} usable)", machine.processor, machine.processors));
    row("crypto flags", list(&machine.crypto_flags));
    row("kernel crypto", list(&machine.kernel_crypto));
    row("memory", quantity::memory(machine.memory_bytes));
    row("system", format!("{}, Linux {}", machine.system, machine.kernel));
    row("virtualised", if machine.virtualised { "yes" } else { "no" }.to_owned());
    row("clock", machine.clock.clone());
    let free = host::free_bytes(&here).map_or("unknown".to_owned(), |bytes| format!("{} free", quantity::size(bytes)));
    row("disk here", format!("{free}, {}", machine.data_folders()));
    row("swap", machine.swap);
    for volume in volumes::PROTECTIONS {
        let id = volume.entry().id;
        let defaults = experiment::Protection::listed(id, Default::default());
        row(
            id,
            match volume.needs(&Install::default(), &defaults) {
                Ok(()) => "possible".to_owned(),
                Err(missing) => format!("not possible: {}", missing.looked_in.join("; ")),
            },
        );
    }
    let both = cgroup::GroupLimits { cpus: Some(1.0), memory_bytes: Some(1 << 30), account: false };
    row("limits", cgroup::lacks(both).unwrap_or_else(|| "possible (cpus and memory, control groups)".to_owned()));
    row("load", format!("{:.2} (1 min)", host::load()));
    row("pressure", pressure());
    row(
        "wait times",
        if std::path::Path::new("/proc/self/schedstat").exists() {
            "seen (schedstat)"
        } else {
            "hidden: net time is unknown here, and CPU per op decides"
        }
        .to_owned(),
    );
    let refused = perf::refused().map(|refused| format!("not possible: {refused}"));
    row("profile", refused.unwrap_or_else(|| "possible (perf_event_open, all processors)".to_owned()));
    let account = match Account::unprivileged() {
        Ok(None) => "yours".to_owned(),
        Ok(Some(account)) => format!("nobody ({}), because tithe runs as root", account.user),
        Err(fault) => fault.to_string(),
    };
    row("servers run as", account);
    for database in offer::databases() {
        match database.find(&offer::search(arguments)) {
            Ok(install) => row(database.id(), format!("{} {}", install.version, install.programs.display())),
            Err(missing) => row(database.id(), format!("not found; install: {}", missing.how_to_install.join(" or "))),
        }
    }
    agents.iter().for_each(|table| crate::shown::show!("{table}"));
    Ok(exit::OK)
}

/// Prints what each of the servers at `urls` lacks; returns the exit status. Only the protections that are `asked` for,
/// or all.
fn servers(urls: &[String], asked: &[String]) -> Result<i32, Stop> {
    wire::hasten(FIRST_ANSWER_S);
    let servers = urls.iter().map(|url| Inspected::of(url)).collect::<Result<Vec<_>, _>>()?;
    let catalogue = offer::catalogue();
    let mut arms = Vec::new();
    for url in urls.iter().filter(|_| !asked.is_empty()) {
        let Some(database) = asked::database(url, &catalogue)? else { continue };
        asked::check_target(url, database)?;
        let (_, experiment) = prepare::protected("doctor", url, (database, asked), &catalogue)?;
        arms.extend(experiment.arms);
    }
    let protections = arms.iter().flat_map(|arm| &arm.protections);
    let asked: Vec<&str> = protections.map(|protection| protection.id.as_str()).collect();
    let mut status = exit::OK;
    for server in &servers {
        let mut lacks = match server.lacks(table_statements(server.database(), &arms)) {
            Ok(lacks) => lacks,
            Err(fault) => {
                crate::shown::telln!("tithe: {}", server.unseen(&fault));
                status = exit::FAILED;
                continue;
            }
        };
        lacks.retain(|lack| asked.is_empty() || !lacking::is_missing(lack) || lack.without.concerns(&asked));
        crate::shown::show!("{}", lacking::text(server.name(), server.database(), &lacks, &asked));
        let of_one = match lacks.iter().any(|lack| lack.without == Without::Measurement) {
            true => exit::FAILED,
            false if lacks.iter().any(lacking::is_missing) => exit::CANNOT_TELL,
            false => exit::OK,
        };
        status = exit::worse(status, of_one);
    }
    Ok(status)
}

/// The statements about Tithe's own tables of those `arms` that `product` has: they may need further privileges.
fn table_statements(product: &dyn Product, arms: &[experiment::Arm]) -> Vec<String> {
    let known = arms.iter().filter_map(|arm| Resolved::of(product, arm).ok());
    known.flat_map(|resolved| resolved.bare_setup().table_statements).collect()
}

/// Share of the last ten seconds in which some task waited, as the kernel reports it.
fn pressure() -> String {
    let some = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/pressure/{name}")).ok()?;
        let average = text.split_ascii_whitespace().find_map(|word| word.strip_prefix("avg10="))?.to_owned();
        Some(format!("{name} {average} %"))
    };
    let seen: Vec<String> = ["cpu", "io", "memory"].into_iter().filter_map(some).collect();
    if seen.is_empty() { "hidden by this kernel".to_owned() } else { format!("{} (last 10 s)", seen.join(", ")) }
}
