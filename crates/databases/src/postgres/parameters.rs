//! The parameters of libpq, and of drivers and pools on top of it, grouped by their effect in a URL.

use super::startup::{CHANNEL_BINDING, OPTIONS, REQUIRE_AUTH};
use crate::target::{RefusedOption, SESSION_ATTRIBUTES};

/// Those that are used, except those about TLS.
pub const USED: &[&str] = &[
    "host",
    "hostaddr",
    "port",
    "user",
    "password",
    "dbname",
    "service",
    "servicefile",
    "passfile",
    "sslnegotiation",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "gssencmode",
    "requirepeer",
    "replication",
    "load_balance_hosts",
    "currentSchema",
    "schema_search_path",
    "schema",
    SERVER_TYPE,
    SETTINGS[0],
    SETTINGS[1],
    SETTINGS[2],
    SETTINGS[3],
    SETTINGS[4],
    OPTIONS,
    REQUIRE_AUTH,
    SESSION_ATTRIBUTES,
];

/// Java's parameter for [`SESSION_ATTRIBUTES`].
pub const SERVER_TYPE: &str = "targetServerType";

/// Settings of the server that drivers take as parameters and set when a session begins.
pub const SETTINGS: [&str; 5] =
    ["search_path", "TimeZone", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];

/// Options of a URL that are about TLS.
pub const TLS_OPTIONS: &[&str] = &[
    "sslmode",
    "ssl",
    "requiressl",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "sslcertmode",
    "server_name",
    CHANNEL_BINDING,
];

/// Parameters of libpq, and of drivers and pools on top of it, that have no effect here.
pub const IDLE: &[&str] = &[
    "application_name",
    "fallback_application_name",
    "client_encoding",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "sslcompression",
    "sslsni",
    "sslkeylogfile",
    "krbsrvname",
    "gsslib",
    "gssdelegation",
    "min_protocol_version",
    "max_protocol_version",
    "scram_client_key",
    "scram_server_key",
    // Java
    "loginTimeout",
    "socketTimeout",
    "connectTimeout",
    "tcpKeepAlive",
    "prepareThreshold",
    "preparedStatementCacheQueries",
    "reWriteBatchedInserts",
    "stringtype",
    "binaryTransfer",
    "defaultRowFetchSize",
    "assumeMinServerVersion",
    "autosave",
    "hostRecheckSeconds",
    "logServerErrorDetail",
    "logUnclosedConnections",
    "preferQueryMode",
    // Python, Ruby, Go, JavaScript, PHP
    "serverVersion",
    "charset",
    "pool",
    "pool_size",
    "pool_timeout",
    "pool_max_conns",
    "pool_min_conns",
    "pool_max_conn_lifetime",
    "pool_max_conn_idle_time",
    "pool_health_check_period",
    "binary_parameters",
    "max_overflow",
    "connection_limit",
    "prepared_statements",
    "prepared_statement_cache_size",
    "statement_cache_size",
    "statement_cache_capacity",
    "statement_cache_mode",
    "default_query_exec_mode",
    "conn_max_age",
    "conn_health_checks",
    "command_timeout",
    "encoding",
    "reconnect",
    "checkout_timeout",
    "pgbouncer",
    "uselibpqcompat",
    "supa",
];

/// Parameters that libpq reads from environment variables.
pub const VARIABLES: [(&str, &str); 19] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("sslcert", "PGSSLCERT"),
    ("sslkey", "PGSSLKEY"),
    ("sslcertmode", "PGSSLCERTMODE"),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION"),
    ("ssl_max_protocol_version", "PGSSLMAXPROTOCOLVERSION"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("require_auth", "PGREQUIREAUTH"),
    ("gssencmode", "PGGSSENCMODE"),
    ("options", "PGOPTIONS"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
];

/// Parameters that are refused.
pub const REFUSED: &[RefusedOption] = &[
    ("gssencmode", &["disable", "prefer"], "encryption by GSSAPI is not spoken"),
    ("sslnegotiation", &["postgres"], "TLS without a request before it (direct) is not spoken"),
    ("replication", &["false", "off", "no", "0"], "a connection for replication takes no statements"),
    ("load_balance_hosts", &["disable", "false"], "another host for every connection is not one server: name one"),
    (
        "sslcertmode",
        &["disable", "allow", ""],
        "whether the server asks for the certificate is not checked at its login: write allow",
    ),
    ("requirepeer", &[""], "the owner of the socket is not checked"),
    ("sslcrl", &[""], "lists of revoked certificates are not read: an empty sslcrl= leaves them out"),
    ("sslcrldir", &[""], "lists of revoked certificates are not read: an empty sslcrldir= leaves them out"),
    ("sslpassword", &[""], "keys that are encrypted are not read: name a file with a plain key that only you can read"),
];

/// The setting that names where the server's log goes.
pub const DESTINATION: &str = "log_destination";
