import type { Program } from '../../shared/cli/program.ts'
import { nodeExits } from './exit-words.ts'

export const nodeProgram: Program = {
  name: 'node-agent',
  about:
    'The waybill node agent: runs agents on this machine for a control plane; what they read and write stays here.',
  exits: nodeExits,
  groups: [
    ['Run', ['run', 'doctor', 'image']],
    ['This program', ['completion']],
  ],
  standard: 'run',
  commands: {
    run: async () => [(await import('./run.ts')).RunCommand],
    doctor: async () => [(await import('./doctor.ts')).DoctorCommand],
    image: async () => [(await import('./image.ts')).ImageCommand],
    completion: async () => [(await import('../../shared/cli/completion-command.ts')).CompletionCommand],
  },
}
