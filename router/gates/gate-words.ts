import type { Words } from '../config/key-words.ts'
import { type CommonTable, TIMEOUT_MS } from './common-keys.ts'
import { gateKinds } from './gate-kinds.ts'

const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten']

const quick = Object.values(gateKinds).filter(({ slow }) => !slow).length

export const gateCommonWords: Words<CommonTable & { kind: string }> = {
  id: 'The name that routes use.',
  kind: 'What it does: one of the kinds below.',
  on_abstain: 'What a gate that cannot say anything counts as: passed (`fail-open`) or failed (`fail-closed`).',
  timeout_ms: {
    about: 'Time for one run.',
    unset: `${TIMEOUT_MS.quick} for the first ${NUMBERS[quick] ?? quick} kinds, ${TIMEOUT_MS.slow} for the others`,
  },
  cost_usd: 'What one run costs, beside what it reports itself.',
  error_budget: { about: 'When a gate that does not work is switched off.', unset: 'the defaults of its keys' },
  max_parallel: 'Runs at a time.',
}

export const errorBudgetWords: Words<CommonTable['error_budget']> = {
  window: 'The latest runs that are looked at.',
  min_runs: 'Fewer runs prove nothing.',
  max_error: 'The share of errors that is still accepted.',
  probe_after_s: 'Seconds before a gate that is off is tried again.',
  probes: 'Good tries in a row that bring it back.',
}
