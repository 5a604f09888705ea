import type { ProgramExits } from '../../shared/cli/exit-words.ts'

export const nodeExits: ProgramExits = {
  all: {
    0: 'done',
    1: 'refused, or it did not come about; also wrong use',
    2: 'a setting does not read',
    141: 'the reader of its output has gone, as after `| head`; a service goes on',
  },
  commands: {
    run: {
      0: 'ended by a signal, or told to end by the control plane',
      1: 'the control plane refused it, or the store cannot be opened',
    },
    doctor: { 0: 'a backend works', 1: 'not one works' },
    image: { 1: 'an input is missing, or is not what its lock names' },
    completion: { 1: 'no such shell' },
  },
}
