import type { ProgramExits } from '../../shared/cli/exit-code.ts'

const NO_DECISION = 'there is no such decision'

export const routerExits: ProgramExits = {
  serve: { 0: 'ended by a signal' },
  demo: { 0: 'every figure is as it must be', 1: 'a figure is not' },
  onboard: { 1: 'refused: another program holds the port, or the start-up file sets such an address itself' },
  offboard: { 1: 'something could not be taken back' },
  launch: {
    0: 'the program ended with 0; another code of its own is passed on, or 128 and the number of its signal',
    3: 'no router answers',
    2: 'there is no such program, or `ROUTER_BIND` or `OPENCODE_CONFIG_CONTENT` does not read',
  },
  doctor: { 0: 'every check holds', 1: 'a check failed' },
  compact: { 1: 'another program reads the store, so that its log could not be emptied' },
  trace: { 1: NO_DECISION },
  explain: { 1: NO_DECISION },
  calibrate: { 1: 'not certified, with `--require-certified`' },
  mcp: { 0: 'its input ended' },
  ope: { 1: 'no request by which the rehearsed policy could be judged' },
  'shards list': { 1: 'a shard does not answer' },
  verify: {
    0: 'everything holds',
    1: 'a chain is broken',
    3: 'the store, or a file of records, checkpoints or anchors, cannot be read',
  },
}
