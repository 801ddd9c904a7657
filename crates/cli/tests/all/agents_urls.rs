//! Agents refuse every URL that would make them open files, whatever a product calls the option.

use tithe_harness::agents::agent::names_files;
use tithe_model::experiment::Url;

/// Options about TLS that name no file.
const NO_FILES: [&str; 24] = [
    "channel_binding",
    "insecure",
    "require-ssl",
    "requiressl",
    "server_name",
    "skip_verify",
    "ssl",
    "ssl-accept",
    "ssl-check-hostname",
    "ssl-mode",
    "ssl-verify-cert",
    "ssl-verify-identity",
    "ssl-verify-server-cert",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslcertmode",
    "sslmode",
    "tls",
    "tlsAllowInvalidCertificates",
    "tlsInsecure",
    "use-ssl",
    "verify-server-certificate",
];

#[test]
fn every_option_that_names_a_file_is_known_to_agents() {
    for database in tithe_databases::all() {
        for option in database.entry().url_tls.options {
            let url = Url::new(format!("x://host/?{option}=word"));
            let is_expected = !NO_FILES.contains(option);
            assert_eq!(names_files(&url), is_expected, "{}: {option}", database.id());
        }
    }
}
