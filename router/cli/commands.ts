import type { Program } from '../../shared/cli/program.ts'
import { routerExits } from './exit-words.ts'

export const routerProgram: Program = {
  name: 'router',
  about: 'The waybill router: a proxy in front of model providers that records, routes and proves what it did.',
  exits: routerExits,
  groups: [
    ['Start', ['demo', 'serve', 'onboard', 'offboard', 'launch', 'doctor']],
    ['See what it did', ['trace', 'explain', 'savings', 'evals']],
    ['Choose how it routes', ['modes', 'calibrate', 'ope']],
    ['Prove', ['verify', 'export', 'mcp']],
    ['Keep the store', ['backup', 'compact']],
    ['Several stores', ['shards add', 'shards list', 'shards close', 'shards open']],
    ['This program', ['completion']],
  ],
  commands: {
    serve: async () => [(await import('./serve.ts')).ServeCommand],
    demo: async () => [(await import('./demo.ts')).DemoCommand],
    onboard: async () => [(await import('./onboard.ts')).OnboardCommand],
    offboard: async () => [(await import('./offboard.ts')).OffboardCommand],
    launch: async () => [(await import('./launch.ts')).LaunchCommand],
    doctor: async () => [(await import('./doctor.ts')).DoctorCommand],
    modes: async () => [(await import('./modes.ts')).ModesCommand],
    trace: async () => [(await import('./trace.ts')).TraceCommand],
    explain: async () => [(await import('./explain.ts')).ExplainCommand],
    savings: async () => [(await import('./savings.ts')).SavingsCommand],
    evals: async () => [(await import('./evals.ts')).EvalsCommand],
    calibrate: async () => [(await import('./calibrate.ts')).CalibrateCommand],
    mcp: async () => [(await import('./mcp.ts')).McpCommand],
    ope: async () => [(await import('./ope.ts')).OpeCommand],
    shards: async () => {
      const { ShardsAddCommand, ShardsCloseCommand, ShardsListCommand, ShardsOpenCommand } = await import('./shards.ts')
      return [ShardsAddCommand, ShardsListCommand, ShardsCloseCommand, ShardsOpenCommand]
    },
    backup: async () => [(await import('./backup.ts')).BackupCommand],
    compact: async () => [(await import('./backup.ts')).CompactCommand],
    export: async () => [(await import('./export.ts')).ExportCommand],
    completion: async () => [(await import('../../shared/cli/completion-command.ts')).CompletionCommand],
    verify: async () => [(await import('./verify.ts')).VerifyCommand],
  },
}
