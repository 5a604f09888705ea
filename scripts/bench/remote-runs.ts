import { type Bench, ratioOf } from './harness.ts'
import { processorTime } from './processes/processor-time.ts'
import { noopAgent, noopRun } from './runtime/server.ts'
import { FAR, NEAR, newTunnel } from './tunnel.ts'

const CLIENTS = 24
/** Turns of a run, and how many of these runs a round has. */
const LENGTHS = [
  { name: '21 steps', turns: 10, runs: 240 },
  { name: 'one model call', turns: 0, runs: 480 },
  { name: '101 steps', turns: 50, runs: 48 },
]

const embedded = (length: string) => `${length}, embedded`
const remote = (length: string) => `${length}, on a node`

/** What a run costs the process of its control plane, executed there and by a node. */
export const remoteRunsBench: Bench = {
  title: 'A run on a node, for its control plane',
  about: `Milliseconds of processor time of the control plane for a run, from POST to the end of its event stream: in the embedded node, and on a node of its own with a store of its own. ${CLIENTS} clients, each reading the events of its run. Control plane, node and clients in processes of their own, as published, on loopback, stores in files with fsync on.`,
  unit: 'ms',
  rounds: 5,
  expectations: [
    {
      says: 'a run of 21 steps on a node, over one in the embedded node',
      value: found => ratioOf(found, remote('21 steps')),
      atMost: 0.8,
    },
  ],
  async prepare() {
    const { control, close } = await newTunnel({ PLATFORM_MAX_CONCURRENT_RUNS: '64' })
    await noopAgent(control, NEAR, 'local')
    await noopAgent(control, FAR, 'default')
    const round = (agent: string, turns: number, runs: number) => async (): Promise<number> => {
      const pid = control.pid()
      if (pid === undefined) throw new Error('the control plane has ended')
      const before = (await processorTime(pid)).all
      let left = runs
      const client = async () => {
        while (left-- > 0) await noopRun(control, turns, agent, 1)
      }
      await Promise.all(Array.from({ length: CLIENTS }, client))
      return ((await processorTime(pid)).all - before) / runs
    }
    return {
      variants: LENGTHS.flatMap(({ name, turns, runs }) => [
        { name: embedded(name), round: round(NEAR, turns, runs) },
        { name: remote(name), round: round(FAR, turns, runs) },
      ]),
      close,
    }
  },
}
