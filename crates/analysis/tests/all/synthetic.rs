//! Invented noise and invented runs.

use std::{collections::BTreeMap, sync::LazyLock};

use tithe_model::{
    ending::CellEnding,
    experiment::{
        Arm, Arrivals, Data, Design, Experiment, Load, Measure, Metric, Protection, Resources, Values, Workload,
    },
    histogram::Histogram,
    plan::{Cell, Plan, Starts, WarmUp},
    record::{
        ArmFacts, ArmFrame, Counters, Event, Finding, Frame, Host, Machine, Phase, Role, Slot, Stalls, Steadied,
        Verdict, WarmedUp,
    },
    records::{CellFacts, Records},
    schedule::SplitMix64,
    steady::Steadiness,
};

/// Random numbers with the distributions of measured noise.
pub struct Noise(SplitMix64);

impl Noise {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.0.next_f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.0.next_f64()).cos()
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.0.next_f64()).ln()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.next_f64() < probability
    }
}

/// Parameters of an invented run: two lanes with one connection each, arms of known cost, noise that both arms share
/// and noise of their own.
#[derive(Clone)]
pub struct Invented {
    pub seed: u64,
    pub frames: u32,
    /// Cost of each arm against the baseline, natural-log ratio.
    pub effects: Vec<f64>,
    /// Scatter of a slot's cost, natural-log scale.
    pub spread: f64,
    /// Share of wall time spent waiting for a processor.
    pub wait: f64,
    pub arrivals: Arrivals,
    /// With more clients than lanes, background load is unknown.
    pub clients: u32,
    pub primary: Metric,
    /// Draws the latency of every operation, which takes longer than everything else.
    pub latencies: bool,
}

impl Default for Invented {
    fn default() -> Self {
        Self {
            seed: 1,
            frames: 60,
            effects: vec![0.0, 0.05, 0.0],
            spread: 0.05,
            wait: 0.05,
            arrivals: Arrivals::Closed,
            clients: 2,
            primary: Metric::Net,
            latencies: true,
        }
    }
}

/// A run of an hour, invented once for all tests of this program.
pub fn hour() -> &'static Records {
    static HOUR: LazyLock<Records> = LazyLock::new(|| Invented { frames: 2000, ..Invented::default() }.records());
    &HOUR
}

const BLOCKS: u32 = 10;
const LANES: u32 = 2;

impl Invented {
    /// The records of such a run.
    pub fn records(&self) -> Records {
        let plan = self.plan();
        let mut noise = Noise::new(self.seed);
        let (mut slots, mut frames) = (Vec::new(), Vec::new());
        for number in 0..self.frames {
            let of_frame = self.slots(number, &mut noise);
            frames.push(self.frame(number, &of_frame, &mut noise));
            slots.extend(of_frame);
        }
        let arms = self.effects.len();
        let facts = (0..arms).map(|arm| ArmFacts {
            version: "Invented 1.0".to_owned(),
            facts: BTreeMap::new(),
            configuration: vec!["port = 1".to_owned(), format!("audit = {}", if arm == 0 { "off" } else { "all" })],
        });
        Records {
            run: "invented".to_owned(),
            machine: Machine { processor: "Invented".to_owned(), processors: 2, ..Machine::default() },
            frames,
            slots,
            findings: (1..arms as u32)
                .flat_map(|arm| [finding(arm, Phase::Before), finding(arm, Phase::After)])
                .collect(),
            cells: vec![CellFacts {
                mode: "twin".to_owned(),
                shares_starts: false,
                notes: vec![("requestdistribution".to_owned(), "zipfian".to_owned())],
                ending: Some(CellEnding::Budget),
                arms: facts.collect(),
                warm_ups: Vec::new(),
                idle: Vec::new(),
                statements: BTreeMap::new(),
            }],
            events: vec![Event::RunStarted { tithe: "0.1.0".to_owned(), resumed: false }],
            profile: Vec::new(),
            damage: Vec::new(),
            plan,
        }
    }

    fn plan(&self) -> Plan {
        let arms = self.effects.iter().enumerate().map(|(index, _)| match index {
            0 => Arm::new("plain", Vec::new()),
            _ => Arm::new(&format!("protected {index}"), vec![protection()]),
        });
        let cell = Cell {
            id: "c".to_owned(),
            workload: 0,
            resources: 0,
            clients: self.clients,
            arrivals: self.arrivals,
            seed: self.seed,
            slot_ns: 20_000_000,
            settling_ns: 1_000_000,
            warmup_ns: 100_000_000,
            blocks: BLOCKS,
            frames_max: self.frames,
            epochs: 1,
            design: Design::Interleaved,
            starts: Starts::EveryFrame,
            after_start: WarmUp::None,
            pinned: true,
            free_frames: 0,
            reconnect_every: None,
            program: false,
            gaps: false,
        };
        let experiment = Experiment {
            title: "What an invented protection costs".to_owned(),
            database: "invented".to_owned(),
            settings: BTreeMap::new(),
            encrypted_swap_bytes: None,
            data: Data { records: 1000, values: Values::Ycsb },
            load: Load {
                clients: self.clients,
                arrivals: self.arrivals,
                reconnect_every: None,
                agents: None,
                listen: None,
            },
            resources: vec![Resources {
                name: String::new(),
                version: None,
                settings: BTreeMap::new(),
                clients: None,
                arrivals: None,
                reconnect_every: None,
                limits: Default::default(),
            }],
            workloads: vec![Workload {
                name: "c".to_owned(),
                kind: "ycsb".to_owned(),
                properties: BTreeMap::new(),
                prepare: None,
            }],
            arms: arms.collect(),
            measure: Measure {
                precision: 0.01,
                budget_s: 60.0,
                seed: self.seed,
                margin: 1.03_f64.ln(),
                primary: self.primary,
                epochs: Some(1),
                starts: None,
                slot_ms: None,
                warmup_s: None,
                idle_s: None,
                design: Design::Interleaved,
                pin: true,
                until_decided: false,
                profile: false,
            },
            published: Vec::new(),
        };
        Plan {
            format: tithe_model::plan::FORMAT,
            experiment,
            cells: vec![cell],
            start_spread: Vec::new(),
            one_server_spread: None,
            cost_spread: None,
        }
    }

    /// The slots of one frame of the first cell.
    pub fn slots(&self, frame: u32, noise: &mut Noise) -> Vec<Slot> {
        let mut slots = Vec::new();
        let machine = 0.3 * noise.normal();
        for (block, client) in (0..BLOCKS).flat_map(|block| (0..LANES).map(move |client| (block, client))) {
            for (arm, effect) in self.effects.iter().enumerate() {
                let busy_ns = 20_000.0 * (machine + effect + self.spread * noise.normal()).exp();
                let wall_ns = busy_ns / (1.0 - self.wait);
                let n = (20_000_000.0 / wall_ns) as u64;
                let counted = n * 19 / 20;
                let of = |each: f64, count: u64| (each * count as f64) as u64;
                slots.push(Slot {
                    cell: 0,
                    frame,
                    block,
                    lane: client,
                    arm: arm as u32,
                    operations: n,
                    counted,
                    wall_ns: of(wall_ns, n),
                    latency_sum_ns: of(wall_ns, counted),
                    client_cpu_ns: of(0.3 * busy_ns, n),
                    server_cpu_ns: of(0.5 * busy_ns, n),
                    wait_ns: of(wall_ns - busy_ns, n),
                    stalled_ns: (self.clients <= LANES).then(|| of(wall_ns - busy_ns, n)),
                });
            }
        }
        slots
    }

    fn frame(&self, number: u32, slots: &[Slot], noise: &mut Noise) -> Frame {
        let arms = self.effects.iter().enumerate().map(|(arm, effect)| {
            let of_arm = || slots.iter().filter(|slot| slot.arm as usize == arm);
            let operations: u64 = of_arm().map(|slot| slot.operations).sum();
            let mut latency = Histogram::default();
            for slot in of_arm().filter(|_| self.latencies) {
                let mean = slot.latency_sum_ns as f64 / slot.counted as f64;
                (0..slot.counted).for_each(|_| latency.record((mean * (0.5 + 0.5 * noise.exponential())) as u64));
            }
            let latency = BTreeMap::from([("READ".to_owned(), latency)]);
            ArmFrame {
                operations,
                operations_lead_in: 0,
                failed: 0,
                unfinished: 0,
                intended: if self.arrivals == Arrivals::Closed { BTreeMap::new() } else { latency.clone() },
                latency,
                connect_ns: (2e6 * (10.0 * effect).exp()) as u64 + u64::from(number % 5) * 1000,
                connecting: Default::default(),
                counters: Counters {
                    server_cpu_ns: Some(of_arm().map(|slot| slot.server_cpu_ns * 11 / 10).sum()),
                    wal_bytes: Some(0),
                    log_bytes: Some(if arm == 0 { 0 } else { 156 * operations }),
                    sent_bytes: Some(40 * operations + 1000),
                    received_bytes: Some(if arm == 0 { 1000 } else { 1020 } * operations),
                    memory_bytes: Some(100_000_000 + 5_000_000 * arm as u64 + u64::from(number) * 1000),
                    ..Counters::default()
                },
                operations_before: 0,
                phases: Vec::new(),
            }
        });
        Frame {
            cell: 0,
            frame: number,
            epoch: 0,
            start: number,
            start_unix_ns: 1_700_000_000_000_000_000 + u64::from(number) * 1_000_000_000,
            duration_ns: 900_000_000,
            invalid: None,
            free: false,
            slot_ns: 20_000_000,
            settling_ns: 1_000_000,
            stalls: if self.clients <= LANES { Stalls::Waits } else { Stalls::Unseen("nobody looked".to_owned()) },
            arms: arms.collect(),
            agents: Vec::new(),
            host: Host { load: 2.0, cpu_pressure: Some(0.25), io_pressure: None, steal: Some(0.0), throttled: None },
        }
    }
}

fn protection() -> Protection {
    Protection::listed("audit", BTreeMap::new())
}

/// The warm-up of a start, after which the servers were steady or still changed.
pub fn warmed_up(start: u32, ended: Steadiness) -> WarmedUp {
    WarmedUp {
        start,
        duration_ns: 4_000_000_000,
        windows: 12,
        ended,
        quantity: Steadied::Operations,
        arm: 1,
        change: if ended == Steadiness::Steady { 0.0 } else { 0.3 },
        as_before: false,
    }
}

/// A claim that holds.
pub fn finding(arm: u32, phase: Phase) -> Finding {
    Finding {
        cell: 0,
        epoch: 0,
        arm,
        phase,
        protection: "audit".to_owned(),
        check: "audit-complete".to_owned(),
        claim: "Every marked operation is in the audit log.".to_owned(),
        role: Role::Claim,
        verdict: Verdict::Holds,
        protected: "100 of 100".to_owned(),
        control: "0 of 100".to_owned(),
    }
}
