import type { ProgramExits } from '../../shared/cli/exit-words.ts'

const NO_STORE = 'the store cannot be read'
const NO_DECISION = 'there is no such decision'

export const routerExits: ProgramExits = {
  all: {
    0: 'done',
    1: 'refused, or it did not come about; also a fault of the program, with a stack',
    2: 'wrong use, or a setting, a config or a signing key that does not read',
    3: 'the store cannot be reached, or the address is taken',
    141: 'the reader of its output has gone, as after `| head`; a service goes on',
  },
  commands: {
    serve: { 0: 'ended by a signal', 3: 'the store cannot be opened, or the address is taken' },
    demo: { 0: 'every figure is as it must be', 1: 'a figure is not' },
    onboard: { 1: 'refused: another program holds the port, or the start-up file sets such an address itself' },
    offboard: { 1: 'something could not be taken back' },
    launch: {
      0: 'the program ended with 0; another code of its own is passed on, or 128 and the number of its signal',
      1: 'no router answers',
      2: 'there is no such program, or `ROUTER_BIND` or `OPENCODE_CONFIG_CONTENT` does not read',
    },
    doctor: { 0: 'every check holds', 1: 'a check failed' },
    modes: {},
    trace: { 1: NO_DECISION, 3: NO_STORE },
    explain: { 1: NO_DECISION, 3: NO_STORE },
    savings: { 3: NO_STORE },
    evals: { 3: NO_STORE },
    calibrate: { 1: 'not certified, with `--require-certified`', 3: NO_STORE },
    mcp: { 0: 'its input ended', 3: NO_STORE },
    ope: { 1: 'no request by which the rehearsed policy could be judged', 3: NO_STORE },
    export: { 3: 'the store cannot be read' },
    completion: { 2: 'no such shell' },
    verify: { 0: 'everything holds', 1: 'a chain is broken', 3: 'the store or the file cannot be read' },
  },
}
