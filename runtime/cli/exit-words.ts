import type { ProgramExits } from '../../shared/cli/exit-words.ts'

const REFUSED = 'no key is given, or the service refuses or cannot be reached'
const NO_STORE = 'the store or its master key cannot be used'

export const runtimeExits: ProgramExits = {
  all: {
    0: 'done',
    1: 'refused, or it did not come about; also wrong use and a setting that does not read',
    141: 'the reader of its output has gone, as after `| head`; a service goes on',
  },
  commands: {
    serve: {
      0: 'ended by a signal',
      1: 'a setting does not read, the store cannot be opened, or the address is taken',
    },
    doctor: { 0: 'nothing fails', 1: 'a start would fail, or the running service is not ready' },
    'agents apply': { 1: `${REFUSED}, or the file does not read` },
    'agents list': { 1: REFUSED },
    run: { 0: 'succeeded', 1: 'failed or cancelled, or the service refused', 3: 'it waits for a human' },
    'runs request': { 1: REFUSED },
    'approvals list': { 1: REFUSED },
    'approvals approve': { 1: REFUSED },
    'approvals reject': { 1: REFUSED },
    'sessions chat': { 1: REFUSED },
    'schedules preview': { 1: 'the expression or the time zone does not read' },
    'keys create': { 1: NO_STORE },
    'keys list': { 1: NO_STORE },
    'keys revoke': { 1: `there is no such key, or ${NO_STORE}` },
    'keys rotate': { 1: NO_STORE },
    'keys rotate-master': { 1: NO_STORE },
    export: { 1: `a run that was named has not ended; ${REFUSED}` },
    archive: { 1: `a run could not be verified and was left out; ${REFUSED}` },
    'archive verify': { 0: 'every line is valid', 1: 'a line is not', 2: 'the files cannot be used' },
    verify: { 0: 'valid', 1: 'not valid', 2: 'the files cannot be used' },
    backup: { 1: NO_STORE },
    restore: { 1: 'receipts do not hold and nothing was restored, or the file cannot be used' },
    compact: { 1: NO_STORE },
    completion: { 1: 'no such shell' },
  },
}
