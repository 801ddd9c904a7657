//! Everything that an inspection finds, by stable names: one line each, a section for each product.
//!
//! A name consists of product, row and finding. After a release it stays, because users' gates and tickets refer to it.
//! JSON, SARIF and OSCAL contain it, and `tithe explain ID` shows its row.

use tithe_plugin::matrix::FindingEntry;

/// A constant for each row, and the list of all.
macro_rules! findings {
    ($($name:ident = $id:literal, $is:literal, $advice:literal;)*) => {
        $(
            #[doc = $is]
            pub static $name: FindingEntry = FindingEntry { id: $id, is: $is, advice: $advice };
        )*

        /// Every finding, in the order of the table.
        pub static ALL: &[&FindingEntry] = &[$(&$name),*];
    };
}

findings! {
    // PostgreSQL.
    PG_AUTHN_NO_PASSWORD = "PG-AUTHN-NO-PASSWORD",
        "A rule of pg_hba.conf lets clients in without any proof of who they are.",
        "Anyone who reaches the port from that address can be any account of the rule. Change trust or ident to \
         scram-sha-256 (or cert) in the line that the row names, and reload.";
    PG_AUTHN_WEAK_HASH = "PG-AUTHN-WEAK-HASH",
        "An account's password is stored as an MD5 hash.",
        "The hash itself is enough to log in by the method md5, and the password can be found from it quickly. Set \
         password_encryption = scram-sha-256, have the password set again, and write scram-sha-256 in pg_hba.conf.";
    PG_AUTHN_WEAK_METHOD = "PG-AUTHN-WEAK-METHOD",
        "A rule of pg_hba.conf has passwords sent in the clear, by the client or to a directory.",
        "The methods password, ldap, pam, bsd and radius send the password itself. Change host to hostssl in the line \
         that the row names and add ldaptls=1 after ldap, or use scram-sha-256.";
    PG_AUTHN_MAP = "PG-AUTHN-MAP",
        "A map of pg_ident.conf lets one person log in as every account, or as a superuser.",
        "Name in the map the accounts that each person may use, and leave superusers out.";
    PG_AUTHN_SHADOWED_RULE = "PG-AUTHN-SHADOWED-RULE",
        "A strict rule of pg_hba.conf is never reached, because a laxer one above it takes its connections.",
        "The first line that matches decides. Move the strict line up or delete the lax one, and reload.";
    PG_AUTHN_REPEATS_PASSWORDS = "PG-AUTHN-REPEATS-PASSWORDS",
        "The server keeps the passwords that ALTER ROLE sets in the clear.",
        "The statement log, the log of durations and pg_stat_statements keep each statement unchanged. Set passwords by \
         \\password of psql, which sends a hash, and pg_stat_statements.track_utility = off.";
    PG_AUTHZ_REACHABLE_SUPERUSER = "PG-AUTHZ-REACHABLE-SUPERUSER",
        "An account without the superuser attribute can become a superuser.",
        "Lists of roles show such an account as ordinary. The row names the way: REVOKE the membership, privilege or \
         attribute on it.";
    PG_AUTHZ_SUPERUSERS = "PG-AUTHZ-SUPERUSERS",
        "Several accounts that may log in are superusers.",
        "Keep one for administration. Take the attribute from the others: ALTER ROLE … NOSUPERUSER.";
    PG_AUTHZ_READS_PASSWORDS = "PG-AUTHZ-READS-PASSWORDS",
        "An account that is not a superuser may read the hashes of all passwords.",
        "Members of pg_read_all_data can read the table of passwords as well. REVOKE the privilege or the membership, or \
         give SELECT on the tables that are needed.";
    PG_AUDIT_OFF = "PG-AUDIT-OFF",
        "Nothing that clients do is recorded.",
        "Load pgaudit and set pgaudit.log = 'read, write, role, ddl', or set log_statement = all.";
    PG_AUDIT_PARTIAL = "PG-AUDIT-PARTIAL",
        "Some statements of some accounts are not recorded.",
        "The row names what is left out and by which setting: change that setting.";
    PG_AUDIT_REPEATS_VALUES = "PG-AUDIT-REPEATS-VALUES",
        "A log of the server holds values of statements in the clear.",
        "Encrypted columns, volumes and password hashes do not help against people who read the log. Change the setting \
         that the row names so that values stay out, or protect the log like the data.";
    PG_TLS_OPTIONAL = "PG-TLS-OPTIONAL",
        "The server serves clients in plaintext.",
        "Set ssl = on, and change host to hostssl in every line of pg_hba.conf that the row names.";
    PG_TLS_BEHIND_POOLER = "PG-TLS-BEHIND-POOLER",
        "A pooler is in front of the server, and its connections to the server are not encrypted.",
        "The client's connection to the pooler is judged separately. Have the pooler speak TLS to the server too \
         (server_tls_sslmode = verify-full in pgbouncer.ini).";
    PG_TLS_REPLICATION = "PG-TLS-REPLICATION",
        "Replication goes or may go in plaintext.",
        "Change host to hostssl in the lines of pg_hba.conf for replication, and write sslmode=verify-full in the \
         standby's primary_conninfo.";

    // MariaDB and MySQL.
    MY_AUTHN_NO_PROOF = "MY-AUTHN-NO-PROOF",
        "An account accepts a login without proof of identity.",
        "The row names the account: it has no password, takes any name, takes any certificate of the server's authority, \
         sends its password in the clear, or keeps it in a form from which it is found quickly. ALTER USER … \
         IDENTIFIED BY, REQUIRE SUBJECT, REQUIRE SSL, or DROP USER.";
    MY_AUTHN_NOBODY_ASKED = "MY-AUTHN-NOBODY-ASKED",
        "The server runs with skip_grant_tables: no client has to log in, and every client may do everything.",
        "Remove the setting and restart the server.";
    MY_AUTHN_REPEATS_PASSWORDS = "MY-AUTHN-REPEATS-PASSWORDS",
        "The server keeps the passwords that statements set in the clear.",
        "MariaDB's general log, slow log and binary log keep CREATE USER … IDENTIFIED BY unchanged; MySQL's general log \
         does with log_raw. Set passwords as hashes, switch the log off, or protect it like the passwords.";
    MY_AUTHZ_REACHABLE_ADMINISTRATOR = "MY-AUTHZ-REACHABLE-ADMINISTRATOR",
        "An account that is not an administrator can do everything or make itself able to.",
        "Lists of accounts show such an account as ordinary. The row names the way: REVOKE the role or right on it, and \
         set secure_file_priv where it is FILE.";
    MY_AUTHZ_ADMINISTRATORS = "MY-AUTHZ-ADMINISTRATORS",
        "Several accounts may do everything.",
        "Keep one for administration, and REVOKE from the others what they do not need.";
    MY_AUTHZ_SWITCHES_PROTECTIONS = "MY-AUTHZ-SWITCHES-PROTECTIONS",
        "An account that is not an administrator may switch protections of the server off.",
        "It may turn off require_secure_transport or a log, or make tables without encryption. The row names the way: \
         REVOKE SUPER, SYSTEM_VARIABLES_ADMIN, AUDIT_ADMIN, TABLE_ENCRYPTION_ADMIN, BINLOG_ENCRYPTION_ADMIN or DELETE \
         where it is not needed.";
    MY_AUTHZ_READS_PASSWORDS = "MY-AUTHZ-READS-PASSWORDS",
        "An account that is not an administrator may read the hashes of all passwords.",
        "SELECT ON *.* includes the table of accounts, mysql.user or mysql.global_priv. REVOKE it, and give SELECT on \
         the databases that are needed.";
    MY_TLS_OPTIONAL = "MY-TLS-OPTIONAL",
        "The server serves clients in plaintext.",
        "Set require_secure_transport = ON, or ALTER USER … REQUIRE SSL for the accounts that the row names.";
    MY_TLS_REPLICATION = "MY-TLS-REPLICATION",
        "Changes travel to or from another server in plaintext, or without a check of its certificate.",
        "CHANGE MASTER TO MASTER_SSL = 1, MASTER_SSL_VERIFY_SERVER_CERT = 1 (SOURCE_SSL of MySQL), and REQUIRE SSL for \
         the account of replicas.";
    MY_AUDIT_OFF = "MY-AUDIT-OFF",
        "Nothing that clients do is recorded.",
        "On MariaDB load server_audit, and set server_audit_logging = ON and server_audit_events = 'CONNECT,QUERY'. \
         MySQL Community has only the general log.";
    MY_AUDIT_PARTIAL = "MY-AUDIT-PARTIAL",
        "Some statements of some accounts are not recorded, or without their text.",
        "The row names what is left out and by which setting: change that setting.";
    MY_REST_REPEATS_VALUES = "MY-REST-REPEATS-VALUES",
        "A log of the server holds values of statements in the clear.",
        "Encrypted tables and columns do not help against people who read the log. Switch the log off, have it leave \
         values out, or protect it like the data.";
    MY_REST_NOT_ENCRYPTED = "MY-REST-NOT-ENCRYPTED",
        "Some files that values reach are not encrypted.",
        "Encrypt what the row names: settings, tablespaces, tables and logs, also those older than the setting.";
    MY_REST_NOBODY_ENCRYPTS = "MY-REST-NOBODY-ENCRYPTS",
        "Tables that were there before encryption was switched on will never be encrypted.",
        "No thread of MariaDB encrypts them: SET GLOBAL innodb_encryption_threads = 4.";

    // Redis and Valkey.
    REDIS_AUTHN_OPEN_ACCOUNT = "REDIS-AUTHN-OPEN-ACCOUNT",
        "An account logs in without a password, or with one that everybody tries.",
        "For each account that the row names, run ACL SETUSER NAME resetpass >PASSWORD, or ACL SETUSER NAME off.";
    REDIS_AUTHZ_REACHABLE_EVERYTHING = "REDIS-AUTHZ-REACHABLE-EVERYTHING",
        "An account with limited rights can give itself all of them.",
        "The row names the way: acl|setuser, config|get and config|set on a server with requirepass, module|load, or an \
         account without a password. Run ACL SETUSER NAME -@admin -@dangerous, and give back what it needs.";
    REDIS_AUTHZ_BEYOND_KEYS = "REDIS-AUTHZ-BEYOND-KEYS",
        "An account reaches keys or settings beyond its rules, by a command that names no key.",
        "MONITOR, PSYNC, FLUSHALL and REPLICAOF ask for no key. Run ACL SETUSER NAME -COMMAND for each that the row \
         names.";
    REDIS_TLS_OPTIONAL = "REDIS-TLS-OPTIONAL",
        "The server has a port for plaintext.",
        "Set port 0, so that tls-port is the only one.";
    REDIS_TLS_REPLICATION = "REDIS-TLS-REPLICATION",
        "Servers speak plaintext among themselves.",
        "Set tls-replication yes on every replica, and tls-cluster yes on every node of a cluster.";
    // memcached.
    MEMCACHED_TLS_OPTIONAL = "MEMCACHED-TLS-OPTIONAL",
        "The server also answers without TLS.",
        "Remove the `notls:` listeners, and start the server with udp-port 0.";
    // etcd.
    ETCD_TLS_OPTIONAL = "ETCD-TLS-OPTIONAL",
        "A member also answers without TLS.",
        "Remove http: from listen-client-urls and advertise-client-urls of the member that the row names.";
    ETCD_AUTHZ_EVERYTHING = "ETCD-AUTHZ-EVERYTHING",
        "An account that is not the one administrator may read or change every key.",
        "Revoke the role root, or the permission over all keys, and grant the keys that are needed: etcdctl role \
         grant-permission ROLE --prefix=true readwrite PREFIX.";
    ETCD_PEERS_PLAINTEXT = "ETCD-PEERS-PLAINTEXT",
        "Members speak plaintext with each other.",
        "Give every member peer-cert-file, peer-key-file, peer-trusted-ca-file and peer-client-cert-auth, and https in its peer \
         URLs.";
    // OpenSearch.
    OPENSEARCH_AUTHN_NOBODY_ASKED = "OPENSEARCH-AUTHN-NOBODY-ASKED",
        "The server has no accounts: every client may read, change and remove everything.",
        "Install the security plugin, and remove plugins.security.disabled and plugins.security.ssl_only from \
         opensearch.yml.";
    OPENSEARCH_AUTHN_ANONYMOUS = "OPENSEARCH-AUTHN-ANONYMOUS",
        "Clients are let in without a password.",
        "Set anonymous_auth_enabled: false in config.yml of the plugin.";
    OPENSEARCH_AUTHN_UNCHECKED = "OPENSEARCH-AUTHN-UNCHECKED",
        "A domain accepts any user that a client names, without a check.",
        "Give the domain that the row names a backend that checks passwords, or have internalProxies name only the \
         proxies.";
    OPENSEARCH_AUTHN_FIRST_PASSWORD = "OPENSEARCH-AUTHN-FIRST-PASSWORD",
        "An account has the password, or the node the certificate, of the plugin's demo configuration.",
        "Change the passwords that the row names, or remove the accounts. Make certificates of your own.";
    OPENSEARCH_AUTHZ_EVERYTHING = "OPENSEARCH-AUTHZ-EVERYTHING",
        "An account that is not the one administrator may read or change every index.",
        "Name the indices that are needed in the role's index_patterns, and the users that need them in its mapping.";
    OPENSEARCH_AUDIT_OFF = "OPENSEARCH-AUDIT-OFF",
        "Nothing that clients do is recorded.",
        "Set plugins.security.audit.type in opensearch.yml, and enabled: true in the audit log's configuration.";
    OPENSEARCH_AUDIT_PARTIAL = "OPENSEARCH-AUDIT-PARTIAL",
        "Some requests of some accounts are not recorded.",
        "Remove AUTHENTICATED from disabled_rest_categories, and the users and requests that the row names from what is \
         ignored: PATCH /_plugins/_security/api/audit.";
    OPENSEARCH_NODES_PLAINTEXT = "OPENSEARCH-NODES-PLAINTEXT",
        "Nodes accept plaintext from each other.",
        "Set plugins.security_config.ssl_dual_mode_enabled to false once every node has certificates.";
    // Cassandra.
    CASSANDRA_AUTHN_FIRST_PASSWORD = "CASSANDRA-AUTHN-FIRST-PASSWORD",
        "The role cassandra has the password that every installation begins with.",
        "Create a superuser of your own, log in as it, and run ALTER ROLE cassandra WITH SUPERUSER = false AND LOGIN = \
         false.";
    CASSANDRA_AUTHZ_REACHABLE_SUPERUSER = "CASSANDRA-AUTHZ-REACHABLE-SUPERUSER",
        "A role that is not a superuser can become one.",
        "The row names the way: REVOKE the role, or the permission that the row has in parentheses.";
    CASSANDRA_AUTHZ_EVERY_KEYSPACE = "CASSANDRA-AUTHZ-EVERY-KEYSPACE",
        "A role that is not a superuser reads or changes every keyspace.",
        "GRANT SELECT and MODIFY on the keyspaces that it needs, and REVOKE them ON ALL KEYSPACES.";
    CASSANDRA_AUDIT_PARTIAL = "CASSANDRA-AUDIT-PARTIAL",
        "The audit log leaves something out.",
        "The row names the filter, or block: false, by which records are dropped while the writer is busy.";
    CASSANDRA_AUDIT_BY_JMX = "CASSANDRA-AUDIT-BY-JMX",
        "Anyone who reaches the management port can switch the audit log, and the settings do not show it.",
        "nodetool getauditlog shows its state. Protect the port by a password and TLS, or close it.";
    // MongoDB.
    MONGODB_AUTHN_LOCALHOST_EXCEPTION = "MONGODB-AUTHN-LOCALHOST-EXCEPTION",
        "The server has no account, and any user of its machine may make the first one.",
        "Make the administrator's account, or set enableLocalhostAuthBypass to false.";
    MONGODB_AUTHN_NOT_ASKED = "MONGODB-AUTHN-NOT-ASKED",
        "The server serves clients that do not log in.",
        "Set security.authorization to enabled, and remove security.transitionToAuth.";
    MONGODB_AUTHN_OLD_HASH = "MONGODB-AUTHN-OLD-HASH",
        "A password can be proven only by SCRAM-SHA-1, whose hash is made of MD5.",
        "Such a hash makes passwords easier to find. Set featureCompatibilityVersion to 4.0 or newer, and have the \
         password set again.";
    MONGODB_AUTHN_WEAK_METHOD = "MONGODB-AUTHN-WEAK-METHOD",
        "The server takes passwords (PLAIN) or tokens (MONGODB-OIDC) over connections that are not encrypted.",
        "Set net.tls.mode to requireTLS, or remove the method from authenticationMechanisms.";
    MONGODB_AUTHZ_ADMINISTRATORS = "MONGODB-AUTHZ-ADMINISTRATORS",
        "Several accounts may do everything.",
        "Keep one for administration, and revoke root from the others.";
    MONGODB_AUTHZ_REACHABLE_ROOT = "MONGODB-AUTHZ-REACHABLE-ROOT",
        "An account without the role root can give itself everything.",
        "dbOwner and userAdmin on admin, userAdminAnyDatabase and restore allow that, and so do your own roles that inherit \
         them or have grantRole on admin. The row names the chain: revoke one of its links.";
    MONGODB_AUTHZ_READS_PASSWORDS = "MONGODB-AUTHZ-READS-PASSWORDS",
        "An account that may not do everything reads the hashes of all passwords.",
        "They are in admin.system.users. The role backup and your own roles with find on it can read them. Keep backup \
         for the account that copies data.";
    MONGODB_AUTHZ_EVERY_DATABASE = "MONGODB-AUTHZ-EVERY-DATABASE",
        "An account that may not do everything reads the documents of every database.",
        "Grant read or readWrite on the databases that it needs, and revoke the role that the row names.";
    MONGODB_AUDIT_PARTIAL = "MONGODB-AUDIT-PARTIAL",
        "The audit log leaves something out.",
        "Reads and writes are recorded only where auditAuthorizationSuccess is true, and only those that pass \
         auditLog.filter.";
    MONGODB_REST_REPEATS_VALUES = "MONGODB-REST-REPEATS-VALUES",
        "The log or the profiler keeps every command with its values, in the clear.",
        "Set operationProfiling.mode to off, slowOpThresholdMs to 100 and systemLog.verbosity to 0, or \
         security.redactClientLogData to true (Enterprise, only for the log).";
    MONGODB_TLS_OPTIONAL = "MONGODB-TLS-OPTIONAL",
        "The server serves clients in plaintext.",
        "Set net.tls.mode to requireTLS. While the server runs: setParameter tlsMode, first to preferTLS.";
    MONGODB_TLS_MEMBERS = "MONGODB-TLS-MEMBERS",
        "Members of a replica set or cluster speak plaintext to each other, or take any certificate.",
        "Set net.tls.mode to requireTLS on every member, and remove allowInvalidCertificates.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ALL;

    #[test]
    fn names_are_unique_and_rows_are_sentences() {
        let ids: BTreeSet<&str> = ALL.iter().map(|finding| finding.id).collect();
        assert_eq!(ids.len(), ALL.len());
        for finding in ALL {
            let parts: Vec<&str> = finding.id.split('-').collect();
            let capitals = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase());
            assert!(parts.len() >= 3 && parts.iter().all(capitals), "{}", finding.id);
            assert!(finding.is.ends_with('.') && finding.advice.ends_with('.'), "{}", finding.id);
        }
    }
}
