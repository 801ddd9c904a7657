//! Agents take no URL that has them open files, whatever a product calls the option.

use tithe_harness::agents::agent::names_files;
use tithe_model::experiment::Url;

/// Options about TLS that name no file.
const NO_FILES: [&str; 7] =
    ["sslmode", "ssl-mode", "insecure", "tls", "ssl", "tlsAllowInvalidCertificates", "tlsInsecure"];

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
