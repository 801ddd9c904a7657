//! What each protection changes, as text: no server is needed.

use std::collections::BTreeMap;

use expect_test::{Expect, expect, expect_file};
use tithe_machine::launch::{Install, Place};
use tithe_model::experiment;
use tithe_plugin::setup::Setup;

use super::ALL;
use crate::{
    cassandra::{
        install::{AGENT, CLASS_PATH},
        launch::launch,
    },
    java,
    test_setup::{self, difference, every_way, plain},
};

fn chosen(id: &str, options: &[(&str, &str)]) -> experiment::Protection {
    test_setup::chosen(ALL, id, options)
}

fn shown(setup: &Setup) -> String {
    let facts = [(AGENT, "/c/lib/jamm-0.4.0.jar"), (CLASS_PATH, "/c/lib/*"), (java::PROGRAM, "/java/bin/java")];
    let facts = BTreeMap::from(facts.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let install = Install { programs: "/c".into(), version: "Apache Cassandra 5.0.4".to_owned(), facts };
    test_setup::shown(&launch(&install, setup, &Place::on_loopback("/run/02-arm", 19042)), setup)
}

/// The lines that `protections` remove from a plain server's files and add to them.
fn check(protections: &[experiment::Protection], expect: Expect) {
    test_setup::check(ALL, protections, shown, expect);
}

#[test]
fn a_plain_server() {
    expect![[r#"
        Folder("/run/02-arm/node1")
        Folder("/run/02-arm/node1/tmp")
        write /run/02-arm/node1/cassandra.yaml 600
        authenticator: AllowAllAuthenticator
        authorizer: AllowAllAuthorizer
        auto_bootstrap: false
        auto_snapshot: false
        cdc_raw_directory: '/run/02-arm/node1/cdc'
        cluster_name: 'tithe'
        commitlog_directory: '/run/02-arm/node1/commitlog'
        commitlog_sync: periodic
        commitlog_sync_period: 10000ms
        concurrent_compactors: 1
        data_file_directories: ['/run/02-arm/node1/data']
        endpoint_snitch: SimpleSnitch
        hints_directory: '/run/02-arm/node1/hints'
        listen_address: 127.0.0.11
        native_transport_port: 19042
        num_tokens: 16
        partitioner: org.apache.cassandra.dht.Murmur3Partitioner
        role_manager: CassandraRoleManager
        rpc_address: 127.0.0.1
        saved_caches_directory: '/run/02-arm/node1/saved'
        seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: "127.0.0.11"}]}]
        start_native_transport: true
        storage_port: 19042
        write /run/02-arm/node1/logback.xml 600
        <configuration>
          <appender name="server" class="ch.qos.logback.core.ConsoleAppender">
            <encoder><pattern>%-5level %d{ISO8601} %logger{20} %msg%n</pattern></encoder>
          </appender>
          <appender name="audit" class="ch.qos.logback.core.FileAppender">
            <file>/run/02-arm/node1/audit.log</file>
            <encoder><pattern>%d{ISO8601} %msg%n</pattern></encoder>
          </appender>
          <logger name="org.apache.cassandra.audit.FileAuditLogger" level="INFO" additivity="false">
            <appender-ref ref="audit"/>
          </logger>
          <root level="INFO"><appender-ref ref="server"/></root>
        </configuration>
        write /run/02-arm/node1/java.options 600
        -Xms512M
        -Xmx512M
        -Xss512k
        -XX:+UseG1GC
        -XX:MaxDirectMemorySize=256M
        -XX:+ExitOnOutOfMemoryError
        -XX:-UsePerfData
        "-Djava.io.tmpdir=/run/02-arm/node1/tmp"
        "-javaagent:/c/lib/jamm-0.4.0.jar"
        -Djdk.attach.allowAttachSelf=true
        -Dio.netty.tryReflectionSetAccessible=true
        -Dcassandra-foreground=yes
        "-Dcassandra.config=file:///run/02-arm/node1/cassandra.yaml"
        "-Dcassandra.logdir=/run/02-arm/node1"
        "-Dcassandra.storagedir=/run/02-arm/node1"
        "-Dlogback.configurationFile=/run/02-arm/node1/logback.xml"
        -Dcassandra.consistent.rangemovement=false
        -Dcassandra.ring_delay_ms=1000
        -Dcassandra.shutdown_announce_in_ms=0
        -Dcassandra.skip_wait_for_gossip_to_settle=0
        -Dcassandra.superuser_setup_delay_ms=0
        --add-exports=java.base/java.lang.ref=ALL-UNNAMED
        --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED
        --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED
        --add-exports=java.base/sun.nio.ch=ALL-UNNAMED
        --add-exports=java.management.rmi/com.sun.jmx.remote.internal.rmi=ALL-UNNAMED
        --add-exports=java.management/com.sun.jmx.remote.security=ALL-UNNAMED
        --add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED
        --add-exports=java.rmi/sun.rmi.server=ALL-UNNAMED
        --add-exports=java.sql/java.sql=ALL-UNNAMED
        --add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED
        --add-opens=java.base/java.io=ALL-UNNAMED
        --add-opens=java.base/java.lang=ALL-UNNAMED
        --add-opens=java.base/java.lang.module=ALL-UNNAMED
        --add-opens=java.base/java.lang.reflect=ALL-UNNAMED
        --add-opens=java.base/java.nio=ALL-UNNAMED
        --add-opens=java.base/java.util=ALL-UNNAMED
        --add-opens=java.base/java.util.concurrent=ALL-UNNAMED
        --add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.loader=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.math=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.module=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.ref=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.reflect=ALL-UNNAMED
        --add-opens=java.base/jdk.internal.util.jar=ALL-UNNAMED
        --add-opens=java.base/sun.nio.ch=ALL-UNNAMED
        -cp "/c/lib/*"
        serve LC_ALL=C /java/bin/java @/run/02-arm/node1/java.options org.apache.cassandra.service.CassandraDaemon
        stop by signal 15 at Tcp { host: "127.0.0.1", port: 19042 }
        paths Paths { data: ["/run/02-arm/node1/data"], journal: ["/run/02-arm/node1/commitlog", "/run/02-arm/node1/hints"], logs: ["/run/02-arm/server.log", "/run/02-arm/node1/audit.log", "/run/02-arm/node1/audit"] }
    "#]].assert_eq(&shown(&plain()));
}

#[test]
fn tls() {
    check(
        &[chosen("tls", &[])],
        expect![[r#"
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" join /m/server.key /m/server.pem /m/cassandra-identity-02-arm
        + client_encryption_options: {enabled: true, optional: false, require_client_auth: false, accepted_protocols: [TLSv1.3], ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, keystore: '/m/cassandra-identity-02-arm', truststore: '/m/ca.pem'}
    "#]],
    );
    check(
        &[chosen("tls", &[("version", "1.2"), ("mutual", "true")])],
        expect![[r#"
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" join /m/server.key /m/server.pem /m/cassandra-identity-02-arm
        + client_encryption_options: {enabled: true, optional: false, require_client_auth: true, accepted_protocols: [TLSv1.2], ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, keystore: '/m/cassandra-identity-02-arm', truststore: '/m/ca.pem'}
    "#]],
    );
}

#[test]
fn tls_between_nodes() {
    check(
        &[chosen("internode-tls", &[])],
        expect![[r#"
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" join /m/server.key /m/server.pem /m/cassandra-identity-02-arm
        + server_encryption_options: {internode_encryption: all, optional: false, legacy_ssl_storage_port_enabled: false, require_client_auth: true, require_endpoint_verification: true, accepted_protocols: [TLSv1.3], ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, keystore: '/m/cassandra-identity-02-arm', truststore: '/m/ca.pem'}
    "#]],
    );
}

#[test]
fn passwords() {
    check(
        &[chosen("password", &[])],
        expect![[r#"
        - authenticator: AllowAllAuthenticator
        - authorizer: AllowAllAuthorizer
        + authenticator: PasswordAuthenticator
        + authorizer: CassandraAuthorizer
    "#]],
    );
    check(
        &[chosen("password", &[("caching", "false")])],
        expect![[r#"
        - authenticator: AllowAllAuthenticator
        - authorizer: AllowAllAuthorizer
        + authenticator: PasswordAuthenticator
        + authorizer: CassandraAuthorizer
        + credentials_validity: 0ms
        + permissions_validity: 0ms
        + roles_validity: 0ms
    "#]],
    );
}

#[test]
fn audit_logs() {
    check(
        &[chosen("audit-file", &[])],
        expect![[r#"
        + audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}]}
    "#]],
    );
    check(
        &[chosen("audit-file", &[("categories", "QUERY,DML")])],
        expect![[r#"
        + audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}], included_categories: 'QUERY,DML'}
    "#]],
    );
    check(
        &[chosen("audit-bin", &[("categories", "DML")])],
        expect![[r#"
        + audit_logging_options: {enabled: true, logger: [{class_name: BinAuditLogger}], included_categories: 'DML', block: true, roll_cycle: HOURLY}
    "#]],
    );
}

#[test]
fn encryption_of_the_commit_log() {
    check(
        &[chosen("commitlog-encryption", &[])],
        expect![[r#"
            + write /m/cassandra-store-password-02-arm 600
            + tithe-key-store
            + run keytool -J-XX:-UsePerfData -genseckey -noprompt -keyalg AES -keysize 256 -alias tithe:1 -storetype JCEKS -storepass:file /m/cassandra-store-password-02-arm -keypass:file /m/cassandra-store-password-02-arm -keystore /m/cassandra-commitlog-key-02-arm
            + transparent_data_encryption_options: {enabled: true, chunk_length_kb: 64, cipher: AES/CBC/PKCS5Padding, key_alias: 'tithe:1', iv_length: 16, key_provider: [{class_name: org.apache.cassandra.security.JKSKeyProvider, parameters: [{keystore: '/m/cassandra-commitlog-key-02-arm', keystore_password: tithe-key-store, store_type: JCEKS, key_password: tithe-key-store}]}]}
        "#]],
    );
}

#[test]
fn columns_change_nothing_of_the_server() {
    check(&[chosen("columns", &[])], expect![[""]]);
}

#[test]
fn several_protections_stand_in_one_arm() {
    let all = [chosen("tls", &[]), chosen("internode-tls", &[]), chosen("password", &[]), chosen("audit-file", &[])];
    check(
        &all,
        expect![[r#"
        - authenticator: AllowAllAuthenticator
        - authorizer: AllowAllAuthorizer
        + run /bin/sh -c umask 077 && cat "$1" "$2" > "$3" join /m/server.key /m/server.pem /m/cassandra-identity-02-arm
        + audit_logging_options: {enabled: true, logger: [{class_name: FileAuditLogger}]}
        + authenticator: PasswordAuthenticator
        + authorizer: CassandraAuthorizer
        + client_encryption_options: {enabled: true, optional: false, require_client_auth: false, accepted_protocols: [TLSv1.3], ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, keystore: '/m/cassandra-identity-02-arm', truststore: '/m/ca.pem'}
        + server_encryption_options: {internode_encryption: all, optional: false, legacy_ssl_storage_port_enabled: false, require_client_auth: true, require_endpoint_verification: true, accepted_protocols: [TLSv1.3], ssl_context_factory: {class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}, keystore: '/m/cassandra-identity-02-arm', truststore: '/m/ca.pem'}
    "#]],
    );
}

#[test]
fn several_nodes() {
    let mut setup = plain();
    for (name, value) in [("nodes", "2"), ("replication_factor", "1"), ("consistency", "ONE"), ("heap", "1G")] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        - cluster_name: 'tithe'
        - -Xms512M
        - -Xmx512M
        - serve LC_ALL=C /java/bin/java @/run/02-arm/node1/java.options org.apache.cassandra.service.CassandraDaemon
        - paths Paths { data: ["/run/02-arm/node1/data"], journal: ["/run/02-arm/node1/commitlog", "/run/02-arm/node1/hints"], logs: ["/run/02-arm/server.log", "/run/02-arm/node1/audit.log", "/run/02-arm/node1/audit"] }
        + cluster_name: 'tithe 02-arm 19042'
        + -Xms1G
        + -Xmx1G
        + Folder("/run/02-arm/node2")
        + Folder("/run/02-arm/node2/tmp")
        + write /run/02-arm/node2/cassandra.yaml 600
        + cdc_raw_directory: '/run/02-arm/node2/cdc'
        + cluster_name: 'tithe 02-arm 19042'
        + commitlog_directory: '/run/02-arm/node2/commitlog'
        + data_file_directories: ['/run/02-arm/node2/data']
        + hints_directory: '/run/02-arm/node2/hints'
        + listen_address: 127.0.0.12
        + rpc_address: 127.0.0.2
        + saved_caches_directory: '/run/02-arm/node2/saved'
        + write /run/02-arm/node2/logback.xml 600
        +     <file>/run/02-arm/node2/audit.log</file>
        + write /run/02-arm/node2/java.options 600
        + -Xms1G
        + -Xmx1G
        + "-Djava.io.tmpdir=/run/02-arm/node2/tmp"
        + "-Dcassandra.config=file:///run/02-arm/node2/cassandra.yaml"
        + "-Dcassandra.logdir=/run/02-arm/node2"
        + "-Dcassandra.storagedir=/run/02-arm/node2"
        + "-Dlogback.configurationFile=/run/02-arm/node2/logback.xml"
        + -Dcassandra.ring_delay_ms=30000
        + serve LC_ALL=C /bin/sh -c program=$1; main=$2; folder=$3; ready=$4; failed=$5; shift 5
        + trap 'trap "" TERM
        +   tail -qn 5 "$folder"/node*/server.log
        +   grep -hm 1 "$failed" "$folder"/node*/server.log
        +   cat "$folder/ended" 2>/dev/null
        +   kill 0; wait; exit 0' TERM
        + for node in "$@"; do
        +   setpriv --pdeathsig KILL sh -c 'asked=; trap asked=1 TERM; ended=$1; shift; setpriv --pdeathsig KILL "$@"; status=$?
        +     [ "$asked" ] || echo "$0 ended (status $status), so all nodes were stopped" >> "$ended"
        +     kill "$PPID"' "$node" "$folder/ended" \
        +     "$program" "@$folder/$node/java.options" "$main" > "$folder/$node/server.log" 2>&1 &
        +   until grep -q "$ready" "$folder/$node/server.log" 2>/dev/null; do sleep 0.2; done
        + done
        + wait nodes /java/bin/java org.apache.cassandra.service.CassandraDaemon /run/02-arm Starting listening for CQL clients encountered during startup node1 node2
        + paths Paths { data: ["/run/02-arm/node1/data", "/run/02-arm/node2/data"], journal: ["/run/02-arm/node1/commitlog", "/run/02-arm/node2/commitlog", "/run/02-arm/node1/hints", "/run/02-arm/node2/hints"], logs: ["/run/02-arm/server.log", "/run/02-arm/node1/server.log", "/run/02-arm/node2/server.log", "/run/02-arm/node1/audit.log", "/run/02-arm/node2/audit.log", "/run/02-arm/node1/audit", "/run/02-arm/node2/audit"] }
    "#]].assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn settings_of_the_experiment_are_kept_but_cannot_add_lines() {
    let mut setup = plain();
    for (name, value) in [
        ("concurrent_reads", "16"),
        ("commitlog_sync", "batch"),
        ("row_cache_size", "1MiB\nauthenticator: x"),
        ("key_cache_size", "{a: 'b'}"),
        ("heap", "1G\n-Dx=y"),
        ("a: 1\nb", "1"),
    ] {
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    expect![[r#"
        - commitlog_sync: periodic
        - commitlog_sync_period: 10000ms
        - -Xms512M
        - -Xmx512M
        + a__1_b: 1
        + commitlog_sync: batch
        + concurrent_reads: 16
        + key_cache_size: '{a: ''b''}'
        + row_cache_size: '1MiB authenticator: x'
        + -Xms1GDxy
        + -Xmx1GDxy
    "#]]
    .assert_eq(&difference(&shown(&plain()), &shown(&setup)));
}

#[test]
fn every_way_to_ask_for_a_protection() {
    expect_file!["every_way.txt"].assert_eq(&every_way(ALL, shown));
}
