//! Job files for batch engines: to be read, changed and submitted.
//!
//! All three engines use the same contract: a task number goes in (`tithe matrix run FILE --task N`), an exit status
//! comes out, and a shared folder contains the results. No engine is started here.

use std::collections::BTreeMap;

use super::{FORMAT, Matrix};

/// A batch engine that a script can be written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A loop on this machine, one task after the other.
    Shell,
    /// Slurm: a job of as many exclusive nodes as there are replicates, one task a node.
    Slurm,
    /// Kubernetes: an Indexed Job for each experiment and kind of machine, one pod a host.
    Kubernetes,
}

/// The engines by their names on the command line.
pub const ENGINES: &[(&str, Engine)] =
    &[("shell", Engine::Shell), ("slurm", Engine::Slurm), ("kubernetes", Engine::Kubernetes)];

/// The names that a script needs.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The matrix file.
    pub file: &'a str,
    /// The folder that all hosts share, for the results.
    pub into: &'a str,
    /// Identity of the plan.
    pub plan: &'a str,
    /// A further option of the tasks with a space before it, or nothing.
    pub allowed: &'a str,
}

/// The script with which `engine` runs `matrix`.
pub fn script(matrix: &Matrix, names: Names<'_>, engine: Engine) -> String {
    match engine {
        Engine::Shell => shell(matrix, names),
        Engine::Slurm => slurm(matrix, names),
        Engine::Kubernetes => kubernetes(matrix, names),
    }
}

fn shell(matrix: &Matrix, Names { file, into, plan, allowed }: Names<'_>) -> String {
    format!(
        "#!/bin/sh\n\
         # {}: {} tasks, plan {plan}.\n\
         # All tasks, one after the other, on this machine. Finished tasks end at once, so you can start it again.\n\
         status=0\n\
         task=0\n\
         while [ \"$task\" -lt {} ]; do\n\
         \x20   tithe matrix run {} --task \"$task\" --into {}{allowed} || status=$?\n\
         \x20   task=$((task + 1))\n\
         done\n\
         exit \"$status\"\n",
        comment(&matrix.title),
        matrix.len(),
        matrix.len(),
        quoted(file),
        quoted(into),
    )
}

/// One `sbatch` for each kind of machine: its options precede the job.
fn slurm(matrix: &Matrix, names: Names<'_>) -> String {
    let mut text = format!(
        "#!/bin/sh\n\
         # {}: {} tasks, plan {}.\n\
         # One array per kind of machine, one job per experiment, one exclusive node per replicate. If a node is \
         lost,\n\
         # its job returns to the queue; finished tasks end at once when they are started again.\n\
         # All nodes must share the folder {}.\n\
         set -eu\n",
        comment(&matrix.title),
        matrix.len(),
        names.plan,
        comment(names.into),
    );
    for (index, machine) in matrix.machines.iter().enumerate() {
        let options: String = machine.slurm.iter().map(|option| format!(" {}", quoted(option))).collect();
        text.push_str(&format!(
            "\n# {}\n\
             sbatch --job-name={} --array=0-{} --nodes={} --ntasks-per-node=1 --exclusive --requeue{options} <<'JOB'\n\
             #!/bin/sh\n\
             export FIRST=$(({} + SLURM_ARRAY_TASK_ID * {}))\n\
             srun --wait=0 --kill-on-bad-exit=0 sh -c \\\n\
             \x20   'exec tithe matrix run \"$1\" --task $((FIRST + SLURM_PROCID)) --into \"$2\" --local \"$3\" --quiet{}' \\\n\
             \x20   tithe {} {} \"${{TMPDIR:-/var/tmp}}\"\n\
             JOB\n",
            comment(&machine.name),
            job_name(names, index, None),
            matrix.experiments.len() - 1,
            matrix.replicates,
            matrix.first(index, 0),
            matrix.replicates,
            names.allowed,
            quoted(names.file),
            quoted(names.into),
        ));
    }
    text
}

/// One Indexed Job for each experiment and kind of machine. The user's texts are written as JSON, which YAML can read.
fn kubernetes(matrix: &Matrix, names: Names<'_>) -> String {
    let mut text = format!(
        "# {}: {} tasks, plan {}.\n\
         # Never two pods of Tithe on one host. Keep other pods away by a taint or by labels of your own.\n\
         # Change the image (tithe and the servers), and the claim of the volume that all pods share.\n",
        comment(&matrix.title),
        matrix.len(),
        names.plan,
    );
    for (machine, kind) in matrix.machines.iter().enumerate() {
        for (experiment, path) in matrix.experiments.iter().enumerate() {
            let command = [
                "sh",
                "-c",
                &format!(
                    "exec tithe matrix run \"$1\" --task $(({} + JOB_COMPLETION_INDEX)) --into \"$2\" --local /local \
                     --quiet{}",
                    matrix.first(machine, experiment),
                    names.allowed
                ),
                "tithe",
                names.file,
                names.into,
            ];
            let job = Job {
                name: job_name(names, machine, Some(experiment)),
                about: format!("{}, {}", kind.name, path),
                replicates: matrix.replicates,
                nodes: &kind.kubernetes,
                command: &command,
            };
            text.push_str(&job.manifest());
        }
    }
    text
}

/// One Indexed Job.
struct Job<'a> {
    name: String,
    about: String,
    replicates: u32,
    nodes: &'a BTreeMap<String, String>,
    command: &'a [&'a str],
}

impl Job<'_> {
    fn manifest(&self) -> String {
        let selector = match self.nodes.is_empty() {
            true => String::new(),
            false => format!("      nodeSelector: {}\n", json(self.nodes)),
        };
        format!(
            "---\n\
             # {about}\n\
             apiVersion: batch/v1\n\
             kind: Job\n\
             metadata:\n\
             \x20 name: {name}\n\
             spec:\n\
             \x20 completionMode: Indexed\n\
             \x20 completions: {replicates}\n\
             \x20 parallelism: {replicates}\n\
             \x20 backoffLimitPerIndex: 3\n\
             \x20 podFailurePolicy:\n\
             \x20   rules:\n\
             \x20   # 2: the command line or the experiment is wrong; 4: a cell could not be measured. Trying again \
             does not help.\n\
             \x20   - action: FailIndex\n\
             \x20     onExitCodes: {{ containerName: tithe, operator: In, values: [2, 4] }}\n\
             \x20 template:\n\
             \x20   metadata:\n\
             \x20     labels: {{ measures: tithe }}\n\
             \x20   spec:\n\
             \x20     restartPolicy: Never\n\
             {selector}\
             \x20     affinity:\n\
             \x20       podAntiAffinity:\n\
             \x20         requiredDuringSchedulingIgnoredDuringExecution:\n\
             \x20         - labelSelector: {{ matchLabels: {{ measures: tithe }} }}\n\
             \x20           topologyKey: kubernetes.io/hostname\n\
             \x20     containers:\n\
             \x20     - name: tithe\n\
             \x20       image: tithe\n\
             \x20       command: {command}\n\
             \x20       workingDir: /tithe\n\
             \x20       volumeMounts: [{{ name: shared, mountPath: /tithe }}, {{ name: local, mountPath: /local }}]\n\
             \x20     volumes:\n\
             \x20     - {{ name: local, emptyDir: {{}} }}\n\
             \x20     - name: shared\n\
             \x20       persistentVolumeClaim: {{ claimName: tithe }}\n",
            about = comment(&self.about),
            name = self.name,
            replicates = self.replicates,
            command = json(self.command),
        )
    }
}

/// A name that every engine takes: the plan's beginning, and numbers.
fn job_name(names: Names<'_>, machine: usize, experiment: Option<usize>) -> String {
    let plan: String = names.plan.chars().take(8).collect();
    let experiment = experiment.map_or(String::new(), |experiment| format!("-{experiment}"));
    format!("tithe-{FORMAT}-{plan}-{machine}{experiment}")
}

/// `text` as one word of a shell (POSIX, 2.2.2).
pub fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=,:+@%".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `text` within a comment line.
fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn json(value: &(impl serde::Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("texts are JSON")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_of_the_shell_stays_one_word() {
        assert_eq!(["a/b-c.toml", "--constraint=c7i.large"].map(quoted), ["a/b-c.toml", "--constraint=c7i.large"]);
        assert_eq!(["", "a b", "it's", "$(id)"].map(quoted), ["''", "'a b'", r"'it'\''s'", "'$(id)'"]);
    }
}
