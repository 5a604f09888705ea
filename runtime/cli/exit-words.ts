import type { ProgramExits } from '../../shared/cli/exit-code.ts'

export const runtimeExits: ProgramExits = {
  serve: { 0: 'ended by a signal' },
  doctor: { 0: 'nothing fails', 1: 'a start would fail, or the running service is not ready' },
  run: {
    0: 'succeeded',
    1: 'failed or cancelled, or the service refused',
    4: 'it waits for a human',
    130: 'interrupted; the run goes on',
  },
  export: { 1: 'a run that was named has not ended, or the service refused' },
  archive: { 1: 'a run could not be verified and was left out, or the service refused' },
  compact: { 1: 'another program reads the store, so that its log could not be emptied' },
  'archive verify': { 0: 'every line is valid', 1: 'a line is not' },
  verify: { 0: 'valid', 1: 'not valid' },
  restore: { 1: 'receipts do not hold and nothing was restored' },
}
