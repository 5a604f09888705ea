import { ApiError } from '../../shared/http/api-error.ts'
import { loadBuiltinPrices } from '../../shared/prices/builtin.ts'
import type { Db } from '../../shared/sql/db.ts'
import type { McpInput, Rehearsal } from '../../shared/wire/router/mcp.ts'
import { loadConfig } from '../config/load-config.ts'
import { formatProblem } from '../config/problem.ts'
import type { Estimate } from '../ope/estimate.ts'
import { type PolicyTarget, rehearse } from '../ope/rehearse.ts'

interface RehearsePlace {
  vars: Readonly<Record<string, string | undefined>>
  tenant: string
}

/** What another policy would have cost or failed, from the receipts of one tenant. */
export async function rehearsePolicy(
  db: Db,
  { policy_toml, start_rung = 0, metric }: McpInput<'rehearse_policy'>,
  { vars, tenant }: RehearsePlace,
): Promise<Rehearsal> {
  const target = policy_toml === undefined ? { startRung: start_rung } : await policyOf(policy_toml, vars)
  const span = { tenant, since: undefined, until: undefined }
  const [found] = await rehearse(db, { target, metrics: [metric], span })
  if (found === undefined) throw new Error(`nothing was estimated for ${metric}`)
  const { n, ess, coverage, warnings, direct } = found
  return {
    ips: orNothing(found.ips),
    snips: orNothing(found.snips),
    dr: orNothing(found.dr),
    ...(direct && { direct: orNothing(direct.rehearsed) }),
    ess,
    coverage,
    n,
    warnings,
  }
}

function orNothing(estimate: Estimate | null): Rehearsal['ips'] {
  return estimate === null ? { value: null, ci: null } : { value: estimate.value, ci: [...estimate.ci] }
}

async function policyOf(text: string, vars: RehearsePlace['vars']): Promise<PolicyTarget> {
  const loaded = loadConfig(text, {
    file: 'policy_toml',
    env: vars,
    builtinPrices: await loadBuiltinPrices(),
    hostHasProcesses: true,
    readFile(name) {
      throw new Error(`a policy that is only rehearsed has no folder to read ${name} from: put the content in it`)
    },
  })
  if (loaded.ok) return { config: loaded.config }
  throw new ApiError('bad_request', loaded.problems.map(formatProblem).join('\n'))
}
