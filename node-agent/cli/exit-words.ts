import type { ProgramExits } from '../../shared/cli/exit-code.ts'

export const nodeExits: ProgramExits = {
  run: { 0: 'ended by a signal, or told to end by the control plane', 1: 'the control plane refused it' },
  doctor: { 0: 'a backend works', 1: 'not one works' },
  image: { 1: 'an input is missing, or is not what its lock names' },
}
