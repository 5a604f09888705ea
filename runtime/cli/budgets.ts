import { UsageError } from 'clipanion'
import { counted, usdText } from '../../shared/cli/text-table.ts'
import type { Budget, BudgetPut } from '../../shared/wire/runtime/budget.ts'
import { listVerb, membersText, oneOf, verb, wholeNumber } from './verb.ts'

export const BudgetsListCommand = listVerb('budgets list', {
  about: 'List the budgets with what each has spent today.',
  rows: client => client.budgets.list.each(),
  columns: [
    ['AGENT', one => one.agentName],
    ['USD TODAY', one => usdText(one.today.costUsd)],
    ['USD PER DAY', one => limitOf(one.maxCostUsdPerDay)],
    ['USD PER RUN', one => limitOf(one.maxCostUsdPerRun)],
    ['TOKENS TODAY', one => one.today.tokens],
    ['RUNS TODAY', one => one.today.runs],
    ['AT THE LIMIT', one => (one.hardFail ? 'stops' : 'notifies')],
  ],
  empty: 'No budget yet. `runtime budgets set <agent> --usd-per-day 5` sets one.',
})

export const BudgetsGetCommand = verb('budgets get', {
  about: 'Show the budget of an agent.',
  words: ['agent'],
  act: (client, { agent }) => client.budgets.get({ params: { name: agent } }),
  show: budgetText,
})

export const BudgetsSetCommand = verb('budgets set', {
  about: 'Set limits of an agent; the others stay as they are.',
  details: 'The value none lifts a limit. Work that would exceed a limit is refused before it is paid for.',
  examples: [
    ['Five dollars a day, fifty cents a run', 'budgets set helper --usd-per-day 5 --usd-per-run 0.5'],
    ['No more limit per run', 'budgets set helper --usd-per-run none'],
  ],
  words: ['agent'],
  options: {
    usdPerDay: 'Dollars per day (UTC), or none.',
    usdPerRun: 'Dollars per run with all that it starts, or none.',
    tokensPerDay: 'Tokens per day, or none.',
    runsPerDay: 'Runs per day, or none.',
    notifyAt: 'At how many per cent of a limit webhooks are notified, 1 to 100.',
    atLimit: 'stop: calls are refused; notify: they go on and webhooks are notified.',
  },
  act: async (client, { agent, usdPerDay, usdPerRun, tokensPerDay, runsPerDay, notifyAt, atLimit }) => {
    const params = { name: agent }
    const kept = (await client.budgets.list()).some(one => one.agentName === agent)
      ? await client.budgets.get({ params })
      : undefined
    const given: BudgetPut = {
      maxCostUsdPerDay: dollars('--usd-per-day', usdPerDay),
      maxCostUsdPerRun: dollars('--usd-per-run', usdPerRun),
      maxTokensPerDay: wholeLimit('--tokens-per-day', tokensPerDay),
      maxRunsPerDay: wholeLimit('--runs-per-day', runsPerDay),
      notifyAtPct: wholeNumber('--notify-at', notifyAt, { least: 1 }),
      hardFail: stops(atLimit),
    }
    const changed = Object.entries(given).filter(([, value]) => value !== undefined)
    if (changed.length === 0) throw new UsageError('say which limit, such as --usd-per-day 5')
    return client.budgets.save({ params, body: { ...(kept && limitsOf(kept)), ...Object.fromEntries(changed) } })
  },
  show: budgetText,
})

export const BudgetsDeleteCommand = verb('budgets delete', {
  about: 'Delete the budget of an agent: it then spends without a limit.',
  words: ['agent'],
  act: (client, { agent }) => client.budgets.remove({ params: { name: agent } }),
  show: (_, { agent }) => `${agent} has no budget`,
})

const GROUPS = ['day', 'agent', 'model'] as const

export const UsageCommand = listVerb('usage', {
  about: 'Sum runs, tokens and cost by day, agent or model.',
  options: {
    by: `One of ${GROUPS.join(', ')}; default day.`,
    from: 'The first day, such as 2026-01-01.',
    to: 'The last day.',
    agent: 'Only this agent.',
  },
  rows: (client, { by, from, to, agent }) =>
    client.budgets.usage({ query: { groupBy: oneOf('--by', by, GROUPS) ?? 'day', from, to, agentName: agent } }),
  columns: [
    ['OF', one => one.day ?? one.agentName ?? one.model],
    ['RUNS', one => one.runs],
    ['TOKENS IN', one => one.tokensIn],
    ['TOKENS OUT', one => one.tokensOut],
    ['USD', one => usdText(one.costUsd)],
    ['UNCERTAIN USD', one => usdText(one.uncertainCostUsd)],
    ['UNPRICED CALLS', one => one.unpricedCalls],
  ],
  empty: 'Nothing was used in that time.',
})

function budgetText(budget: Budget): string {
  const { today } = budget
  return membersText({
    agent: budget.agentName,
    'USD per day': limitOf(budget.maxCostUsdPerDay),
    'USD per run': limitOf(budget.maxCostUsdPerRun),
    'tokens per day': budget.maxTokensPerDay ?? 'no limit',
    'runs per day': budget.maxRunsPerDay ?? 'no limit',
    'at the limit': budget.hardFail ? 'stop' : 'notify',
    'notify at': `${budget.notifyAtPct} %`,
    today: `${usdText(today.costUsd)} USD, ${today.tokens} tokens, ${counted(today.runs, 'run')}`,
    reserved: `${usdText(today.reserved.costUsd)} USD, ${today.reserved.tokens} tokens`,
  })
}

function limitsOf(budget: Budget): BudgetPut {
  const { maxCostUsdPerDay, maxCostUsdPerRun, maxTokensPerDay, maxRunsPerDay, hardFail, notifyAtPct, toolLimits } =
    budget
  return { maxCostUsdPerDay, maxCostUsdPerRun, maxTokensPerDay, maxRunsPerDay, hardFail, notifyAtPct, toolLimits }
}

const limitOf = (usd: number | null) => (usd === null ? 'no limit' : usdText(usd))

function dollars(name: string, text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  const usd = Number(text.replace(/^\$/, ''))
  if (text.trim() !== '' && Number.isFinite(usd) && usd >= 0) return usd
  throw new UsageError(`${name}: expected dollars such as 5 or 0.25, or none; got "${text}"`)
}

function wholeLimit(name: string, text: string | undefined): number | null | undefined {
  return text === 'none' ? null : wholeNumber(name, text)
}

function stops(text: string | undefined): boolean | undefined {
  const chosen = oneOf('--at-limit', text, ['stop', 'notify'])
  return chosen === undefined ? undefined : chosen === 'stop'
}
