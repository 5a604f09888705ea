import type { Bench } from './harness.ts'

/** Every bench by name. A module is imported only when its bench runs, so one that needs a heavy package slows no other. */
export const benches: Readonly<Record<string, { about: string; load: () => Promise<Bench> }>> = {
  journal: {
    about: 'journal rows through one group-committing writer against one insert per commit',
    load: async () => (await import('./journal.ts')).journalBench,
  },
  traces: {
    about: 'trace records through the writer into a file, and verify of a million of them',
    load: async () => (await import('./traces.ts')).tracesBench,
  },
  start: {
    about: 'spawn to the first 200 on /healthz of both services, and their memory when idle',
    load: async () => (await import('./start.ts')).startBench,
  },
  overhead: {
    about: 'latency and throughput of the router in front of a mock provider, beside other proxies',
    load: async () => (await import('./overhead.ts')).overheadBench,
  },
  processes: {
    about: 'the router in one process and in two at one address: calls per second, and the processor time of each part',
    load: async () => (await import('./processes.ts')).processesBench,
  },
  peers: {
    about:
      'the router beside firstpass, LiteLLM and Portkey: latency, throughput, memory, and receipts kept (installs them)',
    load: async () => (await import('./peers.ts')).peersBench,
  },
  streams: {
    about: 'two hundred streams of 5 MB at once through the router: how fast, and what it holds of them',
    load: async () => (await import('./streams.ts')).streamsBench,
  },
  cascade: {
    about: 'the known answer of the router contract over HTTP, figure by figure, and feedback beside traffic',
    load: async () => (await import('./cascade.ts')).cascadeBench,
  },
  ope: {
    about: 'router ope over a hundred thousand traces, and its memory',
    load: async () => (await import('./ope.ts')).opeBench,
  },
  steps: {
    about: 'no-op steps of runs over HTTP, start to end, with fsync on',
    load: async () => (await import('./steps.ts')).stepsBench,
  },
  shards: {
    about: 'commits of several writing processes into one database and into several',
    load: async () => (await import('./shards.ts')).shardsBench,
  },
  recovery: {
    about: 'a thousand interrupted runs, from the start of the next process until all have ended',
    load: async () => (await import('./recovery.ts')).recoveryBench,
  },
  sse: {
    about: 'a thousand subscribers of one run: how late events arrive',
    load: async () => (await import('./sse.ts')).sseBench,
  },
  isolation: {
    about: 'sandboxes of each backend: a new one, a warm one, a paused machine, a restored one',
    load: async () => (await import('./isolation.ts')).isolationBench,
  },
  density: {
    about: 'what a hundred idle machines of sessions cost alive and put away (takes three minutes)',
    load: async () => (await import('./density.ts')).densityBench,
  },
  sessions: {
    about: 'sessions with a machine of their own, from the request that opens one to the answer of its first turn',
    load: async () => (await import('./sessions.ts')).sessionsBench,
  },
  tunnel: {
    about: 'what a step costs more on a node, a thousand runs over one tunnel, and a partition of ten seconds',
    load: async () => (await import('./tunnel.ts')).tunnelBench,
  },
  'remote-runs': {
    about: 'what a run on a node costs its control plane, over one in the embedded node',
    load: async () => (await import('./remote-runs.ts')).remoteRunsBench,
  },
  'control-planes': {
    about:
      'runs per second of one, two and three control planes on one libSQL server and of one on a file, and the processor of each run',
    load: async () => (await import('./control-planes.ts')).controlPlanesBench,
  },
  connectors: {
    about: 'what an action of a connector costs beside its vendor: the core alone, and an execute of the API',
    load: async () => (await import('./connectors.ts')).connectorsBench,
  },
  auth: {
    about: 'what the check of a key, its scope and its tenant adds to a request',
    load: async () => (await import('./auth.ts')).authBench,
  },
  receipt: {
    about: 'verification of a journal of 10,000 events, offline and live',
    load: async () => (await import('./receipt.ts')).receiptBench,
  },
  'schedule-lag': {
    about: '10,000 schedules with fires spread over a minute: how late their runs are (takes two minutes)',
    load: async () => (await import('./schedule-lag.ts')).scheduleLagBench,
  },
  'first-delta': {
    about: 'from the first token of a provider to the first message_delta',
    load: async () => (await import('./first-delta.ts')).firstDeltaBench,
  },
  'insert-rows': {
    about: 'one statement of bound rows against other ways to insert many rows in one commit',
    load: async () => (await import('./insert-rows.ts')).insertRowsBench,
  },
}
